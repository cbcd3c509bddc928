"""`tuimon check`: one judgement without a screen, for scripts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tuimon.headless import exit_codes
from tuimon.headless.plain import plain, say, say_json
from tuimon.headless.ways import commands
from tuimon.launch.lasting import age
from tuimon.launch.view import RED, LaunchView, State
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tuimon.config import Settings
    from tuimon.launch.steps import Way

SCHEMA = "tuimon.check/1"

SETTLING = 4.0
"""Seconds that "waiting" must have held: the probe scans for a server every 2 s."""


def run(spec: str, settings: Settings, seconds: float, *, as_json: bool) -> int:
    """Watch for up to `seconds`, print the verdict, return the exit code."""
    watching = LiveWatch(spec, settings)
    watching.start()
    try:
        began = watching.view.now
        view = watching.wait_for(lambda view: settled(view, began), timeout=seconds)
    finally:
        watching.stop()
    if as_json:
        say_json(report(view, began))
    else:
        say(words(view))
    return exit_codes.PROBLEM if view.broken else exit_codes.of_state(final_state(view))


def settled(view: LaunchView, began: float) -> bool:
    """Whether watching longer cannot change the answer: red, refused, or a sign of life since we look."""
    if view.broken is not None:
        return True
    if view.link.state != "up":
        return view.link.state == "refused"
    state = view.verdict.state
    if state in RED or state == "finished":
        return True
    if view.data_age is None:
        return False
    if state == "waiting":
        return view.now - began >= SETTLING
    return any(sign.last is not None and sign.last > began for sign in view.signs if sign.visible)


def final_state(view: LaunchView) -> State:
    """The verdict's state; without a link, or where tuimon itself fails, there is none."""
    return view.verdict.state if view.link.state == "up" and view.broken is None else "unreachable"


def report(view: LaunchView, began: float, way: Way | None = None) -> dict[str, Any]:
    """The document of INTERFACES: durations in seconds, instants in RFC 3339 UTC, unknown = null.

    `way` words what to do next; by default commands.
    """
    return {
        "schema": SCHEMA,
        "host": view.host,
        "at": datetime.fromtimestamp(view.now, UTC).isoformat().replace("+00:00", "Z"),
        "observed_s": round(max(0.0, view.now - began), 3),
        "link": "up" if view.link.state == "up" else "lost" if _was_up(view) else "never",
        "launch": _launch(view),
        "verdict": _verdict(view, way or commands(view)),
        "error": _error(view),
    }


def _was_up(view: LaunchView) -> bool:
    """Something came from this host; a link that never stood is called lost, too, while it is tried again."""
    return view.data_age is not None or view.server is not None


def _launch(view: LaunchView) -> dict[str, Any] | None:
    server = view.server
    if server is None:
        return None
    return {
        "engine": server.engine,
        "version": server.version,
        "model": server.model,
        "pid": server.pid,
        "log": server.log,
        "port": server.port,
        "age_s": _since(view.now, server.started),
    }


def _verdict(view: LaunchView, way: Way) -> dict[str, Any]:
    verdict = view.verdict
    return {
        "state": final_state(view),
        "kind": verdict.kind,
        "since_s": _since(view.now, verdict.since),
        "phase": verdict.phase,
        "certain": verdict.certain,
        "suspects": [{"rank": s.rank, "pid": s.pid, "reason": s.reason} for s in verdict.suspects],
        "evidence": [{"sign": e.sign, "age_s": _rounded(e.age), "text": e.text} for e in verdict.evidence],
        "missing": [{"milestone": m.milestone, "because": m.because} for m in verdict.missing],
        "unseen": list(verdict.unseen),
        "alarms": list(verdict.alarms),
        "advice": verdict.advice.words(way) if verdict.advice else None,
    }


def _error(view: LaunchView) -> str | None:
    if view.broken is not None:
        return f"tuimon's own error: {view.broken}"
    if view.link.state == "connecting":
        return "the host has not answered yet"
    return view.error if view.link.state == "up" else view.link.reason or view.error or "the link is down"


def words(view: LaunchView) -> str:
    """The verdict for a reader: a headline, the reasons, what to do next."""
    verdict = view.verdict
    if view.broken is not None:
        return f"{view.host}: nothing can be judged: {_error(view)}"
    lines = [f"{view.host}: {final_state(view)}: {verdict.headline}"]
    if view.link.state != "up":
        lines = [f"{view.host}: unreachable: {_error(view)}"]
    lines += [f"  {e.sign}{'' if e.age is None else f', {age(e.age)} ago'}: {e.text}" for e in verdict.evidence]
    lines += [f"  missing: {m.milestone}: {m.because}" for m in verdict.missing]
    lines += [f"  suspect: {s.rank or s.pid}: {s.reason}" for s in verdict.suspects]
    if verdict.unseen:
        lines.append(f"  cannot be seen here: {', '.join(verdict.unseen)}")
    if verdict.advice:
        lines.append(f"  next: {verdict.advice.words(commands(view))}")
    return "\n".join(plain(line) for line in lines)


def _since(now: float, instant: float | None) -> float | None:
    return None if instant is None else _rounded(max(0.0, now - instant))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
