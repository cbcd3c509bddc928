"""A first answer to a jump into what has not been read yet: what a watch would believe that joined shortly before.

Reading a day takes a minute, and nobody waits a minute for one picture. What is believed after a glimpse is given up
for the whole truth as soon as the survey has come by.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tuimon.config import Patience
from tuimon.launch.events import LogText, Sample
from tuimon.recording.course import Course, on_grid
from tuimon.recording.form import Recorded
from tuimon.recording.opening import Opening
from tuimon.recording.source import Source

WARM = 120.0
"""Seconds that are judged before the wanted instant: twice the longest patience with silence."""
_HEAD = 15
"""Pieces (minutes) in which the beginning of the log is looked for: 5 ms each."""


class Glimpses:
    """Makes them; what they all begin with is read once."""

    def __init__(self, source: Source, patience: Patience) -> None:
        self._source = source
        self._patience = patience
        self._opening = Opening()
        self._read = 0

    def at(self, at: float) -> tuple[Course, int, Sequence[Recorded]]:
        """A course that begins some two minutes before `at`; the piece that goes on from there, and its events."""
        source = self._source
        piece = max(0, bisect_right(source.firsts, at - WARM) - 1)
        events = source.read(piece)
        start = source.firsts[piece]
        course = Course(source.host, on_grid(source.firsts[0], start), self._patience)
        for event in self._opened(piece).told(start, _text_from(events)):
            course.take(event)
        return course, piece, events

    def _opened(self, piece: int) -> Opening:
        until = min(piece, _HEAD)
        if until < self._read:
            self._opening, self._read = Opening(), 0
        for index in range(self._read, until):
            for event in self._source.read(index):
                self._opening.remember(event)
        self._read = until
        return self._opening


def _text_from(events: Sequence[Recorded]) -> int | None:
    """Where the log goes on: its next bytes tell, or its size."""
    for event in events:
        if isinstance(event, LogText):
            return event.offset
        if isinstance(event, Sample) and event.log is not None:
            return event.log.size
    return None
