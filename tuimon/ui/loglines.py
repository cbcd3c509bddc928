"""Log lines as rows: time, rank, a mark for what matters, the message; cut or wrapped, with search hits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from tuimon.launch import colours
from tuimon.launch.view import LogLine
from tuimon.ui.pens import PREFIX
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
    shown = line.text if look.wrap else line.text[: max(0, width - lead) + 1]
    text = clean(shown)
    # Cleaning may drop or add characters; then nobody knows which ones the colours are for.
    runs = colours.runs(line.written, line.text) if line.written and text == shown and not line.ours else ()
    rows: list[Row] = []
    at = 0
    for piece in _pieces(text, max(1, width - lead), wrap=look.wrap):
        body = tuple(highlight(dyed(piece, at, ink, runs), look.pattern))
        at += len(piece)
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


def dyed(text: str, at: int, ink: str, runs: colours.Runs) -> Row:
    """A piece of a line, which begins at character `at` of it, in the line's own colours, else in `ink`."""
    row: list[Span] = []
    place, own = 0, ink
    for start, words in runs:
        edge = max(0, min(start - at, len(text)))
        if edge > place:
            row.append((text[place:edge], ink))
            place = edge
        ink = PREFIX + words if words else own
    row.append((text[place:], ink))
    return tuple(row)


def highlight(row: Row, pattern: re.Pattern[str] | None) -> Iterator[Span]:
    """The text with its search hits in another ink."""
    if pattern is None:
        yield from row
        return
    hits = [hit.span() for hit in pattern.finditer("".join(text for text, _ in row)) if hit.end() > hit.start()]
    at = 0
    for text, ink in row:
        yield from _struck(text, ink, at, hits)
        at += len(text)


def _struck(text: str, ink: str, at: int, hits: list[tuple[int, int]]) -> Iterator[Span]:
    place = 0
    for start, end in hits:
        first, last = max(place, start - at), min(len(text), end - at)
        if first < last:
            yield text[place:first], ink
            yield text[first:last], "hit"
            place = last
    yield text[place:], ink


def rule(words: str, width: int, ink: str = "dim") -> Row:
    """`── silent for 4 m 12 s ──────`."""
    start = f"── {words} "
    return fit(((start + "─" * max(0, width - cells(start)), ink),), width)


def full_text(line: LogLine) -> str:
    """The whole line, for copying and searching."""
    if line.raw is not None:
        return line.raw
    return " ".join(part for part in (line.clock, line.rank, line.text) if part)
