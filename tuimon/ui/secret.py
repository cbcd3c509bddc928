"""The prompt for a secret that the collector wants: the passphrase of an encrypted key. Shown as dots, kept nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import Screen

from tuimon.ui.prompt import Prompt
from tuimon.ui.viewing import Viewing
from tuimon.watch.watching import Asking


class Secret(Prompt):
    """Asks for it."""

    def __init__(self, words: str, asking: Asking) -> None:
        super().__init__("?", words, asking.give_secret, lambda: asking.give_secret(None), secret=True)
        self.words = words


def attend(screens: Sequence[Screen[object]], asking: Asking) -> None:
    """Show the prompt on the last of these while a secret is wanted; nowhere another question, or one that is gone."""
    words, top = asking.secret_wanted, screens[-1]
    for screen in screens:
        for shown in screen.query(Secret):
            if screen is not top or shown.words != words:
                shown.remove()
    # What is being typed into another prompt is no passphrase: that one first.
    if words and isinstance(top, Viewing) and top.is_mounted and not top.query(Prompt):
        top.mount(Secret(words, asking))
