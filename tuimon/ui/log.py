"""The log: follows its end, holds still while it is read, searches, copies.

Positions are absolute line numbers, so lines that come or are dropped at the other end never move what is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace
from textual import events

from tuimon.launch.view import LaunchView, LogLine
from tuimon.ui.beginning import beginning
from tuimon.ui.growth import mini
from tuimon.ui.loglines import Look, entry, full_text, rule
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, cells, clean
from tuimon.ui.search import find, says
from tuimon.ui.words import age

SILENT = 10.0
"""Seconds without a line after which the end of the log says so."""


class Log(Pane):
    """The server's log."""

    TITLE = "Log"

    def __init__(self, *, id: str) -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.follow = True
        self.look = Look()
        self.growth_in_title = False
        """True where the growth pane has no room."""
        self.cursor: int | None = None
        """The line that a search or an error key went to."""
        self.marks: tuple[int, int] | None = None
        """First and last line marked with the mouse."""
        self._left_at = 0
        self._shown: list[int] = []
        self._dragged_from: int | None = None

    def slice(self, view: LaunchView) -> object:
        lines = view.lines
        silent = self._silence(view)
        ticks = None if silent is None else int(silent)
        growth = view.growth if self.growth_in_title else view.growth.total
        return lines.first, lines.end, growth, ticks, view.server, view.link.state if lines.end == lines.first else None

    # Drawing.

    def title(self, view: LaunchView | None, width: int) -> str:
        if view is None or not self.growth_in_title:
            return self.TITLE
        return f"{self.TITLE} {mini(view, max(8, min(24, width // 4)))}".rstrip()

    def aside(self, view: LaunchView, room: int) -> str:
        new = view.lines.end - self._left_at
        state = "following" if self.follow else f"+{new:,} new lines" if new else "held still"
        path = clean(view.server.log or "") if view.server else ""
        room -= len(state) + 2
        if cells(path) > room:
            path = "…/" + path.rsplit("/", 1)[-1]
        return f"{path}  {state}" if path and cells(path) <= room else state

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        lines = view.lines
        if lines.end <= lines.first:
            self._shown = []
            return beginning(view, width)
        self._fit_ranks(view)
        return self._from_end(view, width, height) if self.follow else self._from_top(view, width, height)

    def _window(self, rows: list[Row], height: int) -> tuple[list[Row], str]:  # noqa: ARG002  the body is the window
        return rows, ""

    def _fit_ranks(self, view: LaunchView) -> None:
        names = view.server.ranks if view.server else ()
        wanted = min(10, max((cells(clean(name)) for name in names), default=0))
        if wanted != self.look.rank_width:
            self.look = replace(self.look, rank_width=wanted)

    def _from_end(self, view: LaunchView, width: int, height: int) -> list[Row]:
        silent = self._silence(view)
        tail = [] if silent is None else [rule(f"silent for {age(silent)}", width)]
        blocks: list[list[Row]] = []
        room = height - len(tail)
        number = view.lines.end
        while room > 0 and number > view.lines.first:
            number -= 1
            block = self._entry(view.lines[number], width)
            blocks.append(block)
            room -= len(block)
        self.top = number
        self._shown = list(range(number, view.lines.end))
        rows = [row for block in reversed(blocks) for row in block]
        return [*rows[max(0, len(rows) - (height - len(tail))) :], *tail]

    def _from_top(self, view: LaunchView, width: int, height: int) -> list[Row]:
        self.top = max(view.lines.first, min(self.top, view.lines.end - 1))
        rows: list[Row] = []
        self._shown = []
        for line in view.lines.slice(self.top, min(self.top + height, view.lines.end)):
            if len(rows) >= height:
                break
            block = self._entry(line, width)
            self._shown += [line.number] * len(block)
            rows += block
        return rows[:height]

    def _entry(self, line: LogLine, width: int) -> list[Row]:
        marks = self.marks
        marked = line.number == self.cursor or (marks is not None and marks[0] <= line.number <= marks[1])
        return entry(line, width, self.look, marked=marked)

    def _silence(self, view: LaunchView) -> float | None:
        last = view.growth.last_line
        if last is None or view.verdict.state in {"ready", "serving", "finished"}:
            return None
        return view.now - last if view.now - last >= SILENT else None

    def change(self, *, wrap: bool | None = None, times: bool | None = None) -> None:
        """Show lines in another way."""
        look = self.look
        self.look = replace(
            look, wrap=look.wrap if wrap is None else wrap, times=look.times if times is None else times
        )
        self.redraw()

    # Moving.

    def move(self, lines: int) -> None:
        """Scroll; leaving the end stops following, reaching it follows again."""
        if self.view is None:
            return
        if self.follow and lines > 0:
            return
        self._hold()
        self.top += lines
        self._follow_at_end()
        self.redraw()

    def go(self, *, end: bool) -> None:
        """To the oldest line, or to the end and follow."""
        if end:
            self.follow = True
        elif self.view is not None:
            self._hold()
            self.top = self.view.lines.first
            self._follow_at_end()
        self.redraw()

    def toggle_follow(self) -> None:
        """Follow the end, or hold still."""
        if self.follow:
            self._hold()
        else:
            self.follow = True
        self.redraw()

    def _hold(self) -> None:
        if self.follow and self.view is not None:
            self.follow = False
            self._left_at = self.view.lines.end

    def _follow_at_end(self) -> None:
        if self.view is None:
            return
        lines = self.view.lines
        self.top = max(lines.first, self.top)
        rows, number, room = 0, self.top, self.size.height - 2
        while number < lines.end and rows <= room:
            rows += len(self._entry(lines[number], self.size.width - 4))
            number += 1
        if number >= lines.end and rows <= room:
            self.follow = True

    def show_line(self, number: int) -> None:
        """Put a line in the middle and mark it."""
        self._hold()
        self.cursor = number
        self.top = number - max(1, (self.size.height - 2) // 2)
        self.redraw()

    # Searching.

    def search(self, pattern: re.Pattern[str] | None) -> bool:
        """Mark all hits and go to the nearest one before the end of what is shown; False when there is none."""
        self.look = replace(self.look, pattern=pattern)
        self.cursor = None
        self.redraw()
        if pattern is None or self.view is None:
            return pattern is None
        start = self._shown[-1] if self._shown else self.view.lines.end - 1
        return self.jump(says(pattern), back=True, start=start) or self.jump(says(pattern), back=False, start=start)

    def jump(self, test: Callable[[LogLine], bool], *, back: bool, start: int | None = None) -> bool:
        """Go to the next line that passes; False when there is none."""
        if self.view is None:
            return False
        if start is None:
            here = self.cursor if self.cursor is not None else self._edge(back=back)
            start = here - 1 if back else here + 1
        found = find(self.view.lines, start, test, back=back)
        if found is None:
            return False
        self.show_line(found)
        return True

    def _edge(self, *, back: bool) -> int:
        if not self._shown:
            return 0
        return self._shown[-1] + 1 if back else self._shown[0] - 1

    # Copying.

    def chosen(self) -> str:
        """What `y` copies: marked lines, else the found line, else what is shown."""
        if self.view is None:
            return ""
        lines = self.view.lines
        if self.marks is not None:
            numbers = lines.slice(self.marks[0], self.marks[1] + 1)
        elif self.cursor is not None:
            numbers = lines.slice(self.cursor, self.cursor + 1)
        else:
            numbers = lines.slice(self._shown[0], self._shown[-1] + 1) if self._shown else []
        return "\n".join(full_text(line) for line in numbers)

    def unmark(self) -> bool:
        """Forget marks and the found line; False when there were none."""
        had = self.marks is not None or self.cursor is not None or self.look.pattern is not None
        self.marks, self.cursor = None, None
        self.look = replace(self.look, pattern=None)
        self.redraw()
        return had

    def _line_at(self, y: int) -> int | None:
        return self._shown[y - 1] if self._shown and 0 <= y - 1 < len(self._shown) else None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._hold()
        self._dragged_from = self._line_at(event.y)
        self.marks = None
        self.redraw()
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        here = self._line_at(event.y)
        if self._dragged_from is not None and here is not None:
            self.marks = (min(self._dragged_from, here), max(self._dragged_from, here))
            self.redraw()

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        self._dragged_from = None
        self.release_mouse()
