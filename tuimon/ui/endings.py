"""Ending well: a closed terminal or a signal ends the app, also when the terminal no longer reads.

Measured: with SIGHUP ignored (nohup) a Textual app lives on at 64 % CPU after its terminal is gone; and when a terminal
stops reading, the event loop stands still in a full queue of 30 writes, so a signal must not depend on the loop alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType

GRACE = 2.0
"""Seconds that a clean end may take; then the collector is stopped (at most 3 s more) and the process is ended hard."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
PLAIN = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l"
"""Back to the normal screen: cursor on, mouse and bracketed paste off."""


def watch_signals(leave: Callable[[], None], stop: Callable[[], None]) -> Callable[[], None]:
    """Call `leave` on SIGTERM and SIGHUP, and if that does not help `stop`, then end; returns what undoes this."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before_app = _attributes()

    def hard(number: int) -> None:
        # Not daemonic as a whole: stop() may hang on a dead link, and then the process ends all the same.
        worker = threading.Thread(target=stop, daemon=True)
        worker.start()
        worker.join(3.0)
        _restore(before_app)
        os._exit(128 + number)

    def ending(number: int, _frame: FrameType | None) -> None:
        timer = threading.Timer(GRACE, hard, (number,))
        timer.daemon = True
        timer.start()
        leave()

    handlers = {number: signal.signal(number, ending) for number in SIGNALS}

    def undo() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    return undo


def _attributes() -> list[object] | None:
    try:
        return termios.tcgetattr(sys.__stdin__) if sys.__stdin__ else None
    except (termios.error, OSError, ValueError):
        return None


def _restore(attributes: list[object] | None) -> None:
    """Leave the terminal usable without waiting for it: it may not be reading."""
    with contextlib.suppress(termios.error, OSError, ValueError, AttributeError):
        fd = sys.__stderr__.fileno()  # type: ignore[union-attr]  # None raises AttributeError, which is fine here
        os.set_blocking(fd, False)
        os.write(fd, PLAIN)
        if attributes is not None:
            termios.tcsetattr(sys.__stdin__, termios.TCSANOW, attributes)  # type: ignore[arg-type]  # as tcgetattr gave it


def terminal_gone() -> bool:
    """True when the terminal that we began with has vanished."""
    try:
        return not os.isatty(sys.__stdin__.fileno()) if sys.__stdin__ else True
    except (OSError, ValueError):
        return True
