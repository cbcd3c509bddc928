"""Lines that come again and again: a heartbeat in words that no grammar knows.

Whether such a line is life, the rest of the launch tells: while something works beside it nobody asks, and where
nothing does it only says that a thread of it still beats.
"""

from __future__ import annotations

import re

from tuimon.engines.rule import DIGITS

OFTEN = 1
"""Times that a line came before it is a refrain: a heartbeat may begin with the hang, and red is due in 30 s."""
ONE_BURST = 2.0
"""Seconds: what several ranks say together is said once."""
_MOST = 4096  # different lines
_COUNT = re.compile(rb"(?<![\w.:,/-])\d{1,9}(?![\w.:,/-]| ?(?:[mun]?s|sec\w*|min\w*|h|hours?)\b)")
"""`step 25`, but no time, address or duration: that something lasts is no progress."""
_SHARE = re.compile(rb"\d[\d.,]{0,20} ?(?:%|/ ?\d|(?:[A-Za-z]{1,3} )?of \d)")
"""`40 %`, `3/8`, `12 GB of 600`; a date with slashes looks like one too, and stays the same all day."""


class Refrains:
    """Knows a log's lines by their shape, digits aside."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, float, list[bytes], list[int | None]]] = {}

    def is_one(self, line: bytes, at: float) -> bool:
        """Whether this line came before, again and again, and tells of no progress: another share, a higher count."""
        line = line[:512]
        shape = line.translate(None, DIGITS)
        shares: list[bytes] = _SHARE.findall(line)
        counts: list[int | None] = [int(count) for count in _COUNT.findall(line)]
        times, last, said, counted = self._known.get(shape, (0, at, shares, counts))
        again = at - last >= ONE_BURST
        if again:  # what fell or stood once is no counter: memory in use, a pid
            counts = [new if old and new and new > old else None for old, new in zip(counted, counts, strict=False)]
        if said != shares or (again and any(counts)):
            times = 0
        if times == 0 or again:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[shape] = (times + 1, at, shares, counts)
        return times > OFTEN or (times == OFTEN and again)
