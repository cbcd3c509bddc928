"""Answers for an assistant: a live launch as a timeline, and any document cut to a size that a context can bear."""

from __future__ import annotations

import json
from typing import Any

from tuimon.launch.view import LaunchView, PhaseView

MOST = 8000
"""Bytes of an answer."""
CUTS = ((60, 500), (24, 300), (12, 200), (8, 120), (4, 80), (2, 40))
"""Entries of a list, characters of a text: the first pair that makes the answer short enough is taken."""
LAST_LINES = 8


def bounded(document: dict[str, Any]) -> str:
    """JSON of less than 8 kB; what was cut is said in `cut`."""
    text = _written(document)
    for entries, letters in CUTS:
        if _size(text) < MOST:
            return text
        cut = f"lists to {entries} entries, texts to {letters} characters"
        text = _written({**_cut(document, entries, letters), "cut": cut})
    if _size(text) < MOST:
        return text
    return json.dumps({"schema": document.get("schema"), "error": "The answer is too long to be given."})


def _written(document: dict[str, Any]) -> str:
    """JSON in which letters are letters; what does not print, or half of a character, is escaped."""
    text = json.dumps(document, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _size(text: str) -> int:
    return len(text.encode())


def _cut(value: Any, entries: int, letters: int) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, dict):
        return {key: _cut(item, entries, letters) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, entries, letters) for item in value[:entries]]
    if isinstance(value, str) and len(value) > letters:
        return value[: letters - 1] + "…"
    return value


def live_timeline(view: LaunchView) -> dict[str, Any]:
    """timeline's document for a launch that is being watched; seconds since its start."""
    server = view.server
    began = server.started if server is not None else None
    lines = view.lines
    last = [line.text for line in lines.slice(max(lines.first, lines.end - LAST_LINES), lines.end)]
    ready = view.health.ready_at
    entry = {
        "file": server.log if server else None,
        "engine": server.engine if server else None,
        "version": server.version if server else None,
        "lines": lines.end,
        "state": _state(view),
        "ready_s": _since(ready, began),
        "ready_line": None,
        "phases": [_phase(phase, began) for phase in view.phases if phase.state != "expected"],
        "missing": [{"milestone": one.milestone, "because": one.because} for one in view.verdict.missing],
        "gaps": [],
        "error": {"line": None, "text": view.error, "kind": None} if view.error else None,
        "silent_s": _since(view.now, view.growth.last_line),
        "last_lines": last,
    }
    problem = view.broken or (view.link.reason if view.link.state != "up" else None)
    if problem is None and server is None:
        problem = "no server was found there yet"
    return {"schema": "tuimon.timeline/1", "host": view.host, "files": [entry] if server else [], "error": problem}


def _state(view: LaunchView) -> str:
    if view.verdict.state in {"ready", "serving"}:
        return "ready"
    if view.verdict.state == "finished":
        return "ended"
    return "crashed" if view.verdict.state == "crashed" else "unfinished"


def _phase(phase: PhaseView, began: float | None) -> dict[str, Any]:
    return {
        "name": phase.name,
        "rank": phase.rank,
        "start_s": _since(phase.start, began),
        "end_s": _since(phase.end, began),
        "state": phase.state,
        "count": phase.count,
        "total": phase.total,
        "usual_s": phase.usual,
        "note": phase.note,
    }


def _since(instant: float | None, began: float | None) -> float | None:
    return None if instant is None or began is None else round(instant - began, 1)
