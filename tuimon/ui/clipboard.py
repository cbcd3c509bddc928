"""Copying over ssh: the terminal is asked to take the text (OSC 52), through tmux as well."""

from __future__ import annotations

import os
from base64 import b64encode

LIMIT = 56_000
"""Bytes: 74,994 after base64 is what terminals take in one OSC 52 (k9s found the number)."""


def limited(text: str) -> str:
    """As much as a terminal takes."""
    return text.encode()[:LIMIT].decode(errors="ignore")


def sent(text: str, *, cut: bool) -> str:
    """What can be said of it: a terminal never answers whether it took the text, and tmux as it comes does not."""
    lines = text.count("\n") + 1
    words = f"sent {lines} line{'' if lines == 1 else 's'}{', cut to what it takes,' if cut else ''}"
    if _in_tmux():
        return f"{words} to the clipboard; in tmux this needs `set -g set-clipboard on`"
    return f"{words} to the terminal's clipboard (OSC 52)"


def _in_tmux() -> bool:
    return bool(os.environ.get("TMUX"))


def sequence(text: str) -> str:
    """OSC 52; inside tmux also wrapped, for those who let programs pass through but keep tmux's own clipboard."""
    code = b64encode(text.encode()).decode()
    plain = f"\x1b]52;c;{code}\x07"
    return f"{plain}\x1bPtmux;\x1b{plain}\x1b\\" if _in_tmux() else plain
