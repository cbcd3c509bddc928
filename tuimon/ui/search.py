"""Finding lines, forwards and backwards, without stopping the screen."""

from __future__ import annotations

import re

from tuimon.launch.view import Lines
from tuimon.ui.sieve import Test

LIMIT = 200_000
"""Lines looked at for one key press: about 0.1 s."""
STEP = 2_000


def compiled(text: str) -> re.Pattern[str] | None:
    """What the user typed: a regular expression, or literal text where it is none; capitals make it case-sensitive."""
    if not text:
        return None
    flags = re.NOFLAG if any(char.isupper() for char in text) else re.IGNORECASE
    try:
        return re.compile(text, flags)
    except re.error:
        return re.compile(re.escape(text), flags)


def find(lines: Lines, start: int, test: Test, *, back: bool) -> int | None:
    """The number (in `lines`) of the nearest line from `start` (included) on that passes."""
    return _back(lines, start, test) if back else _on(lines, start, test)


def _on(lines: Lines, start: int, test: Test) -> int | None:
    at = max(start, lines.first)
    stop = min(lines.end, at + LIMIT)
    while at < stop:
        for number, line in enumerate(lines.slice(at, min(at + STEP, stop)), at):
            if test(line):
                return number
        at += STEP
    return None


def _back(lines: Lines, start: int, test: Test) -> int | None:
    at = min(start + 1, lines.end)
    stop = max(lines.first, at - LIMIT)
    while at > stop:
        begin = max(at - STEP, stop)
        piece = lines.slice(begin, at)
        for place in range(len(piece) - 1, -1, -1):
            if test(piece[place]):
                return begin + place
        at = begin
    return None
