"""A few at a time, of many hosts that are each watched on a thread and a loop of their own."""

from __future__ import annotations

import asyncio
import threading
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

from msgspec import Struct


class _Waiting(Struct, order=True):
    urgency: tuple[float, ...]
    number: int
    loop: asyncio.AbstractEventLoop
    come: asyncio.Future[None]


class Turns:
    """At most so many hold a turn at a time; the others wait in line."""

    def __init__(self, most: int, longest: float | None = None) -> None:
        """longest: seconds after which the next one's turn has come though this one goes on."""
        self._free = most
        self._longest = longest
        self._lock = threading.Lock()
        self._line: list[_Waiting] = []
        self._numbers = count()

    @asynccontextmanager
    async def turn(self, urgency: tuple[float, ...] = ()) -> AsyncIterator[None]:
        """Wait for a turn and hold it; the smallest urgency goes first, then who came first."""
        await self._take(urgency)
        loop = asyncio.get_running_loop()
        held = _Held(self._next)
        end = None if self._longest is None else loop.call_later(self._longest, held.give_back)
        try:
            yield
        finally:
            if end is not None:
                end.cancel()
            held.give_back()

    async def _take(self, urgency: tuple[float, ...]) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            mine = _Waiting(urgency, next(self._numbers), loop, loop.create_future())
            insort(self._line, mine)
        try:
            await mine.come
        except asyncio.CancelledError:
            with self._lock:
                in_line = any(each is mine for each in self._line)
                self._line = [each for each in self._line if each is not mine]
            if not in_line:
                self._next()  # it had just come
            raise

    def _next(self) -> None:
        """Hand a turn on: to the first in line whose loop still runs."""
        while True:
            with self._lock:
                if not self._line:
                    self._free += 1
                    return
                first = self._line.pop(0)
            with suppress(RuntimeError):  # its loop is closed
                first.loop.call_soon_threadsafe(_settle, first.come)
                return


class _Held:
    """A turn, given back once."""

    def __init__(self, give: Callable[[], None]) -> None:
        self._give: Callable[[], None] | None = give

    def give_back(self) -> None:
        give, self._give = self._give, None
        if give is not None:
            give()


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
