"""Ending well: a closed terminal or a signal ends the app, also when the terminal no longer reads.

Measured: with SIGHUP ignored (nohup) a Textual app lives on at 64 % CPU after its terminal is gone; and when a terminal
stops reading, the event loop stands still in a full queue of 30 writes, so a signal must not depend on the loop alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

GRACE = 4.0
"""Seconds that a clean end may take before the process is ended hard (stopping the collector takes at most 3)."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def watch_signals(leave: Callable[[], None]) -> Callable[[], None]:
    """Call `leave` on SIGTERM and SIGHUP, and end hard if that does not help; returns what puts the handlers back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def ending(number: int, _frame: FrameType | None) -> None:
        timer = threading.Timer(GRACE, os._exit, (128 + number,))
        timer.daemon = True
        timer.start()
        leave()

    before = {number: signal.signal(number, ending) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def terminal_gone() -> bool:
    """True when the terminal that we began with has vanished."""
    try:
        return not os.isatty(sys.__stdin__.fileno()) if sys.__stdin__ else True
    except (OSError, ValueError):
        return True
