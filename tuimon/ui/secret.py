"""The prompt for a secret that the collector wants: the passphrase of an encrypted key. Shown as dots, kept nowhere."""

from __future__ import annotations

from textual.screen import Screen

from tuimon.ui.prompt import Prompt
from tuimon.watch.watching import Asking


class Secret(Prompt):
    """Asks for it."""

    def __init__(self, words: str, asking: Asking) -> None:
        super().__init__("?", words, asking.give_secret, lambda: asking.give_secret(None), secret=True)


def attend(screen: Screen[object], asking: Asking) -> None:
    """Show the prompt while a secret is wanted, and take it away where it no longer is."""
    words = asking.secret_wanted
    shown = screen.query(Secret)
    if words and not shown:
        screen.mount(Secret(words, asking))
    elif not words:
        shown.remove()
