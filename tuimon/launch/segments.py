"""Bytes → segments: what lies between line ends, the redraws of a bar, and timestamps glued to a bar.

Any chunking of the same bytes gives the same segments. What is held is bounded, whatever comes: a line longer than
`LONGEST` keeps its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tuimon.launch.colours import remember
from tuimon.launch.escapes import clean

LONGEST = 256 * 1024
"""Bytes of one line that are kept: SGLang's argument dump is 7–19 KB."""
_SLICE = 1024 * 1024
# Tried where a line begins only: tried everywhere it would be quadratic, and most of the time of a big file.
_TOO_LONG = re.compile(rb"(?<![^\r\n])([^\r\n]{%d})[^\r\n]+" % LONGEST)
_LINE_END = re.compile(rb"\r+\n")
_STAMP = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_GLUE = b"[20"

Segment = tuple[bytes, int]
"""Text without its end, never blank, and the number of line feeds before it."""


class Splitter:
    """Splits a byte stream into segments. `feed` gives the finished ones, `pending` the unfinished last one."""

    def __init__(self) -> None:
        self._held = b""
        self._line = 0

    @property
    def pending(self) -> bytes:
        """The unfinished last segment: a bar that is redrawn without a line end lives here for minutes."""
        return clean(self._held.rstrip(b"\r")) if self._held else b""

    @property
    def line(self) -> int:
        """Line feeds seen so far."""
        return self._line

    def feed(self, text: bytes) -> list[Segment]:
        """The segments that `text` finishes."""
        if len(text) <= _SLICE:
            return self._slice(text)
        segments: list[Segment] = []
        for start in range(0, len(text), _SLICE):
            segments.extend(self._slice(text[start : start + _SLICE]))
        return segments

    def flush(self) -> list[Segment]:
        """The unfinished rest: at the end of a file, or when the log was replaced."""
        held, self._held = self._held.rstrip(b"\r"), b""
        return list(_pieces(clean(held), self._line))

    def _slice(self, text: bytes) -> list[Segment]:
        if self._held:
            text = self._held + text
        # Carriage returns at the very end may be the first half of "\r\n": they wait for what follows.
        bare = len(text.rstrip(b"\r"))
        cut = max(text.rfind(b"\n"), text.rfind(b"\r", 0, bare)) + 1
        rest = text[cut:bare]
        self._held = rest[:LONGEST] + (b"\r" if bare < len(text) else b"")
        if not cut:
            return []
        body = text[:cut]
        if cut > LONGEST and max(map(len, body.split(b"\n"))) > LONGEST:
            body = _TOO_LONG.sub(rb"\1", body)
        first = self._line
        segments = self._split(clean(body))
        return remember(segments, body, first) if b"\x1b[" in body else segments

    def _split(self, body: bytes) -> list[Segment]:
        if b"\r" in body:
            body = _LINE_END.sub(b"\n", body)
        lines = body.split(b"\n")
        rest = lines.pop()
        number = self._line
        self._line += len(lines)
        # str.count runs at memory speed, so a block without bars or glue costs no look at its single lines.
        if b"\r" not in body and body.count(_GLUE) == body.count(b"\n" + _GLUE) + body.startswith(_GLUE):
            return [(line, index) for index, line in enumerate(lines, number) if line and not line.isspace()]
        segments: list[Segment] = []
        for index, line in enumerate(lines, number):
            if b"\r" in line or line.find(_GLUE, 1) > 0:
                segments.extend(_pieces(line, index))
            elif line and not line.isspace():
                segments.append((line, index))
        segments.extend(_pieces(rest, self._line))
        return segments


def _pieces(line: bytes, number: int) -> Iterator[Segment]:
    for piece in line.split(b"\r") if b"\r" in line else (line,):
        # tqdm clears a bar by drawing blanks over it, and ends one with an empty line: neither says anything.
        if piece and not piece.isspace():
            yield from _unglued(piece, number)


def _unglued(piece: bytes, number: int) -> Iterator[Segment]:
    start = 0
    at = piece.find(_GLUE, 1)
    while at > 0:
        if _STAMP.match(piece, at):
            yield piece[start:at], number
            start = at
        at = piece.find(_GLUE, at + 1)
    yield piece[start:] if start else piece, number
