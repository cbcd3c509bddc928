"""Only some lines of the log: those that a filter or the lens lets through, numbered anew but never renumbered."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from tuimon.launch.view import Lines, LogLine
from tuimon.ui.loglines import full_text

BUDGET = 50_000
"""Lines looked at in one frame: about 50 ms, so that a million lines never stop the screen."""
KEY = {"milestone", "warning", "error", "fatal"}
Test = Callable[[LogLine], bool]


def says(pattern: re.Pattern[str]) -> Test:
    """A test for lines that contain the pattern."""
    return lambda line: pattern.search(full_text(line)) is not None


def says_not(pattern: re.Pattern[str]) -> Test:
    """A test for lines that do not contain the pattern."""
    return lambda line: pattern.search(full_text(line)) is None


def is_key(line: LogLine) -> bool:
    """A test for lines that mean something: milestones, warnings, errors, gaps."""
    return line.severity in KEY or line.gap


def is_error(line: LogLine) -> bool:
    """A test for lines that report an error."""
    return line.severity in {"error", "fatal"}


def is_warning(line: LogLine) -> bool:
    """A test for lines that warn, or report an error."""
    return line.severity in {"warning", "error", "fatal"}


def is_milestone(line: LogLine) -> bool:
    """A test for milestones."""
    return line.severity == "milestone"


def is_at(clock: str) -> Test:
    """A test for lines at this time of the day or later."""
    return lambda line: line.clock is not None and line.clock >= clock


def passes(clock: str) -> Test:
    """A test for lines at this time of the day or later after one that was earlier; asked in the order of the log."""
    before = False

    def test(line: LogLine) -> bool:
        nonlocal before
        if line.clock is None:
            return False
        before = before or line.clock < clock
        return before and line.clock >= clock

    return test


class Sieve:
    """A window over the lines that pass a test, filled piece by piece; keeps `Lines`."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self._lines: Lines | None = None
        self._numbers: list[int] = []
        self._next = 0
        self.first = 0
        """Own number of the oldest line that passed and is still held."""

    @property
    def end(self) -> int:
        """One past the own number of the newest line that passed."""
        return self.first + len(self._numbers)

    @property
    def share(self) -> float:
        """How much of the log has been looked at, 0–1."""
        lines = self._lines
        if lines is None or lines.end <= lines.first:
            return 1.0
        return min(1.0, max(0.0, (self._next - lines.first) / (lines.end - lines.first)))

    def update(self, lines: Lines, budget: int = BUDGET) -> None:
        """Take the latest window; look at no more than `budget` further lines."""
        self._lines = lines
        gone = bisect_left(self._numbers, lines.first)
        del self._numbers[:gone]
        self.first += gone
        # The newest line may still change (a bar is one line that is drawn over), so it is looked at again.
        if self._next == lines.end and self._numbers and self._numbers[-1] == lines.end - 1:
            self._numbers.pop()
        self._next = max(lines.first, min(self._next, lines.end - 1))
        stop = min(lines.end, self._next + budget)
        self._numbers += [line.number for line in lines.slice(self._next, stop) if self._test(line)]
        self._next = stop

    def __getitem__(self, number: int) -> LogLine:
        if self._lines is None or number < self.first:
            raise IndexError(number)
        return self._lines[self._numbers[number - self.first]]

    def slice(self, start: int, stop: int) -> Sequence[LogLine]:
        """Lines by their own numbers."""
        lines = self._lines
        if lines is None:
            return ()
        wanted = self._numbers[max(0, start - self.first) : max(0, stop - self.first)]
        return [lines[number] for number in wanted]

    def place(self, number: int) -> int:
        """Own number of the first line at or after this line of the log."""
        return self.first + bisect_left(self._numbers, number)
