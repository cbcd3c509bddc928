"""The main screen: the board with all panes, zoom and focus."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace
from textual.app import ComposeResult

from tuimon.launch.view import LaunchView
from tuimon.ui.banner import Banner
from tuimon.ui.board import PANES, Board, Needs, needs
from tuimon.ui.footer import Footer
from tuimon.ui.gpus import Gpus
from tuimon.ui.growth import Growth
from tuimon.ui.header import Header
from tuimon.ui.health import HealthStrip
from tuimon.ui.log import Log
from tuimon.ui.pane import Painted, Pane
from tuimon.ui.phases import Launch
from tuimon.ui.processes import Processes
from tuimon.ui.signs import Signs
from tuimon.ui.viewing import Viewing

STEADY = 15.0
"""Seconds for which processes keep their lines: ranks that differ for a moment must not move the other panes."""


class BoardScreen(Viewing, inherit_bindings=False):
    """Everything at a glance."""

    HINTS = True
    AUTO_FOCUS = "#log"

    def __init__(self, id: str | None = "_default") -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.log_pane = Log(id="log")
        self.banner = Banner(id="banner")
        self.footer = Footer(id="footer")
        self.parts: tuple[Painted, ...] = (
            Header(id="header"), self.banner, Launch(id="launch"), Gpus(id="gpus"), Growth(id="growth"),
            Signs(id="signs"), Processes(id="processes"), HealthStrip(id="health"), self.log_pane, self.footer,
        )  # fmt: skip
        self.board = Board(*self.parts)
        self._lines, self._lines_at = 0, 0.0

    def compose(self) -> ComposeResult:
        yield self.board

    def show(self, view: LaunchView) -> None:
        """Only parts that have a place are drawn."""
        with suppress(Exception):  # parts that cannot be drawn say so; the plan stays as it was
            need = self._steady(needs(view, self.size.width, self.size.height), view.now)
            self.board.settle(need, self.board.zoom)
        self.log_pane.growth_in_title = "growth" not in self.board.placed
        for part in self.parts:
            if part.id in self.board.placed:
                part.show(view)
            else:
                part.view = view

    def _steady(self, need: Needs, now: float) -> Needs:
        if need.processes >= self._lines or not 0 <= now - self._lines_at < STEADY:
            self._lines, self._lines_at = need.processes, now
        return replace(need, processes=self._lines)

    @property
    def unfinished(self) -> bool:
        return self.log_pane.reader.looked_at < 1

    @property
    def pane(self) -> Pane:
        """The focused pane, or the log where that one is not shown."""
        focused = self.focused
        return focused if isinstance(focused, Pane) and focused.id in self.board.placed else self.log_pane

    def go_to(self, name: str) -> None:
        """Focus a pane; one that has no room is zoomed."""
        self.query_one(f"#{name}", Pane).focus(scroll_visible=False)
        if name not in self.board.placed or self.board.zoom is not None:
            self.set_zoom(name)

    def step(self, by: int) -> None:
        """Focus the next or the previous pane that is shown."""
        shown = [name for name in PANES if self.board.zoom is not None or name in self.board.placed]
        here = shown.index(self.pane.id) if self.pane.id in shown else 0
        self.go_to(shown[(here + by) % len(shown)])

    def back(self) -> bool:
        log = self.log_pane
        if self.board.zoom is not None:
            self.set_zoom(None)
        elif log.reader.look.pattern or log.reader.marks or log.reader.cursor is not None:
            log.unmark()
        elif log.reader.filter is not None or log.reader.lens:
            log.unsift()
        else:
            return False
        return True

    def set_zoom(self, name: str | None) -> None:
        """Give one pane the whole room, or give it back."""
        self.board.settle(self.board.need, name)
