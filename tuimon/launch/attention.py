"""How long somebody really looked: only silence that was watched counts as silence."""

from __future__ import annotations

from collections import deque
from statistics import median

REMEMBERED_GAPS = 64
LONGEST_INTERVAL = 30.0
"""Slower sampling than this is not a rhythm but a gap."""
UNKNOWN_RHYTHM = 10.0
"""Seconds after the first look for which its word is taken, until the second tells how often there are looks."""
SHORTEST_GAP = 3.0
"""Samples come each second; a host under load may make one or two late."""
MISSED_BEATS = 2.5


class Attention:
    """Knows the stretches that nobody saw. Instants are tuimon's clock."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self._intervals: deque[float] = deque(maxlen=9)
        self._gaps: deque[tuple[float, float]] = deque(maxlen=REMEMBERED_GAPS)

    @property
    def bearable(self) -> float:
        """Seconds between two looks that are still no gap."""
        if not self._intervals:
            return UNKNOWN_RHYTHM
        return max(SHORTEST_GAP, MISSED_BEATS * median(self._intervals))

    def look(self, at: float) -> None:
        """A look at the machine arrived."""
        if self.first is None:
            self.first = at
        if self.last is not None:
            if at <= self.last:
                return
            pause = at - self.last
            if pause > self.bearable:
                self._gaps.append((self.last, at))
            if pause <= LONGEST_INTERVAL:
                self._intervals.append(pause)
        self.last = at

    def fresh(self, now: float) -> bool:
        """Whether the latest look is recent enough to judge by."""
        return self.last is not None and now - self.last <= self.bearable

    def looked(self, since: float, now: float) -> float:
        """Seconds between `since` and `now` in which somebody looked."""
        if self.last is None or self.first is None:
            return 0.0
        end = min(now, self.last + self.bearable)
        unseen = sum(max(0.0, min(stop, end) - max(start, since)) for start, stop in self._gaps)
        return max(0.0, end - since - unseen)

    def gaps(self, since: float) -> tuple[tuple[float, float], ...]:
        """Stretches after `since` that nobody saw."""
        return tuple(gap for gap in self._gaps if gap[1] > since)
