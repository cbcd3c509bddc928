"""What a host says, made fit for a sentence: nothing from outside is an escape code, or endless."""

from __future__ import annotations

LONGEST = 300
"""Characters."""


def quoted(said: str | bytes) -> str:
    """The text in one line, without control characters, cut."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    words = " ".join(text[: 4 * LONGEST].split())
    clean = "".join(letter for letter in words if letter.isprintable())
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"


def last_line(said: str) -> str:
    """The last line of what a program wrote to stderr: where the reason stands."""
    lines = said.strip().splitlines()
    return quoted(lines[-1]) if lines else "without a word"
