"""What every screen of ours is: it is shown views, and its footer names keys."""

from __future__ import annotations

from typing import ClassVar

from textual.screen import Screen

from tuimon.launch.view import LaunchView
from tuimon.ui.pane import Pane


class Viewing(Screen[None], inherit_bindings=False):
    """A screen that shows views."""

    KEYS: ClassVar[tuple[str, ...]] = ()
    """Actions in the footer; none = those that the table of actions puts there."""
    HINTS: ClassVar[bool] = False
    """Its banner has room for the keys that help in a red moment."""

    def show(self, view: LaunchView) -> None:
        """Take a new view."""
        raise NotImplementedError

    @property
    def unfinished(self) -> bool:
        """Something is still being looked through and wants the next frame."""
        return False

    @property
    def pane(self) -> Pane:
        """The part that keys move."""
        raise NotImplementedError

    def back(self) -> bool:
        """Leave what was opened on this screen; False where there is nothing."""
        return False
