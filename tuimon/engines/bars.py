"""Progress bars of tqdm in all shapes that engines give them."""

from __future__ import annotations

import re

from msgspec import Struct

_BAR = re.compile(
    rb"(?P<desc>[^|\r\n]*?):?[ ]*(?P<pct>\d{1,3})%(?: Completed \| |\|[^|\r\n]*\| ?)"
    rb"(?P<n>[\d.]+[kMGTP]?)/(?P<total>[\d.]+[kMGTP]?) "
    rb"\[(?P<elapsed>[\d:.]+|\?)<(?P<eta>[\d:.?]+)(?:, *(?P<rate>[^\]\r\n]{0,60}))?\]"
)
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
    start: int = 0
    pace: bytes = b""
    """Time left and rate as written: they change whenever something moved."""


def parse(line: bytes) -> Bar | None:
    """The bar in a line, or None. Cheap for lines without one."""
    if b"%" not in line or b"|" not in line:
        return None
    match = _BAR.search(line)
    if not match:
        return None
    count, total = _number(match["n"]), _number(match["total"])
    if count is None or total is None:
        return None
    desc = match["desc"].rstrip(b" :")
    if desc.endswith(b")"):
        desc = desc[: desc.rfind(b"(")]
    desc = desc.strip()
    return Bar(
        desc[-80:].decode("utf-8", "replace"),
        count,
        total,
        _seconds(match["elapsed"]),
        match.end(),
        match.start(),
        match["eta"] + (match["rate"] or b""),
    )


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
