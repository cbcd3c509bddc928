"""Lines of the screen as plain values: a row is spans of (text, ink), measured in cells, safe to show.

Panes are pure functions from a view to rows; `pane.py` is the only place that turns rows into Textual's strips.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
"""Text and the name of its ink (see inks.py)."""
Row = tuple[Span, ...]

LONGEST_WORD = 16
"""Letters; what is longer is a name, and half of it says more than nothing."""
_AROUND = ".,:;!?()“”'\""
_DROPPED = {"Mn", "Me"}  # marks on their neighbour
_WIDE = {"W", "F"}
_JOINING = (range(0x1160, 0x1200), range(0xD7B0, 0xD800), range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400))
"""Vowels and finals of Hangul, flags, skin tones: joined with their neighbours in some terminals and not in others."""
_BLANK = {0x115F, 0x3164, 0xFFA0}
"""Hangul's fillers: nothing is drawn, in no cell, one or two."""


def clean(text: str) -> str:
    """Foreign text made harmless: no control, bidi, zero-width or combining character is left."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_tame(char) for char in unicodedata.normalize("NFC", text))


@lru_cache(8192)
def _tame(char: str) -> str:
    if char == "\t":
        return "    "
    if char.isascii() and char.isprintable():
        return char
    kind = unicodedata.category(char)
    if kind in _DROPPED:
        return ""
    if not char.isprintable():
        return " " if char.isspace() else "·"
    number = ord(char)
    if kind == "Mc" or number in _BLANK or any(number in part for part in _JOINING):
        return "·"
    # Kept where everybody agrees on its width.
    return char if cell_len(char) == (2 if unicodedata.east_asian_width(char) in _WIDE else 1) else "·"


def cells(text: str) -> int:
    """Width on the screen."""
    return len(text) if text.isascii() else cell_len(text)


def width_of(row: Row) -> int:
    """Width of a row in cells."""
    width = 0
    for text, _ in row:  # ten thousand times a minute also when nothing happens: no call for each
        width += len(text) if text.isascii() else cell_len(text)
    return width


def cut(text: str, width: int) -> str:
    """At most `width` cells; what is cut ends in …"""
    if width <= 0:
        return ""
    # A cell is at least a character here, so a long line is never measured whole.
    if len(text) <= width and cells(text) <= width:
        return text
    head = text[: width - 1]
    return (head if head.isascii() else set_cell_size(head, min(cells(head), width - 1)).rstrip()) + "…"


def shorten(text: str, width: int) -> str:
    """At most `width` cells of a sentence: cut between words; within one only where that saves half of the room, and
    what is cut is a name or a path."""
    short = cut(text, width)
    if short in (text, ""):
        return short
    head = short.removesuffix("…")
    space = head.rfind(" ")
    whole = head[space + 1 :] + text[len(head) :].partition(" ")[0]
    word = whole.strip(_AROUND).isalpha() and len(whole) <= LONGEST_WORD
    if text[len(head) : len(head) + 1] != " " and (space * 2 >= len(head) or (word and space > 0)):
        head = head[:space]
    return head.rstrip(" ,·:;") + "…"


def left(text: str, width: int) -> str:
    """Exactly `width` cells, text at the left."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def right(text: str, width: int) -> str:
    """Exactly `width` cells, text at the right."""
    text = cut(text, width)
    return " " * (width - cells(text)) + text


def fit(row: Row, width: int, fill: str = "text") -> Row:
    """Exactly `width` cells: cut with … or padded in the ink `fill`."""
    have = width_of(row)
    if have == width:
        return row
    if have < width:
        return (*row, (" " * (width - have), fill))
    kept: list[Span] = []
    room = width
    for text, ink in row:
        size = cells(text)
        if size > room or (size == room and text is not row[-1][0]):
            kept.append((left(cut(text + "…", room), room), ink))
            break
        kept.append((text, ink))
        room -= size
    return tuple(kept)


def spread(start: Row, end: Row, width: int, fill: str = "text") -> Row:
    """`start` at the left, `end` at the right; `end` goes when both do not fit."""
    gap = width - width_of(start) - width_of(end)
    if gap < 1:
        return fit(start, width, fill)
    return (*start, (" " * gap, fill), *end)


def flow(spans: Iterable[Row], width: int, separator: Span) -> Row:
    """As many pieces as fit into `width`, in order, with separators between; none is cut."""
    kept: list[Span] = []
    room = width
    for piece in spans:
        need = width_of(piece) + (cells(separator[0]) if kept else 0)
        if need > room:
            break
        if kept:
            kept.append(separator)
        kept.extend(piece)
        room -= need
    return tuple(kept)


def frame(rows: Sequence[Row], width: int, height: int, title: str, *, aside: str = "", ink: str = "line") -> list[Row]:
    """Rows in a rounded box of exactly this size, with a title and words at the right of the top line."""
    if width < 8 or height < 2:
        return [fit(row, width) for row in (*rows, *[()] * height)[:height]]
    name = cut(title, width - 6)
    words = cut(aside, width - 10 - cells(name)) if width - 10 - cells(name) >= 6 else ""
    end: Row = ((f" {words} ", "dim"), ("─╮", ink)) if words else (("─╮", ink),)
    rule = "─" * (width - 4 - cells(name) - width_of(end))
    top: Row = (("╭─ ", ink), (name, "title"), (" " + rule, ink), *end)
    body: list[Row] = [(("│ ", ink), *fit(row, width - 4), (" │", ink)) for row in rows[: height - 2]]
    blank: Row = (("│", ink), (" " * (width - 2), "text"), ("│", ink))
    body.extend([blank] * (height - 2 - len(body)))
    return [top, *body, (("╰" + "─" * (width - 2) + "╯", ink),)]


def plain(rows: Iterable[Row]) -> str:
    """Rows as text, for tests and for copying."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
