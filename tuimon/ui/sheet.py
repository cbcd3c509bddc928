"""Screens beside the board: who, the verdict in one line, scrollable rows, the footer."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult

from tuimon.launch.view import LaunchView
from tuimon.ui.banner import Banner
from tuimon.ui.footer import Footer
from tuimon.ui.header import Header
from tuimon.ui.pane import Canvas, Painted, Pane
from tuimon.ui.rows import Row
from tuimon.ui.viewing import Viewing

SOON = 0.05
"""Seconds between looks for an answer that somebody waits for; looking costs nothing until there is one."""


class Sheet(Pane):
    """The rows of such a screen, in a frame."""

    ZOOMS = False

    def __init__(self, title: str) -> None:
        super().__init__(id="sheet")
        self.words = title

    def title(self, view: LaunchView | None, width: int) -> str:  # noqa: ARG002  the same at every width
        return self.words

    def slice(self, view: LaunchView) -> object:
        screen = self.screen
        assert isinstance(screen, SheetScreen)  # noqa: S101  a sheet lives nowhere else
        return screen.slice(view)

    def on_click(self, event: events.Click) -> None:
        screen = self.screen
        if isinstance(screen, SheetScreen) and 1 <= event.y < self.size.height - 1:
            screen.clicked(self.top + event.y - 1)

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        screen = self.screen
        assert isinstance(screen, SheetScreen)  # noqa: S101  a sheet lives nowhere else
        return screen.rows(view, width, height)


class SheetScreen(Viewing, inherit_bindings=False):
    """A screen that shows rows made from the view."""

    TITLE: ClassVar[str] = ""
    NARROWS: ClassVar[bool] = False
    """Can show only what matches."""
    IMPATIENT: ClassVar[bool] = False
    """Shows answers of the host, which are waited for."""
    KEYS: ClassVar[tuple[str, ...]] = ("back", "down", "up", "end", "copy", "quit")
    AUTO_FOCUS = "#sheet"

    @property
    def heading(self) -> str:
        """What stands in the frame."""
        return self.TITLE

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        yield Banner(id="banner")
        yield Sheet(self.heading)
        yield Footer(id="footer")

    def on_mount(self) -> None:
        if self.IMPATIENT:
            assert isinstance(self.app, Canvas)  # noqa: S101  our screens live nowhere else
            self.set_interval(SOON, self.app.tick)

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:
        """What is shown."""
        raise NotImplementedError

    def slice(self, view: LaunchView) -> object:
        """What `rows` depends on."""
        raise NotImplementedError

    def narrow(self, text: str) -> None:
        """Show only what matches; empty = all."""

    def clicked(self, line: int) -> None:
        """One of the rows was clicked, from 0."""

    @property
    def pane(self) -> Pane:
        return self.query_one("#sheet", Pane)

    def show(self, view: LaunchView) -> None:
        for part in self.query(Painted):
            part.show(view)
