"""One line to type in, over the footer; Enter takes it, Esc leaves it."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widget import Widget
from textual.widgets import Input

from tuimon.ui.boardscreen import BoardScreen


class Prompt(Input):
    """Asks for a search, a filter or a time."""

    def __init__(
        self,
        sign: str,
        words: str,
        take: Callable[[str], None],
        left: Callable[[], None] = lambda: None,
        *,
        secret: bool = False,
    ) -> None:
        hint = f"{sign} {words} · Enter goes, Esc leaves"
        super().__init__(placeholder=hint, id="prompt", compact=True, password=secret)
        self._take = take
        self._left = left
        self._before: Widget | None = None
        self._leaving = False

    def on_mount(self) -> None:
        self._before = self.screen.focused
        self.cursor_blink = False  # a blinking cursor is two frames a second
        self.focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self._leave()
        self._take(event.value)

    async def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            await self._leave()
            self._left()

    def on_blur(self) -> None:
        """A click went elsewhere: nobody types here any more. A terminal that is left for a while is no click."""
        if self.app.app_focus and not self._leaving:
            self._leaving = True
            self.remove()

    async def _leave(self) -> None:
        self._leaving = True
        if isinstance(self.screen, BoardScreen):
            self.screen.log_pane.focus(scroll_visible=False)  # what was asked for is there
        elif self._before is not None:
            self._before.focus(scroll_visible=False)
        await self.remove()
