"""Finding lines: by a pattern or by severity, forwards and backwards, without stopping the screen."""

from __future__ import annotations

import re
from collections.abc import Callable

from tuimon.launch.view import Lines, LogLine
from tuimon.ui.loglines import full_text

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


def says(pattern: re.Pattern[str]) -> Callable[[LogLine], bool]:
    """A test for lines that contain the pattern."""
    return lambda line: pattern.search(full_text(line)) is not None


def is_error(line: LogLine) -> bool:
    """A test for lines that report an error."""
    return line.severity in {"error", "fatal"}


def find(lines: Lines, start: int, test: Callable[[LogLine], bool], *, back: bool) -> int | None:
    """The number of the nearest line from `start` (included) on that passes."""
    return _back(lines, start, test) if back else _on(lines, start, test)


def _on(lines: Lines, start: int, test: Callable[[LogLine], bool]) -> int | None:
    at = max(start, lines.first)
    stop = min(lines.end, at + LIMIT)
    while at < stop:
        for line in lines.slice(at, min(at + STEP, stop)):
            if test(line):
                return line.number
        at += STEP
    return None


def _back(lines: Lines, start: int, test: Callable[[LogLine], bool]) -> int | None:
    at = min(start + 1, lines.end)
    stop = max(lines.first, at - LIMIT)
    while at > stop:
        for line in reversed(lines.slice(max(at - STEP, stop), at)):
            if test(line):
                return line.number
        at -= STEP
    return None
