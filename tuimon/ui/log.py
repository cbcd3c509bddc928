"""The log pane: follows its end, holds still while it is read, searches, filters, copies."""

from __future__ import annotations

import re

from msgspec.structs import replace
from textual import events

from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView
from tuimon.ui.beginning import beginning
from tuimon.ui.growth import mini
from tuimon.ui.loglines import rule
from tuimon.ui.pane import Pane
from tuimon.ui.reader import Reader
from tuimon.ui.rows import Row, cells, clean
from tuimon.ui.sieve import Test, is_at, passes

SILENT = 10.0
"""Seconds without a line after which the end of the log says so."""


class Log(Pane):
    """The server's log."""

    TITLE = "Log"

    def __init__(self, *, id: str) -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.reader = Reader()
        self.growth_in_title = False
        """True where the growth pane has no room."""
        self._dragged_from: int | None = None

    # Drawing.

    def slice(self, view: LaunchView) -> object:
        lines = view.lines
        silent = self._silence(view)
        growth = view.growth if self.growth_in_title else view.growth.total
        early = view.link.state if lines.end == lines.first else None
        return lines.first, lines.end, growth, silent and int(silent), view.server, early, self.reader.looked_at

    def title(self, view: LaunchView | None, width: int) -> str:
        title = self.TITLE
        if view is not None and self.growth_in_title:
            title = f"{title} {mini(view, max(8, min(24, width // 4)))}".rstrip()
        return f"{title} · {self._sifted()}" if self._sifted() else title

    def _sifted(self) -> str:
        """What is left out, in words."""
        reader = self.reader
        words = ["key lines"] if reader.lens else []
        if reader.filter is not None:
            words.append(f"{'without' if reader.filter[1] else 'only'} {clean(reader.filter[0].pattern)}")
        if words and reader.looked_at < 1:
            words.append(f"looked at {reader.looked_at * 100:.0f} %")
        return " · ".join(words)

    def aside(self, view: LaunchView, room: int) -> str:
        state = self._state(view)
        path = clean(view.server.log or "") if view.server else ""
        room -= len(state) + 2
        if cells(path) > room:
            path = "…/" + path.rsplit("/", 1)[-1]
        return f"{path}  {state}" if path and cells(path) <= room else state

    def _state(self, view: LaunchView) -> str:
        """Whether it follows; the last words of the frame."""
        reader = self.reader
        new = (reader.lines or view.lines).end - reader.left_at
        return "following" if reader.follow else f"+{new:,} new lines" if new > 0 else "held still"

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        if view.lines.end <= view.lines.first:
            return beginning(view, width)
        self._fit_ranks(view)
        self.reader.take(view.lines)
        silent = self._silence(view)
        return self.reader.rows(width, height, [] if silent is None else [rule(f"silent for {age(silent)}", width)])

    def _window(self, rows: list[Row], height: int) -> tuple[list[Row], str]:  # noqa: ARG002  the body is the window
        return rows, ""

    def _fit_ranks(self, view: LaunchView) -> None:
        names = view.server.ranks if view.server else ()
        wanted = min(10, max((cells(clean(name)) for name in names), default=0))
        if wanted != self.reader.look.rank_width:
            self.reader.look = replace(self.reader.look, rank_width=wanted)

    def _silence(self, view: LaunchView) -> float | None:
        last = view.growth.last_line
        if last is None or view.verdict.state in {"ready", "serving", "finished"}:
            return None
        return view.now - last if view.now - last >= SILENT else None

    @property
    def _room(self) -> tuple[int, int]:
        """Cells inside the frame."""
        return self.size.width - 4, self.size.height - 2

    # What keys do.

    def change(self, *, wrap: bool | None = None, times: bool | None = None) -> None:
        """Show lines in another way."""
        look = self.reader.look
        wrap = look.wrap if wrap is None else wrap
        self.reader.look = replace(look, wrap=wrap, times=look.times if times is None else times)
        self.redraw()

    def move(self, lines: int) -> None:
        """Scroll; leaving the end stops following, reaching it follows again."""
        self.reader.move(lines, *self._room)
        self.redraw()

    def go(self, *, end: bool) -> None:
        """To the oldest line, or to the end and follow."""
        if end:
            self.reader.follow = True
        else:
            self.reader.to_start(*self._room)
        self.redraw()

    def toggle_follow(self) -> None:
        """Follow the end, or hold still."""
        if self.reader.follow:
            self.reader.hold()
        else:
            self.reader.follow = True
        self.redraw()

    def search(self, pattern: re.Pattern[str] | None) -> bool:
        """Mark all hits and go to the nearest; False when there is none."""
        found = self.reader.search(pattern, self._room[1])
        self.redraw()
        return found

    def jump(self, test: Test, *, back: bool, around: bool = False) -> bool:
        """Go to the next line that passes, or to the first from the other end; False when there is none."""
        lines = self.reader.lines
        start = (lines.end - 1 if back else lines.first) if around and lines is not None else None
        found = self.reader.jump(test, self._room[1], back=back, start=start)
        self.redraw()
        return found

    def jump_to_time(self, clock: str) -> bool:
        """Go to the first line at this time of the log or later; False when there is none."""
        if self.view is not None:
            self.reader.take(self.view.lines)
        before = self.reader.cursor
        self.reader.cursor = None if self.reader.lines is None else self.reader.lines.first - 1
        # First where the clock passes it: a log from before midnight begins later in the day than it ends.
        found = self.jump(passes(clock), back=False) or self.jump(is_at(clock), back=False)
        if not found:
            self.reader.cursor = before
        return found

    def sift(self, *, lens: bool | None = None, pattern: tuple[re.Pattern[str], bool] | None = None) -> None:
        """Show only some lines."""
        self.reader.sift(lens=lens, pattern=pattern)
        self.redraw()

    def unsift(self) -> None:
        """Show all lines again."""
        self.reader.unsift()
        self.redraw()

    def chosen(self) -> str:
        """What `y` copies."""
        return self.reader.chosen()

    def unmark(self) -> None:
        """Forget marks and hits."""
        self.reader.unmark()
        self.redraw()

    # The mouse: a click puts the cursor on a line, dragging marks lines, the frame's last words follow or hold.

    def _line_at(self, y: int) -> int | None:
        shown = self.reader.shown
        return shown[y - 1] if 0 <= y - 1 < len(shown) else None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragged_from = self._line_at(event.y)
        if self._dragged_from is None:
            return
        self.reader.hold()  # a line that is pointed at must not run away
        self.reader.marks, self.reader.cursor = None, self._dragged_from
        self.redraw()
        self.capture_mouse()

    def on_click(self, event: events.Click) -> None:
        state = 0 if self.view is None else cells(self._state(self.view))
        if event.y == 0 and event.x >= self.size.width - state - 3:
            self.toggle_follow()
        elif event.y == 0:
            super().on_click(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        here = self._line_at(event.y)
        if self._dragged_from is not None and here is not None:
            self.reader.marks = (min(self._dragged_from, here), max(self._dragged_from, here))
            self.redraw()

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        self._dragged_from = None
        self.release_mouse()
