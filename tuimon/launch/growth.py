"""How the log grew, in buckets; a stretch that nobody saw is a gap, not zero."""

from __future__ import annotations

from collections import deque

from tuimon.launch.events import LogReset, LogText
from tuimon.launch.view import GrowthView

BUCKET = 2.0
BUCKETS = 300
RATE_SECONDS = 5.0


class Growth:
    """Counts bytes of the log as they arrive. Instants are tuimon's clock."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.last: float | None = None
        self._buckets: deque[float | None] = deque(maxlen=BUCKETS)
        self._index: int | None = None
        self._recent: deque[tuple[float, int]] = deque()

    def text(self, event: LogText) -> None:
        """New bytes. What the log held before we came is not growth."""
        first = self.total is None
        self.total = max(self.total or 0, event.offset + len(event.text))
        if not event.text:
            return
        if event.age is not None or (first and event.offset == 0 and len(event.text) > 64 * 1024):
            self._advance(event.at, looked=True)
            return
        self.last = event.at
        self._advance(event.at, looked=True)
        self._buckets[-1] = (self._buckets[-1] or 0.0) + len(event.text)
        self._recent.append((event.at, len(event.text)))
        while self._recent and self._recent[0][0] < event.at - RATE_SECONDS:
            self._recent.popleft()

    def reset(self, event: LogReset) -> None:
        """The file began anew or was skipped."""
        self.total = event.offset

    def size(self, size: int, at: float) -> None:
        """The size that `stat` told: known even before, or without, any text."""
        self.total = max(self.total or 0, size) if self.last is not None else size
        self._advance(at, looked=True)

    def look(self, at: float, *, looked: bool) -> None:
        """Time passed; `looked` says whether we would have seen growth."""
        self._advance(at, looked=looked)

    def _advance(self, at: float, *, looked: bool) -> None:
        index = int(at // BUCKET)
        if self._index is None:
            self._index = index
            self._buckets.append(0.0)
            return
        steps = index - self._index
        if steps <= 0:
            return
        # What lies between two looks was not seen unless it is a bucket or two.
        between: float | None = 0.0 if looked and steps <= 3 else None
        for _ in range(min(steps - 1, BUCKETS)):
            self._buckets.append(between)
        self._buckets.append(0.0 if looked else None)
        self._index = index

    def view(self, now: float, last_line: float | None, *, looking: bool) -> GrowthView:
        """The sparkline."""
        if self._index is not None and int(now // BUCKET) - self._index > 3:
            self._advance(now, looked=False)
        recent = sum(size for at, size in self._recent if at > now - RATE_SECONDS)
        return GrowthView(
            total=self.total,
            rate=recent / RATE_SECONDS if looking and self.total is not None else None,
            buckets=tuple(self._buckets),
            bucket=BUCKET,
            last_growth=self.last,
            last_line=last_line,
        )
