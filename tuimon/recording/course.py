"""A launch as a recording tells it: events go by, and every half second of the recording is judged.

The judging is bound to the recording's own time, so the same recording gives the same verdicts at any speed, and after
any jump.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from math import ceil
from typing import Any

import zstandard
from msgspec import Struct

from tuimon.config import Patience
from tuimon.engines.grammar import Grammar, Library
from tuimon.engines.matching import Matcher
from tuimon.engines.rule import Compiled
from tuimon.launch.logbook import CHUNK
from tuimon.launch.state import Launch
from tuimon.launch.view import Verdict
from tuimon.recording.form import Judged, Recorded

GRID = 0.5
"""Seconds between judgements."""
_MOST_TICKS = 2000
"""Judgements between two events: a hole of a week is judged more coarsely."""


def on_grid(begin: float, at: float) -> float:
    """The first instant at or after `at` that is judged."""
    return begin + max(0.0, ceil(round((at - begin) / GRID, 6))) * GRID


SHARED = (Library, Grammar, Matcher, Compiled, re.Match)
"""What never changes and is large, or cannot be copied: what a checkpoint does not hold itself."""


class Course:
    """A launch, and how far the recording has told it."""

    def __init__(self, host: str, begin: float, patience: Patience) -> None:
        self.launch = Launch(host, patience)
        self.now = begin
        """The last instant that was judged."""
        self.then: Judged | None = None
        """The verdict of the time."""
        self._event = begin
        self.watcher: Callable[[float, Verdict], None] | None = None
        """Told each judgement."""

    def take(self, event: Recorded) -> None:
        """Judge up to an event, and take it in."""
        self.reach(event.at, event.at, including=False)
        self._event = event.at
        if isinstance(event, Judged):
            self.then = event
        else:
            self.launch.apply(event)

    def reach(self, until: float, following: float | None, *, including: bool = True) -> None:
        """Judge up to `until`; `following` = when the next event comes, which sets how finely."""
        gap = (following if following is not None else until) - self._event
        step = GRID * max(1, int(gap / GRID / _MOST_TICKS))
        while (tick := self.now + step) < until or (including and tick == until):
            verdict = self.launch.settle(tick)
            self.now = tick
            if self.watcher is not None:
                self.watcher(tick, verdict)


class Checkpoint(Struct, frozen=True):
    """A course at the beginning of a piece, to go on from."""

    piece: int
    at: float
    state: bytes
    shared: tuple[Any, ...]

    @classmethod
    def of(cls, course: Course, piece: int) -> Checkpoint:
        """What never changes (grammars, full chunks of the log) is shared, the rest copied and compressed."""
        buffer = io.BytesIO()
        pickler = _Sharing(buffer)
        watcher, course.watcher = course.watcher, None
        try:
            pickler.dump(course)
        finally:
            course.watcher = watcher
        return cls(piece, course.now, zstandard.compress(buffer.getvalue(), 1), tuple(pickler.shared))

    def course(self) -> Course:
        """A course of its own, as it was then."""
        restored: Course = _Restoring(io.BytesIO(zstandard.decompress(self.state)), self.shared).load()
        return restored


class _Sharing(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []
        self._known: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:  # noqa: ANN401  any object of a launch
        if not isinstance(obj, SHARED) and not (type(obj) is tuple and len(obj) == CHUNK):
            return None
        if id(obj) not in self._known:
            self._known[id(obj)] = len(self.shared)
            self.shared.append(obj)
        return self._known[id(obj)]


class _Restoring(pickle.Unpickler):
    """Only ever reads what `Checkpoint.of` wrote in this process; nothing of a file is unpickled."""

    def __init__(self, buffer: io.BytesIO, shared: tuple[Any, ...]) -> None:
        super().__init__(buffer)
        self._shared = shared

    def persistent_load(self, pid: Any) -> Any:  # noqa: ANN401  any object of a launch
        return self._shared[pid]
