"""The app for several hosts: an overview first, and TuimonApp's own board for the node that is opened."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace
from textual.binding import BindingType
from textual.screen import Screen

from tuimon.config import Settings
from tuimon.launch.nodes import NodesView
from tuimon.launch.view import LaunchView
from tuimon.ui.actions import NODES, Action
from tuimon.ui.app import TuimonApp, bindings
from tuimon.ui.boardscreen import BoardScreen
from tuimon.ui.nodes import NodeList, NodesScreen
from tuimon.ui.viewing import Viewing
from tuimon.watch.nodes import NodesWatch

HERE = frozenset({"copy", "save", "down", "up", "page_down", "page_up", "top", "end"})
"""Of the keys of the log and the panes, those that work on the overview too."""


class NodesApp(TuimonApp):
    """TuimonApp on several hosts. `view` is that of the node under the cursor, or on the board; keys ask its host."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(NODES)

    def __init__(self, watching: NodesWatch, settings: Settings) -> None:
        self._watches = watching
        self.nodes: NodesView = watching.nodes
        self._overview = NodesScreen()
        super().__init__(watching, settings)
        back = replace(self.by_id("back"), help="Leave zoom, search marks, this screen, or this node", footer=2)
        self.actions = (*NODES, *(back if action.id == "back" else action for action in self.actions))

    def get_default_screen(self) -> Screen[None]:
        """The overview."""
        return self._overview

    @property
    def whole(self) -> LaunchView:
        return self.nodes.whole

    @property
    def board(self) -> BoardScreen | None:
        """The open node's; None on the overview."""
        return next((screen for screen in self.screen_stack if isinstance(screen, BoardScreen)), None)

    # Drawing.

    def due(self) -> bool:
        """Also when another node has something new."""
        return self._watches.nodes is not self.nodes or super().due()

    def _draw(self) -> None:
        if self.frozen_at is None:
            self.nodes = self._watches.nodes
        if self.screen is self._overview:
            self._overview.take(self.nodes)
            self._choose(self._overview.list.cursor)
        super()._draw()

    def shown_on(self, screen: Viewing) -> LaunchView:
        """The overview shows the launch, other screens a node."""
        return self.nodes.whole if screen is self._overview else self.view

    def _choose(self, place: int) -> None:
        """Look at this node from now on."""
        if place != self._watches.chosen:
            self._watches.chosen = place
            self.view = self.nodes.at(place).view

    # Keys.

    def on_node_list_chosen(self, message: NodeList.Chosen) -> None:
        self._choose(message.place)
        if message.opened:
            self.action_press("open")

    def why(self, action: Action) -> str | None:
        """On the overview there is no log and no other pane; a screen that was asked of a node stays with it."""
        here = self.screen is self._overview
        if action.group in {"Log", "Panes"} and here and action.id not in HERE:
            return f"on a node's board; {self.key('open')} opens it"
        if action.group == "Nodes" and not here and (action.id == "open" or self.screen is not self.board):
            return f"{self.key('back')} first"
        return super().why(action)

    def perform(self, name: str) -> None:
        """Do it."""
        if name == "open":
            self.push_screen(BoardScreen(id=None))
        elif name in {"next_node", "previous_node"}:
            self._step(1 if name == "next_node" else -1)
        else:
            super().perform(name)

    def _step(self, by: int) -> None:
        rows = self._overview.list
        rows.take(self.nodes)
        line = rows.line + by
        if not 0 <= line < len(self.nodes.nodes):
            self.say(f"{self.view.host} is the {'last' if by > 0 else 'first'} of the nodes")
            return
        rows.move(by)
        self._choose(rows.cursor)
        if self.screen is self.board:
            self.switch_screen(BoardScreen(id=None))
