"""Foreign text for a terminal: nothing in it moves the cursor, changes colours or hides."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping
from typing import TextIO

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Control characters and escapes, bidi and zero-width marks, lone surrogates, private use, line separators."""


def plain(text: str, longest: int = 400) -> str:
    """One line of at most `longest` characters."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join("·" if unicodedata.category(char) in _HIDDEN else char for char in text)


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line, also to a terminal that cannot write every character; a reader that went away is no error.

    Raises OSError where the answer itself, stdout, cannot be written; the rest is only talk.
    """
    stream = stream or sys.stdout
    try:
        stream.write(_writable(text, stream) + "\n")
        stream.flush()
    except BrokenPipeError:
        return
    except OSError:
        if stream is sys.stdout:
            raise


def say_json(document: Mapping[str, object]) -> None:
    """The one document on stdout."""
    say(json.dumps(document))


def _writable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
