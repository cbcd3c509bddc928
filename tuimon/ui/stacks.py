"""The stacks screen: ranks grouped by where they stand, side by side, the odd one out first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from tuimon.diagnose.groups import Place, StackGroup, group, wait_words
from tuimon.launch.events import Stacks
from tuimon.launch.lasting import age
from tuimon.launch.steps import Advice, Do
from tuimon.launch.view import LaunchView
from tuimon.ui.pressing import pressing
from tuimon.ui.rows import Row, clean, cut, fit, flow, width_of
from tuimon.ui.sheet import SheetScreen
from tuimon.ui.words import clock, waits

DEEPEST = 12
"""Indentation stops here; deeper calls stay readable."""
LEAST_WIDTH = 46
"""Cells that a column of stacks needs."""


class StacksScreen(SheetScreen):
    """All ranks' stacks, grouped."""

    TITLE = "Stacks"
    IMPATIENT = True

    def __init__(self, busy: Callable[[], str | None]) -> None:
        super().__init__()
        self._busy = busy
        self._grouped: tuple[Stacks, tuple[StackGroup, ...]] | None = None

    def slice(self, view: LaunchView) -> object:
        ticks = int(view.now - view.stacks.at) if view.stacks else None
        return view.stacks, ticks, self._busy(), view.processes if view.stacks and view.stacks.unread else None

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        reading = self._busy() in {"stacks", "native"}
        if view.stacks is None:
            words = "reading stacks…" if reading else pressing(Advice(("no stacks have been read yet: ", Do("stacks"))))
            return [(), ((words, "accent" if reading else "dim"),)]
        if self._grouped is None or self._grouped[0] is not view.stacks:
            self._grouped = (view.stacks, group(view.stacks))
        return rows(view, view.stacks, self._grouped[1], width, reading=reading)


def rows(
    view: LaunchView, stacks: Stacks, groups: Sequence[StackGroup], width: int, *, reading: bool = False
) -> list[Row]:
    """The whole page for one look at the stacks."""
    lines: list[Row] = [_summary(view, stacks, groups, width, reading=reading)]
    if stacks.saved:
        lines.append((("saved: ", "dim"), (cut(clean(stacks.saved), width - 7), "dim")))
    lines.append(())
    peers = [item for item in groups if item.peers]
    others = [item for item in groups if not item.peers]
    lines += _side_by_side(peers, width)
    if stacks.unread:
        lines += _unread(view, stacks, width)
    lines += _side_by_side(others, width)
    return lines


def _summary(view: LaunchView, stacks: Stacks, groups: Sequence[StackGroup], width: int, *, reading: bool) -> Row:
    peers = [item for item in groups if item.peers] or list(groups)
    count = sum(len(item.pids) for item in peers)
    parts = [f"{count} rank{'' if count == 1 else 's'}, {len(peers)} group{'' if len(peers) == 1 else 's'}"]
    moved = next((sign for sign in view.signs if sign.name.startswith("stacks")), None)
    if moved and moved.text:
        parts.append(clean(moved.text))
    parts += [f"{clock(stacks.at)}, {age(view.now - stacks.at)} ago"]
    parts += ["nonblocking" + (f", {stacks.cost:.2f} s" if stacks.cost is not None else "")]
    pieces: list[Row] = [((part, "text"),) for part in parts]
    return flow([(("reading again…", "accent"),), *pieces] if reading else pieces, width, (" · ", "text"))


def _side_by_side(groups: Sequence[StackGroup], width: int) -> list[Row]:
    """Columns where they fit, else one under the other; every group keeps all of its calls."""
    across = max(1, min(len(groups), width // LEAST_WIDTH, 3))
    each = (width - 2 * (across - 1)) // across
    shared = _shared(groups)
    lines: list[Row] = []
    for start in range(0, len(groups), across):
        columns = [_column(item, each, shared) for item in groups[start : start + across]]
        for parts in zip_longest(*columns, fillvalue=()):
            line: Row = ()
            for place, part in enumerate(parts):
                line = (*line, *((("  ", "text"),) if place else ()), *fit(part, each))
            lines.append(line)
        lines.append(())
    return lines


def _shared(groups: Sequence[StackGroup]) -> int:
    """How many outermost calls all groups share and nobody needs to read; two of them stay for orientation."""
    if len(groups) < 2:
        return 0
    same = 0
    for places in zip(*(reversed(item.frames) for item in groups), strict=False):
        if len({(place.name, place.file, place.line) for place in places}) > 1:
            break
        same += 1
    return same - 2 if same > 4 else 0


def _column(item: StackGroup, width: int, shared: int) -> list[Row]:
    mark = ("◀ ", "suspect") if item.odd else ("● ", "accent")
    many = "" if len(item.pids) == 1 else f"  {len(item.pids)} ranks"
    odd = "  the odd one out" if item.odd and len(item.pids) == 1 else ""
    states = f"  state {clean(item.states)}" if item.states else ""
    lines: list[Row] = [
        fit((mark, (clean(item.label), "suspect" if item.odd else "strong"), (f"{many}{odd}{states}", "dim")), width),
        fit((("  ", "text"), (clean(wait_words(item)), "warn" if item.odd else "text")), width),
    ]
    calls = list(reversed(item.frames))
    if not calls:
        return [*lines, (("  no Python frames", "dim"),)]
    if shared:
        lines.append(fit(((f"  … {shared} calls that all share", "faint"),), width))
    for depth, place in enumerate(calls[shared:]):
        last = depth == len(calls) - shared - 1
        lines.append(_call(item, place, depth, width, last=last))
    return lines


def _call(item: StackGroup, place: Place, depth: int, width: int, *, last: bool) -> Row:
    indent = "  " + "  " * min(max(depth - 1, 0), DEEPEST) + ("└ " if depth else "")
    ink = ("suspect" if item.odd else "strong") if last else "text" if place.engine else "dim"
    line = f":{place.line}" if place.line is not None else ""
    tail: Row = ((" ◀ waits", "suspect" if item.odd else "accent"),) if last and item.waits_in else ()
    room = width - width_of(tail)
    name = (indent + clean(place.name), ink)
    where = cut(f"  {clean(place.file.rsplit('/', 1)[-1])}{line}", max(0, room - width_of((name,))))
    return (
        fit((*fit((name, (where, "faint")), room)[:3], *tail), width) if tail else fit((name, (where, "faint")), width)
    )


def _unread(view: LaunchView, stacks: Stacks, width: int) -> list[Row]:
    """Ranks whose stacks could not be read: why, and what can be seen all the same."""
    lines: list[Row] = [((f"{len(stacks.unread)} not read", "warn"),)]
    for item in stacks.unread:
        name = clean(item.rank or f"pid {item.pid}")
        seen = next((process for process in view.processes or () if item.pid in process.pids), None)
        known = ""
        if seen is not None:
            cpu = "" if seen.cpu is None else f", {seen.cpu:.0f} % CPU"
            known = f" · still seen: state {clean(seen.states)}, {waits(seen.waits_in) or 'no wait channel'}{cpu}"
        lines.append(fit((("  ✖ ", "warn"), (name, "strong"), (f"  {clean(item.reason)}{known}", "dim")), width))
    return [*lines, ()]
