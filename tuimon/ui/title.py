"""The terminal's title carries the verdict: `⏳ load 43 %`, `✖ STALLED 4m`."""

from __future__ import annotations

import os

from tuimon.launch.view import RED, LaunchView
from tuimon.ui.rows import clean, cut
from tuimon.ui.words import short_age

LONGEST = 60


def words(view: LaunchView) -> str:
    """The title for this view; its age changes each minute, so that it is not written each second."""
    verdict = view.verdict
    host = clean(view.host)
    ticks = short_age(view.now - verdict.since)
    if view.broken or verdict.state in RED:
        return _cut(f"✖ {'own error' if view.broken else f'{verdict.state.upper()} {ticks}'} · {host}")
    if verdict.state in {"ready", "serving"}:
        return _cut(f"✔ {verdict.state} · {host}")
    if verdict.state == "quiet":
        return _cut(f"░ quiet · {host}")
    if verdict.state == "starting":
        running = next((phase for phase in reversed(view.phases) if phase.state == "running"), None)
        if running is None:
            return _cut(f"⏳ starting · {host}")
        share = f" {(running.count or 0) / running.total * 100:.0f} %" if running.total else ""
        return _cut(f"⏳ {clean(running.name)}{share} · {host}")
    shape = {"waiting": "◌", "finished": "■", "unreachable": "╳"}.get(verdict.state, "·")
    return _cut(f"{shape} {verdict.state} · {host}")


def _cut(text: str) -> str:
    return cut(text, LONGEST)


KEEP = "\x1b[22;2t"
"""Asks the terminal to keep its own title until `give_back`."""


def sequence(text: str) -> str:
    """OSC 2, and in tmux and screen the window's name too; the text has no control characters left."""
    name = f"\x1bk{clean(text)}\x1b\\" if _multiplexed() else ""
    return f"\x1b]2;{clean(text)}\x1b\\{name}"


def give_back() -> str:
    """The title that was there before; an empty window name lets tmux choose again."""
    return "\x1b[23;2t" + ("\x1bk\x1b\\" if _multiplexed() else "")


def _multiplexed() -> bool:
    return os.environ.get("TERM", "").startswith(("tmux", "screen"))
