"""Plays a recording: a position in time, and the launch as it was believed there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tuimon.config import Patience
from tuimon.launch.view import LaunchView
from tuimon.recording.course import GRID, Course, on_grid
from tuimon.recording.form import Judged, Recorded
from tuimon.recording.glimpse import Glimpses
from tuimon.recording.source import Source
from tuimon.recording.survey import Mark, Survey

NEAR = 180.0
"""Seconds of a recording that a jump may read through: 0.2 s of work."""


class Player:
    """Not for several threads, but the survey may run on one of its own."""

    def __init__(self, source: Source, patience: Patience, survey: Survey | None = None) -> None:
        self.survey = survey or Survey(source, patience)
        self.begin = self.survey.begin
        self.end = self.survey.end
        self.position = self.begin
        self._source = source
        self._patience = patience
        self._course = Course(source.host, self.begin, patience)
        self._piece = -1
        self._events: Sequence[Recorded] = ()
        self._index = 0
        self._glimpses = Glimpses(source, patience)
        self.glimpsed = False
        """What is believed here is only what a watch would believe that joined shortly before."""

    def known(self, at: float) -> bool:
        """Whether the survey has been there."""
        return self.survey.done or at <= self.survey.reached

    def seek(self, at: float) -> None:
        """Go there, from where we are or from a checkpoint, whichever is nearer; far from both, at a glimpse."""
        at = min(on_grid(self.begin, at), self.end)
        points = self.survey.checkpoints
        index = bisect_right(points, at, key=lambda point: point.at) - 1
        from_here = at >= self.position and not self.glimpsed
        start = max(self.position if from_here else self.begin, points[index].at if index >= 0 else self.begin)
        with self.survey.held():
            if at - start > NEAR and not self.known(at):
                self._glimpse(at)
            elif not from_here or start > self.position:
                self._begin(index)
            self._go(at)
        self.position = at

    def _glimpse(self, at: float) -> None:
        self._course, self._piece, self._events = self._glimpses.at(at)
        self._index = 0
        self.glimpsed = True

    def _begin(self, index: int) -> None:
        """Go back to a checkpoint, or to the beginning where there is none (-1)."""
        if index >= 0:
            point = self.survey.checkpoints[index]
            self._course, self._piece = point.course(), point.piece - 1
        else:
            self._course, self._piece = Course(self._source.host, self.begin, self._patience), -1
        self._events, self._index = (), 0
        self.glimpsed = False

    def look_again(self) -> None:
        """Where the survey has come by since: believe all of it instead of a glimpse."""
        if self.glimpsed and self.known(self.position):
            self.seek(self.position)

    def advance(self, seconds: float) -> None:
        """Play on; what is judged lies on the grid, the position moves smoothly."""
        self.position = min(self.position + seconds, self.end)
        # Sums of tenths fall a hair short.
        self._go(self.begin + (self.position - self.begin + 1e-5) // GRID * GRID)

    def _go(self, at: float) -> None:
        """Take in everything up to `at`."""
        upcoming = self._upcoming()
        while upcoming is not None and upcoming.at <= at:
            self._course.take(upcoming)
            self._index += 1
            upcoming = self._upcoming()
        self._course.reach(at, upcoming.at if upcoming is not None else None)

    def _upcoming(self) -> Recorded | None:
        while self._index >= len(self._events):
            if self._piece + 1 >= len(self._source.firsts):
                return None
            self._piece += 1
            self._events, self._index = self._source.read(self._piece), 0
        return self._events[self._index]

    def view(self) -> LaunchView:
        """What was believed at this position, judged with today's rules."""
        return self._course.launch.snapshot(max(self._course.now, self.begin))

    @property
    def now(self) -> float:
        """The instant of `view`."""
        return self._course.now

    @property
    def then(self) -> Judged | None:
        """The verdict of the time, where the recording has it."""
        return self._course.then

    def beside(self, kind: str, *, back: bool) -> Mark | None:
        """The next mark of this kind, or the one before."""
        marks = [mark for mark in self.survey.marks if mark.kind == kind]
        if back:
            return next((mark for mark in reversed(marks) if mark.at < self.position - 0.01), None)
        return next((mark for mark in marks if mark.at > self.position + 0.01), None)
