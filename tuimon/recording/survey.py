"""The first look through a whole recording, ahead of the reader: what can be jumped to, and where to go on from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from tuimon.config import Patience
from tuimon.launch.events import LogText
from tuimon.launch.view import State, Verdict
from tuimon.recording.course import Checkpoint, Course, on_grid
from tuimon.recording.source import Source

EVERY = 60.0
"""Seconds between checkpoints: a jump goes over at most so many samples (0.8 ms each)."""
_SAME = 5.0
"""Seconds within which one milestone of eight ranks is one milestone."""


class Mark(Struct, frozen=True):
    """Something to jump to."""

    at: float
    kind: Literal["verdict", "milestone"]
    text: str
    state: State | None = None
    verdict: Verdict | None = None


class Survey:
    """Runs once through the source; everything it found may be read from any thread."""

    def __init__(self, source: Source, patience: Patience) -> None:
        self.source = source
        begin = source.firsts[0] if source.firsts else source.end
        self.course = Course(source.host, begin, patience)
        self.begin = begin
        self.end = on_grid(begin, source.end)
        self.reached = begin
        """Up to here everything is known."""
        self.done = not source.firsts
        self.marks: tuple[Mark, ...] = ()
        self.checkpoints: tuple[Checkpoint, ...] = ()
        self._state: tuple[State, str | None] | None = None
        self._said: dict[str, float] = {}
        self._book: tuple[object, int] = (None, 0)
        self._free = threading.Event()
        self._free.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let it stand still meanwhile: somebody waits for the processor."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def run(self, stop: threading.Event | None = None) -> None:
        """Look through it to the end, or until `stop`."""
        self.course.watcher = self._judged
        for piece, first in enumerate(self.source.firsts):
            if stop is not None and stop.is_set():
                return
            if not self.checkpoints or first - self.checkpoints[-1].at >= EVERY:
                self.checkpoints = (*self.checkpoints, Checkpoint.of(self.course, piece))
            for event in self.source.read(piece):
                self._free.wait()
                self.course.take(event)
                if isinstance(event, LogText):
                    self._read_log()
            self.reached = max(self.reached, self.course.now)
        self.course.reach(self.end, None)
        self.reached = self.end
        self.done = True

    def _judged(self, now: float, verdict: Verdict) -> None:
        state = (verdict.state, verdict.kind)
        if state != self._state:
            self._state = state
            self._mark(Mark(now, "verdict", verdict.headline, verdict.state, verdict))

    def _read_log(self) -> None:
        run = self.course.launch.run
        book, seen = self._book
        lines = run.reading.lines()
        if book is not run:
            seen = 0
        for number in range(max(seen, lines.first), lines.end):
            if lines.note(number).severity != "milestone":
                continue
            found = lines[number]
            name = found.rule or found.text
            if found.at - self._said.get(name, 0.0) > _SAME:
                self._mark(Mark(found.at, "milestone", found.text))
            self._said[name] = found.at
        # The last line may be unfinished: it is looked at again.
        self._book = (run, max(seen, lines.end - 1))

    def _mark(self, mark: Mark) -> None:
        marks = list(self.marks)
        index = len(marks)
        while index and marks[index - 1].at > mark.at:
            index -= 1
        marks.insert(index, mark)
        self.marks = tuple(marks)
