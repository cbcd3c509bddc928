"""Progress bars of tqdm in all shapes that engines give them."""

from __future__ import annotations

import re

from msgspec import Struct

_REST = re.compile(
    rb"%(?: Completed \| |\|[^|\r\n]{0,400}\| ?)(?P<n>[\d.]{1,20}[kMGTP]?)/(?P<total>[\d.]{1,20}[kMGTP]?) "
    rb"\[(?P<elapsed>[\d:.]{1,20}|\?)<(?P<eta>[\d:.?]{1,20})(?:, *(?P<rate>[^\]\r\n]{0,60}))?\]"
)
_PERCENT = re.compile(rb"\d{1,3}$")
_LONGEST = 200  # bytes of a description
_TRIES = 8  # percent signs that are looked at in one line
_SCALE = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Bar(Struct, frozen=True):
    """One redraw of a bar."""

    name: str
    """Its description without what changes from step to step; empty while tqdm has not been told one."""
    count: float
    total: float
    elapsed: float | None
    """Seconds by the bar's own clock."""
    end: int
    """Where the bar ends in the line: other processes write right behind it."""
    pace: bytes = b""
    """Time left and rate as written: they change whenever something moved."""


def parse(line: bytes) -> Bar | None:
    """The bar in a line, or None. Cheap for lines without one."""
    if b"%" not in line or b"|" not in line:
        return None
    match = _rest(line)
    if match is None:
        return None
    head = line[max(0, match.start() - _LONGEST) : match.start()]
    percent = _PERCENT.search(head)
    if percent is None:
        return None
    desc = head[: percent.start()].rpartition(b"|")[2].rpartition(b"\r")[2]
    count, total = _number(match["n"]), _number(match["total"])
    if count is None or total is None:
        return None
    desc = desc.rstrip(b" :")
    if desc.endswith(b")"):
        desc = desc[: desc.rfind(b"(")]
    desc = desc.strip()
    return Bar(
        desc[-80:].decode("utf-8", "replace"),
        count,
        total,
        _seconds(match["elapsed"]),
        match.end(),
        match["eta"] + (match["rate"] or b""),
    )


def _rest(line: bytes) -> re.Match[bytes] | None:
    """A bar from its percent sign on: a pattern for the whole of it would be quadratic on a long line."""
    at = 0
    for _ in range(_TRIES):
        at = line.find(b"%", at + 1)
        if at < 0:
            return None
        match = _REST.match(line, at)
        if match:
            return match
    return None


def _number(text: bytes) -> float | None:
    words = text.decode("ascii")
    scale = _SCALE.get(words[-1:], 1.0)
    try:
        return float(words.rstrip("kMGTP")) * scale
    except ValueError:
        return None


def _seconds(text: bytes) -> float | None:
    try:
        parts = [float(part) for part in text.decode("ascii").split(":")]
    except ValueError:
        return None
    total = 0.0
    for part in parts:
        total = total * 60 + part
    return total
