"""Log lines as rows: time, rank, a mark for what matters, the message; cut or wrapped, with search hits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from tuimon.launch.view import LogLine
from tuimon.ui.rows import Row, Span, cells, clean, cut, fit, left

MARKS = {
    "milestone": ("◆ ", "accent"), "warning": ("▲ ", "warn"), "error": ("✖ ", "bad"), "fatal": ("✖ ", "bad"),
}  # fmt: skip
INKS = {"milestone": "strong", "progress": "text", "info": "text", "warning": "warn", "error": "bad", "fatal": "bad"}
WRAP_LIMIT = 40
"""Rows that one wrapped line may take: a 4,000-character line must not fill the screen for ever."""


class Look(Struct, frozen=True):
    """How lines are shown."""

    times: bool = True
    wrap: bool = False
    rank_width: int = 0
    pattern: re.Pattern[str] | None = None


def entry(line: LogLine, width: int, look: Look, *, marked: bool = False) -> list[Row]:
    """The rows of one line, each at most `width` cells."""
    if line.gap:
        return [rule(clean(line.text), width)]
    ink = "faint" if line.ours else INKS[line.severity]
    start: list[Span] = [MARKS.get(line.severity, ("  ", "text"))]
    bare = not line.clock and not line.rank and width < 90  # a bar: its end says most
    if look.times and width >= 40 and not bare:  # below that the message needs the room
        start.append((left(clean(line.clock or ""), 8) + " ", "dim"))
    if look.rank_width and width >= 30 and not bare:
        start.append((left(clean(line.rank or ""), look.rank_width) + " ", "mem"))
    lead = sum(cells(text) for text, _ in start)
    # Cutting before cleaning: a line may be 4,000 characters, and what is not shown need not be cleaned.
    text = clean(line.text if look.wrap else line.text[: max(0, width - lead) + 1])
    rows: list[Row] = []
    for piece in _pieces(text, max(1, width - lead), wrap=look.wrap):
        body = tuple(highlight(piece, ink, look.pattern))
        row = (*start, *body) if not rows else ((" " * lead, "text"), *body)
        rows.append(tuple((part, "cursor") for part, _ in fit(row, width)) if marked else row)
    return rows


def _pieces(text: str, room: int, *, wrap: bool) -> Iterator[str]:
    if not wrap or cells(text) <= room:
        yield cut(text, room)
        return
    for _ in range(WRAP_LIMIT):
        piece, text = _split(text, room)
        yield piece
        if not text:
            return


def _split(text: str, room: int) -> tuple[str, str]:
    """The first piece of at most `room` cells, and the rest."""
    end = room
    while cells(text[:end]) > room:
        end -= 1
    return text[:end], text[end:]


def highlight(text: str, ink: str, pattern: re.Pattern[str] | None) -> Iterator[Span]:
    """The text with its search hits in another ink."""
    at = 0
    for hit in pattern.finditer(text) if pattern else ():
        if hit.end() > hit.start():
            yield text[at : hit.start()], ink
            yield hit.group(), "hit"
            at = hit.end()
    yield text[at:], ink


def rule(words: str, width: int, ink: str = "dim") -> Row:
    """`── silent for 4 m 12 s ──────`."""
    start = f"── {words} "
    return fit(((start + "─" * max(0, width - cells(start)), ink),), width)


def full_text(line: LogLine) -> str:
    """The whole line, for copying and searching."""
    if line.raw is not None:
        return line.raw
    return " ".join(part for part in (line.clock, line.rank, line.text) if part)
