"""The health strip: what the endpoint answered, each look a glyph, oldest at the left."""

from __future__ import annotations

from tuimon.launch.view import HealthView, LaunchView
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, clean, fit, flow
from tuimon.ui.words import ago

GLYPHS = {
    "ok": ("█", "good"), "open": ("▄", "accent"), "refused": ("▁", "rest"), "error": ("✖", "bad"),
    "timeout": ("╳", "warn"), "gap": ("·", "rest"),
}  # fmt: skip


class HealthStrip(Pane):
    """Does it answer?"""

    TITLE = "Health"

    def slice(self, view: LaunchView) -> object:
        return view.health, int(view.now)

    def aside(self, view: LaunchView, room: int) -> str:
        words = clean(f"{view.health.address or ''} {view.health.path or ''}".strip())
        return words if len(words) <= room else clean(view.health.path or "")

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        pieces = _words(view.health, view.now).split(" · ")
        words = flow([((piece, "dim"),) for piece in pieces], width, (" · ", "dim"))
        strip = tuple(GLYPHS[look] for look in view.health.history[-width:])
        if not strip:
            return [words]
        if height >= 2:
            return [strip, words]
        said = _words(view.health, view.now, brief=True)
        room = max(4, width - len(said) - 2)
        return [fit((*strip[-room:], ("  ", "text"), (said, "dim")), width)]


def _words(health: HealthView, now: float, *, brief: bool = False) -> str:
    if health.last is None:
        return "not asked yet"
    if health.error:
        said = clean(health.error)
    elif health.status is not None:
        said = str(health.status)
    else:
        said = "port open"
    parts = [said]
    if health.latency is not None:
        parts.append(f"{health.latency * 1000:.0f} ms")
    parts.append(f"asked {ago(now, health.last)}")
    if brief:
        return f"{said} {ago(now, health.last)}"
    if health.error:
        parts.append("never answered" if health.answered_at is None else f"answered {ago(now, health.answered_at)}")
    return " · ".join(parts)
