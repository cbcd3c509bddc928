"""One row per node: light, name, verdict in word and shape, silence, GPUs at work, and what else there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tuimon.launch.lasting import age
from tuimon.launch.node import NodeView
from tuimon.launch.ranks import in_short
from tuimon.launch.view import State
from tuimon.ui.banner import NAMES
from tuimon.ui.bars import spark
from tuimon.ui.rows import Row, Span, cells, clean, cut, fit, left, right

TICKS = 5.0
"""Seconds from which a silence is shown: below, each would change with each second, and say nothing."""
SHAPES: dict[State, str] = {
    "waiting": "◌",
    "starting": "▸",
    "quiet": "░",
    "ready": "✔",
    "serving": "✔",
    "finished": "■",
}
LIGHTS = {"up": ("●", "good"), "connecting": ("◌", "warn"), "lost": ("✖", "bad"), "refused": ("✖", "bad")}
WORD, SILENT, GPUS, PHASE, RANKS, TEXT, STRIP = 14, 8, 5, 20, 14, 24, 17
"""Cells of the columns; those of the text and the strip are the least and the most."""


class Columns(Struct, frozen=True):
    """How wide each column is; 0 = there is no room for it."""

    host: int
    phase: int = 0
    strip: int = 0
    ranks: int = 0
    text: int = 0


def columns(nodes: Sequence[NodeView], width: int) -> Columns:
    """What fits, the most telling first; the same for all rows, so that they stand under each other."""
    longest = max((cells(clean(node.host)) for node in nodes), default=4)
    host = max(4, min(longest, width // 4))
    left_over = width - (4 + host + 1 + WORD + 1 + SILENT + 1 + GPUS)
    phase = min(PHASE, left_over - 1) if left_over >= 9 else 0
    left_over -= phase + 1 if phase else 0
    most = max((len(node.view.gpus or ()) for node in nodes), default=0)
    strip = min(STRIP, most + (most - 1) // 8) if most else 0
    strip = strip if left_over >= strip + 1 + (TEXT if left_over >= 40 else 0) else 0
    left_over -= strip + 1 if strip else 0
    ranks = RANKS if left_over >= RANKS + 60 else 0
    left_over -= ranks + 1 if ranks else 0
    return Columns(host, phase, strip, ranks, left_over - 1 if left_over > TEXT // 2 else 0)


def heading(look: Columns, width: int) -> Row:
    """What the columns are."""
    words = f"    {left('host', look.host)} {left('verdict', WORD)} {right('silent', SILENT)} {right('GPUs', GPUS)}"
    words += f" {left('work' if look.strip else '', look.strip)}" if look.strip else ""
    words += f" {left('phase', look.phase)}" if look.phase else ""
    words += f" {left('ranks', look.ranks)}" if look.ranks else ""
    words += " why, or its last line" if look.text else ""
    return fit(((words, "faint"),), width)


def row(node: NodeView, look: Columns, width: int, *, cursor: bool) -> Row:
    """A node in `width` cells."""
    text, dim = ("cursor", "cursor") if cursor else ("text", "dim")
    light, ink = LIGHTS[node.view.link.state]
    name, loud = verdict(node)
    spans: list[Span] = [
        ("▸ " if cursor else "  ", "accent"),
        (light, ink),
        (" ", text),
        (left(clean(node.host), look.host), "suspect" if node.suspect else text),
        (" ", text),
        (left(name, WORD), loud or text),
    ]
    still = silence(node)
    if node.unseen and node.note is not None and not still and cells(node.note) > look.text:
        return fit((*spans, (f"  {clean(node.note)}", text)), width, text)  # it has nothing else to show
    spans += [
        (f" {right(still, SILENT)}", text if node.red or node.suspicious else dim),
        (f" {right(gpus(node), GPUS)}", text),
    ]
    if look.strip:
        spans += [(" ", text), *_strip(node, look.strip, text)]
    if look.phase:
        spans.append((f" {left(clean(node.phase or ''), look.phase)}", text))
    if look.ranks:
        spans.append((f" {left(_ranks(node), look.ranks)}", dim))
    if look.text:
        words, quiet = said(node)
        spans.append((f" {cut(words, look.text)}", dim if quiet else text))
    return fit(tuple(spans), width, text)


def verdict(node: NodeView) -> tuple[str, str | None]:
    """The state in shape and word, and its ink where it is not the row's own."""
    view = node.view
    if node.unseen:
        if view.broken is not None:
            return "✖ OWN ERROR", "warn"
        word = {"connecting": "◌ CONNECTING", "refused": "✖ REFUSED"}.get(view.link.state, "╳ NO LINK")
        return word, "dim" if view.link.state == "connecting" else "warn"
    if node.red:
        return f"✖ {NAMES[node.state]}", "bad"
    if node.waits is not None:
        return "░ WAITS", "warn"
    if node.absent:
        return f"◌ {'NO SERVER' if node.state == 'waiting' else 'ENDED'}", "warn"
    ink = {"quiet": "warn", "ready": "good", "serving": "good"}.get(node.state)
    return f"{SHAPES.get(node.state, '·')} {NAMES[node.state]}", ink


def silence(node: NodeView) -> str:
    """How long it has been silent."""
    return "" if node.silent is None or node.silent < TICKS else age(node.silent)


def gpus(node: NodeView) -> str:
    """`6/8`: at work, and all."""
    if node.unseen or node.view.gpus is None:
        return "?"
    if not node.view.gpus:
        return "–"
    known = node.gpus
    return f"{'?' if known is None else known[0]}/{len(node.view.gpus)}"


def _strip(node: NodeView, width: int, text: str) -> list[Span]:
    """The work of each GPU as a block, eight and a space; of an unseen node there is none."""
    spans: list[Span] = []
    used = 0
    for place, gpu in enumerate(() if node.unseen else node.view.gpus or ()):
        need = 2 if place and place % 8 == 0 else 1
        if used + need > width:
            break
        spans += [(" ", text)] if need == 2 else []
        spans += spark([gpu.work], 1, 1.0, "suspect" if gpu.suspect else "bar")
        used += need
    return [*spans, (" " * (width - used), text)]


def _ranks(node: NodeView) -> str:
    return clean(in_short(node.ranks)) if node.ranks else ""


def said(node: NodeView) -> tuple[str, bool]:
    """Why it stands so, or what its log said last; True for the latter."""
    if node.note is not None:
        return clean(node.note), False
    line = node.last_line
    if line is None:
        return "", True
    return clean(" ".join(part for part in (line.clock, line.rank, line.text[:400]) if part)), True
