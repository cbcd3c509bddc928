"""Stretches in which a log said nothing, by its own clock. Looks at few lines: only where times lie far apart."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from msgspec import Struct

from tuimon.engines import bars
from tuimon.launch.segments import Segment

Stamp = Callable[[bytes], float | None]
"""A line's time in seconds, None where it has none."""
_MOST = 2000
Drawn = dict[str, tuple[float, float]]
"""Bar → its own clock at its first and last redraw, seconds."""


class LogGap(Struct, frozen=True):
    """A silence."""

    line: int
    """The last line with a time before it, from 1."""
    start: float
    """By the log's clock."""
    length: float
    """Seconds, without those in which a bar was drawn."""


class Gaps:
    """Finds silences of at least `longer` seconds while a log is read; the longest few thousand are kept.

    Bars have no time of day, but a clock of their own: what they cover was no silence.
    """

    def __init__(self, longer: float) -> None:
        self._longer = longer
        self._last: tuple[int, float] | None = None
        self._tail: Drawn = {}
        self._heap: list[tuple[float, int, float]] = []
        """(length, line, start), the shortest first: it goes when there are too many."""

    @property
    def found(self) -> list[LogGap]:
        """In the order of the log."""
        gaps = (LogGap(line, start, length) for length, line, start in self._heap)
        return sorted(gaps, key=lambda gap: gap.line)

    def see(self, segments: list[Segment], stamp: Stamp) -> None:
        """Take in the next lines."""
        first = _stamped(segments, range(len(segments)), stamp)
        if first is None:
            _draw(segments, self._tail)
            return
        last = _stamped(segments, range(len(segments) - 1, -1, -1), stamp) or first
        if self._last is not None and first[1] - self._last[1] >= self._longer:
            self._add(self._last[0], self._last[1], first[1], _draw(segments[: first[0]], self._tail))
        self._between(segments, first, last, stamp)
        self._last = (segments[last[0]][1], last[1])
        self._tail = _draw(segments[last[0] + 1 :], {})

    def _between(
        self, segments: list[Segment], first: tuple[int, float], last: tuple[int, float], stamp: Stamp
    ) -> None:
        """Halve where times lie far apart, until they are neighbours."""
        waiting = [(first, last)]
        while waiting:
            low, high = waiting.pop()
            if high[1] - low[1] < self._longer:
                continue
            middle = (low[0] + high[0]) // 2
            inside = _stamped(segments, range(middle, high[0]), stamp) if middle > low[0] else None
            if inside is None:
                inside = _stamped(segments, range(middle - 1, low[0], -1), stamp)
            if inside is None:
                self._add(segments[low[0]][1], low[1], high[1], _draw(segments[low[0] + 1 : high[0]], {}))
            else:
                waiting.extend(((inside, high), (low, inside)))

    def _add(self, line: int, start: float, end: float, drawn: Drawn) -> None:
        length = end - start - sum(high - low for low, high in drawn.values())
        if length < self._longer:
            return
        push = heapq.heappush if len(self._heap) < _MOST else heapq.heappushpop
        push(self._heap, (length, line + 1, start))


def _stamped(segments: list[Segment], indexes: range, stamp: Stamp) -> tuple[int, float] | None:
    for index in indexes:
        time = stamp(segments[index][0])
        if time is not None:
            return index, time
    return None


def _draw(segments: Iterable[Segment], drawn: Drawn) -> Drawn:
    for line, _ in segments:
        bar = bars.parse(line)
        if bar is not None and bar.elapsed is not None and len(drawn) < 64:
            low, high = drawn.get(bar.name, (bar.elapsed, bar.elapsed))
            drawn[bar.name] = (min(low, bar.elapsed), max(high, bar.elapsed))
    return drawn
