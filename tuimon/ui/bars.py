"""Bars and sparklines on a fixed scale: the same value always looks the same, and a gap never looks like zero."""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.ui.rows import Row, Span

EIGHTHS = " ▏▎▍▌▋▊▉█"
BLOCKS = "▁▂▃▄▅▆▇█"
GAP = "·"


def bar(share: float | None, width: int, ink: str = "bar", rest: str = "rest") -> Row:
    """A bar with eighths of a cell; unknown is dotted."""
    if share is None:
        return (("┄" * width, rest),)
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    full, part = divmod(eighths, 8)
    done = "█" * full + (EIGHTHS[part] if part else "")
    return ((done, ink), (" " * (width - len(done)), rest))


def meter(share: float | None, width: int, ink: str = "bar") -> Row:
    """A bar between two thin walls."""
    return (("▕", "line"), *bar(share, width - 2, ink), ("▏", "line"))


def nice(highest: float) -> float:
    """The smallest of 1, 2, 5 × 10ⁿ that is not below `highest` (at least 1)."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if factor * step >= highest:
                return factor * step
        step *= 10


def squeezed(values: Sequence[float | None], width: int, newest: int) -> list[float | None]:
    """At most `width` values: the mean of every k of them, grouped by their absolute number so that nothing shimmers.

    `newest` is the absolute number of the last bucket. A group that nobody looked at is a gap.
    """
    if width <= 0 or not values:
        return []
    each = 1
    while -(-(len(values) + each - 1) // each) > width:  # the oldest and the newest group may be partial
        each += 1
    groups: dict[int, list[float | None]] = {}
    for place, value in enumerate(values, newest - len(values) + 1):
        groups.setdefault(place // each, []).append(value)
    return [_mean([value for value in group if value is not None]) for group in groups.values()]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def spark(values: Sequence[float | None], width: int, top: float, ink: str = "bar") -> Row:
    """One line of blocks, newest at the right end of what there is; zero is a low line, a gap is a dot."""
    spans: list[Span] = []
    for value in values[-width:]:
        char, name = _block(value, top, ink)
        if spans and spans[-1][1] == name:
            spans[-1] = (spans[-1][0] + char, name)
        else:
            spans.append((char, name))
    return tuple(spans)


def _block(value: float | None, top: float, ink: str) -> Span:
    if value is None:
        return GAP, "rest"
    if value <= 0:
        return BLOCKS[0], "rest"
    return BLOCKS[min(7, 1 + int(7 * min(1.0, value / top) - 1e-9))], ink


def chart(values: Sequence[float | None], width: int, height: int, top: float, ink: str = "bar") -> list[Row]:
    """Several lines of blocks, highest line first."""
    if height <= 1:
        return [spark(values, width, top, ink)]
    shown = values[-width:]
    rows: list[Row] = []
    for line in range(height - 1, -1, -1):
        spans: list[Span] = []
        for value in shown:
            char, name = _slab(value, top, line, height, ink)
            if spans and spans[-1][1] == name:
                spans[-1] = (spans[-1][0] + char, name)
            else:
                spans.append((char, name))
        rows.append(tuple(spans))
    return rows


def _slab(value: float | None, top: float, line: int, height: int, ink: str) -> Span:
    if line == 0 and (value is None or value <= 0):
        return _block(value, top, ink)
    if value is None or value <= 0:
        return " ", ink
    eighths = max(1, round(min(1.0, value / top) * height * 8)) - line * 8
    return (" ", ink) if eighths <= 0 else (BLOCKS[min(8, eighths) - 1], ink)
