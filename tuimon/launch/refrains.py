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
_PROGRESS = re.compile(rb"%|\d ?/ ?\d")


class Refrains:
    """Knows a log's lines by their shape, digits aside."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, float]] = {}

    def is_one(self, line: bytes, at: float) -> bool:
        """Whether this line came before, again and again. A share or a count of a total is progress, not a refrain."""
        if _PROGRESS.search(line):
            return False
        shape = line[:512].translate(None, DIGITS)
        times, last = self._known.get(shape, (0, at))
        if times == 0 or at - last >= ONE_BURST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[shape] = (times + 1, at)
        return times > OFTEN or (times == OFTEN and at - last >= ONE_BURST)
