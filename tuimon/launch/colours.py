"""The colours that a server gave its lines. They stand beside the text, which is read, judged and searched without.

Only what colours text is understood (SGR: the 16 and 256 colours, RGB, bold, dim, italic, underlined, reversed); all
else that escapes can do is dropped. As with `less -R` each line begins plain: a reset that never came colours no more
than its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tuimon.launch.escapes import ANSI
from tuimon.launch.taming import tamed

LONGEST = 4096
"""Bytes of a line as it was written; a longer one is shown plain."""
MOST = 200
"""Changes of colour in a line; after those it goes on as it is."""
_SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}

Runs = tuple[tuple[int, str], ...]
"""Where in a text which colours begin: "" = none, else words such as `bold color(1) on #102030`."""


class Coloured(bytes):
    """A line's text without escapes, that knows how it was written."""

    written: bytes


def remember(segments: list[tuple[bytes, int]], body: bytes, first: int) -> list[tuple[bytes, int]]:
    """The segments of `body`, whose first line is number `first`, those of coloured lines with their colours."""
    lines = body.split(b"\n")
    return [(_coloured(text, lines[number - first]), number) for text, number in segments]


def _coloured(text: bytes, written: bytes) -> bytes:
    if len(written) > LONGEST or not _SGR.search(written):
        return text
    coloured = Coloured(text)
    coloured.written = written
    return coloured


@lru_cache(256)
def runs(written: bytes, text: str) -> Runs:
    """The colours of `text`, which is a line's end (or a part) as it is shown; none where it is not found there."""
    whole, found = "", list[tuple[int, str]]()
    for piece, pen in _pieces(written):
        found.append((len(whole), pen))
        whole += tamed(piece)
    start = len(whole) - len(text) if whole.endswith(text) else whole.find(text)
    if start < 0:  # a secret was taken out of it, or a character lies across an escape
        return ()
    before = next((pen for at, pen in reversed(found) if at <= start), "")
    inside = [(at - start, pen) for at, pen in found if start < at < start + len(text)]
    return tuple(_merged([(0, before), *inside]))


def _merged(changes: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    last = ""
    for place, (at, pen) in enumerate(changes):
        overtaken = place + 1 < len(changes) and changes[place + 1][0] == at
        if pen != last and not overtaken:
            yield at, pen
            last = pen


def _pieces(written: bytes) -> Iterator[tuple[bytes, str]]:
    """What stands between the escapes, and how it is coloured."""
    at, pen, changes = 0, Pen(), 0
    for escape in ANSI.finditer(written):
        yield written[at : escape.start()], pen.words()
        at = escape.end()
        sgr = _SGR.fullmatch(escape[0])
        if sgr and changes < MOST:
            pen.take(sgr[1])
            changes += 1
    yield written[at:], pen.words()


class Pen:
    """The colours in use."""

    def __init__(self) -> None:
        self._attributes: set[str] = set()
        self._front = self._back = ""

    def words(self) -> str:
        """As in `Runs`."""
        back = f"on {self._back}" if self._back else ""
        return " ".join(word for word in (*sorted(self._attributes), self._front, back) if word)

    def take(self, parameters: bytes) -> None:
        """What `ESC [ parameters m` asks for; what makes no sense is passed over."""
        numbers = [int(part[:4] or b"0") for part in re.split(rb"[;:]", parameters)[:64]]
        while numbers:
            number = numbers.pop(0)
            if number in {38, 48}:
                color = _extended(numbers)
                if color and number == 38:
                    self._front = color
                elif color:
                    self._back = color
            else:
                self._set(number)

    def _set(self, number: int) -> None:
        if number == 0:
            self.__init__()  # type: ignore[misc]  # as new
        elif number in _ATTRIBUTES:
            self._attributes.add(_ATTRIBUTES[number])
        elif number in _OFF:
            self._attributes.difference_update(_OFF[number])
        elif number in {39, 49}:
            self._front, self._back = ("", self._back) if number == 39 else (self._front, "")
        elif 30 <= number <= 37 or 90 <= number <= 97:
            self._front = f"color({number - 30 if number < 90 else number - 82})"
        elif 40 <= number <= 47 or 100 <= number <= 107:
            self._back = f"color({number - 40 if number < 100 else number - 92})"


def _extended(numbers: list[int]) -> str:
    """The colour after 38 or 48, taken from `numbers`; empty where it is none."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return f"color({min(255, numbers.pop(0))})"
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (min(255, value) for value in numbers[:3])
        del numbers[:3]
        return f"#{red:02x}{green:02x}{blue:02x}"
    return ""
