"""The screen's heartbeat: looks whether there may be something to draw, and calls for it only then.

No timer of Textual's: each of its beats is a message through several queues, 0.7 ms of CPU when nothing happens, and
four a second are a third of what a quiet screen costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context


class Pulse:
    """Calls `beat` on the running loop each time that `due` says so."""

    def __init__(self, due: Callable[[], bool], beat: Callable[[], None], pause: float) -> None:
        self._due = due
        self._beat = beat
        self.pause = pause
        """Seconds between looks."""
        self._next: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None

    def start(self) -> None:
        """Begin, from where the context is the app's."""
        self._loop = asyncio.get_running_loop()
        self._context = self._context or copy_context()
        self._next = self._loop.call_later(self.pause, self._look)

    def hurry(self) -> None:
        """Look now; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # closed meanwhile
                self._loop.call_soon_threadsafe(self._now, context=self._context)

    def stop(self) -> None:
        """No more looks."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _now(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._look()

    def _look(self) -> None:
        self.start()
        if self._due():
            self._beat()
