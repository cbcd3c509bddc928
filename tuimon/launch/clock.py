"""Two clocks: tuimon's own, and the one that the log was written by.

A log that is read late comes all at once; then only its own times tell when a phase began. A log that is followed live
is timed by tuimon's clock, whatever its own may claim (it can be in another zone, or jump).
"""

from __future__ import annotations

import time
from calendar import timegm

from msgspec import Struct

from tuimon.engines.prefix import Prefix

_DAY = 86_400.0
_NO_DAY = (63_072_000.0, 63_158_400.0)  # 1972-01-01: stamps that name only a time of day
_SLACK = 3.0  # s that log time may run ahead of our own before the text counts as old
_JUMP = 120.0  # s back: more than ranks drift, so the log's clock was set


class Moment(Struct, frozen=True):
    """When a line came."""

    at: float
    """tuimon's clock, on arrival."""
    stamp: float | None = None
    """The log's own clock."""
    live: bool = True
    """False where the line was written some time before it arrived."""


class LogClock:
    """Resolves the log's times and says what they mean on tuimon's clock."""

    def __init__(self, own: bool = False) -> None:
        self._own = own
        self._offset: float | None = None
        self._last_at: float | None = None
        self.latest: float | None = None
        """The last stamp seen."""
        self.live = not own
        """Text arrives as it is written: our own clock times it."""

    def arrive(self, at: float, newest: float | None, written: float | None = None) -> None:
        """Text arrived whose newest line has this stamp; `written` = when its last byte was written, if known."""
        before, self._last_at = self._last_at, at
        stamp, self.latest = self.latest, newest if newest is not None else self.latest
        if newest is None:
            self.live = not self._own and written is None and before is not None
            return
        jumped = stamp is not None and newest < stamp - _JUMP
        distance = (at if written is None else written) - newest
        if self._offset is None or jumped or written is not None:
            self._offset = distance
        else:
            self._offset = min(self._offset, distance)
        late = before is None or stamp is None or newest - stamp > at - before + _SLACK
        self.live = not self._own and not late and written is None

    def resolve(self, parts: Prefix, at: float) -> float | None:
        """A line's stamp with the year (or day) that it may lack; None where it has no time."""
        if parts.stamp is None or not parts.yearless:
            return parts.stamp
        near = self.latest if self.latest is not None else (parts.stamp if self._own else at)
        return _nearest(parts.stamp, near)

    def moment(self, at: float, stamp: float | None) -> Moment:
        """A line's moment."""
        if self._own:
            known = stamp if stamp is not None else self.latest
            return Moment(known if known is not None else 0.0, known)
        return Moment(at, stamp if stamp is not None else self.latest, self.live)

    def instant(self, moment: Moment) -> float:
        """A moment on tuimon's clock (on the log's own, where that is the only one)."""
        if self._own or moment.live or moment.stamp is None or self._offset is None:
            return moment.at
        return min(moment.at, moment.stamp + self._offset)


def _nearest(stamp: float, near: float) -> float:
    if _NO_DAY[0] <= stamp < _NO_DAY[1]:
        return stamp + round((near - stamp) / _DAY) * _DAY
    parts = time.gmtime(stamp)
    year = time.gmtime(near).tm_year
    candidates = [float(timegm((one, *parts[1:6], 0, 1, 0))) + stamp % 1 for one in (year - 1, year, year + 1)]
    return min(candidates, key=lambda candidate: abs(candidate - near))
