"""What terminals are told between the letters: escape sequences of all kinds, also torn ones."""

from __future__ import annotations

import re

ANSI = re.compile(
    rb"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,400}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[ -/]*[0-~])?"
)


def clean(text: bytes) -> bytes:
    """Without ANSI escapes and NULs (a truncated log that is still written to begins with a hole of them)."""
    if b"\x1b" in text:
        text = ANSI.sub(b"", text)
    if b"\0" in text:
        text = text.replace(b"\0", b"")
    return text
