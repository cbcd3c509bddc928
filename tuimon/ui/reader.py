"""Somebody reading a log: where they are, what they follow, found, marked, filtered. Pure; the log pane shows it.

Positions are absolute line numbers, so lines that come or are dropped at the other end never move what is read.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from tuimon.launch.view import Lines
from tuimon.ui.loglines import Look, entry, full_text
from tuimon.ui.rows import Row
from tuimon.ui.search import find
from tuimon.ui.sieve import Sieve, Test, is_key, says, says_not


class Reader:
    """Position and attention of one reader. Call `take` with the latest lines before anything else."""

    def __init__(self) -> None:
        self.follow = True
        self.look = Look()
        self.lines: Lines | None = None
        """What is read: the log, or what the sieve lets through."""
        self.top = 0
        self.cursor: int | None = None
        """The line that a search went to."""
        self.marks: tuple[int, int] | None = None
        """First and last marked line."""
        self.left_at = 0
        """Where the end was when following stopped."""
        self.lens = False
        self.filter: tuple[re.Pattern[str], bool] | None = None
        """Pattern, and whether its lines are left out instead of kept."""
        self.shown: list[int] = []
        """Line number of each row that was drawn last."""
        self._sieve: Sieve | None = None
        self._log: Lines | None = None

    def take(self, log: Lines) -> None:
        """The latest window over the log."""
        self._log = log
        if self._sieve is None:
            self.lines = log
        else:
            self._sieve.update(log)
            self.lines = self._sieve

    @property
    def looked_at(self) -> float:
        """How much of the log the sieve has seen, 0–1; 1 without one."""
        return 1.0 if self._sieve is None else self._sieve.share

    # Drawing.

    def rows(self, width: int, height: int, tail: list[Row]) -> list[Row]:
        """What is read, in exactly this room; `tail` stands after the newest line while it is followed."""
        if self.lines is None or height < 1:
            return []
        return self._from_end(width, height, tail[:height]) if self.follow else self._from_top(width, height)

    def _from_end(self, width: int, height: int, tail: list[Row]) -> list[Row]:
        assert self.lines is not None  # noqa: S101  rows() has looked
        rows: list[tuple[int, Row]] = []
        room = height - len(tail)
        number = self.lines.end
        while len(rows) < room and number > self.lines.first:
            number -= 1
            rows[:0] = [(number, row) for row in self._entry(number, width)]
        rows = rows[max(0, len(rows) - room) :]
        self.top = number
        self.shown = [number for number, _ in rows]
        return [*(row for _, row in rows), *tail]

    def _from_top(self, width: int, height: int) -> list[Row]:
        assert self.lines is not None  # noqa: S101  rows() has looked
        self.top = max(self.lines.first, min(self.top, self.lines.end - 1))
        rows: list[tuple[int, Row]] = []
        number = self.top
        while len(rows) < height and number < self.lines.end:
            rows += [(number, row) for row in self._entry(number, width)]
            number += 1
        rows = rows[:height]
        self.shown = [number for number, _ in rows]
        return [row for _, row in rows]

    def _entry(self, number: int, width: int) -> list[Row]:
        assert self.lines is not None  # noqa: S101  callers have looked
        marks = self.marks
        marked = number == self.cursor or (marks is not None and marks[0] <= number <= marks[1])
        return entry(self.lines[number], width, self.look, marked=marked)

    # Moving.

    def hold(self) -> None:
        """Stop following; what is shown stays."""
        if self.follow and self.lines is not None:
            self.follow = False
            self.left_at = self.lines.end

    def move(self, by: int, width: int, height: int) -> None:
        """Scroll; reaching the end follows again."""
        if self.lines is None or (self.follow and by > 0):
            return
        self.hold()
        self.top = max(self.lines.first, self.top + by)
        self._follow_at_end(width, height)

    def to_start(self, width: int, height: int) -> None:
        """To the oldest line."""
        if self.lines is not None:
            self.hold()
            self.top = self.lines.first
            self._follow_at_end(width, height)

    def _follow_at_end(self, width: int, height: int) -> None:
        """Follow when everything from the top on fits."""
        assert self.lines is not None  # noqa: S101  callers have looked
        used, number = 0, self.top
        while number < self.lines.end and used <= height:
            used += len(self._entry(number, width))
            number += 1
        self.follow = self.follow or (number >= self.lines.end and used <= height)

    def show(self, number: int, height: int) -> None:
        """Put a line in the middle and mark it."""
        self.hold()
        self.cursor = number
        self.top = number - max(1, height // 2)

    # Finding.

    def search(self, pattern: re.Pattern[str] | None, height: int) -> bool:
        """Mark all hits and go to the nearest one above the end of what is shown, else below; False without any."""
        self.look = replace(self.look, pattern=pattern)
        self.cursor = None
        if pattern is None or self.lines is None:
            return pattern is None
        start = self.shown[-1] if self.shown else self.lines.end - 1
        test = says(pattern)
        return self.jump(test, height, back=True, start=start) or self.jump(test, height, back=False, start=start)

    def jump(self, test: Test, height: int, *, back: bool, start: int | None = None) -> bool:
        """Go to the next line that passes; False when there is none."""
        if self.lines is None:
            return False
        if start is None:
            here = self.cursor if self.cursor is not None else self._edge(back=back)
            start = here - 1 if back else here + 1
        found = find(self.lines, start, test, back=back)
        if found is None:
            return False
        self.show(found, height)
        return True

    def _edge(self, *, back: bool) -> int:
        if not self.shown:
            return 0
        return self.shown[-1] + 1 if back else self.shown[0] - 1

    # Choosing.

    def sift(self, *, lens: bool | None = None, pattern: tuple[re.Pattern[str], bool] | None = None) -> None:
        """Read only some lines: those that matter (lens), and those a pattern keeps or leaves out; None = as it is."""
        here = self._log_number()
        self.lens = self.lens if lens is None else lens
        self.filter = pattern if pattern is not None else self.filter
        self._build(here)

    def unsift(self) -> None:
        """Read all lines again."""
        here = self._log_number()
        self.lens, self.filter = False, None
        self._build(here)

    def _build(self, here: int | None) -> None:
        tests: list[Test] = [is_key] if self.lens else []
        if self.filter is not None:
            pattern, without = self.filter
            tests.append(says_not(pattern) if without else says(pattern))
        self._sieve = Sieve(lambda line: all(test(line) for test in tests)) if tests else None
        self.cursor, self.marks, self.shown = None, None, []
        if self._log is None:
            return
        self.take(self._log)
        if not self.follow and here is not None:
            self.top = here if self._sieve is None else self._sieve.place(here)
        if self.lines is not None:
            self.left_at = self.lines.end

    def _log_number(self) -> int | None:
        """The log's number of the line at the top."""
        lines = self.lines
        if lines is None or not lines.first <= self.top < lines.end:
            return None
        return lines[self.top].number

    def chosen(self) -> str:
        """What copying takes: marked lines, else the found line, else what is shown."""
        if self.lines is None:
            return ""
        if self.marks is not None:
            first, last = self.marks
        elif self.cursor is not None:
            first = last = self.cursor
        elif self.shown:
            first, last = self.shown[0], self.shown[-1]
        else:
            return ""
        return "\n".join(full_text(line) for line in self.lines.slice(first, last + 1))

    def unmark(self) -> None:
        """Forget marks, the found line and the hits."""
        self.marks, self.cursor = None, None
        self.look = replace(self.look, pattern=None)
