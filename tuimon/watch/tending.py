"""Keep a piece of work going: whatever it raises becomes something the user can read, never a dead thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tuimon.hosts.errors import HostError, HostUnreachable
from tuimon.launch.events import Finding
from tuimon.watch.board import Board
from tuimon.watch.clock import Clock
from tuimon.watch.pauses import Backoff

Result = TypeVar("Result")


async def tend(name: str, work: Callable[[], Awaitable[None]], board: Board) -> None:
    """Run `work` until it returns; after an error say it and run it again, later and later."""
    backoff = Backoff()
    said: set[str] = set()
    while True:
        began = board.clock.now()
        try:
            await work()
        except HostUnreachable:
            pass  # the link's own watcher says it, and ends us
        except HostError as error:
            if str(error) not in said and len(said) < 20:
                said.add(str(error))
                board.post(
                    Finding(
                        source=name, kind="host_error", text=str(error), severity="warning", fix=error.advice or None
                    )
                )
        except Exception as error:  # noqa: BLE001  the thread must live
            board.trouble(name, error)
        else:
            return
        if board.clock.now() - began > 60:
            backoff.reset()
        await board.clock.sleep(backoff.next())


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, Result]) -> Result:
    """`work`'s result; raises TimeoutError after `seconds` of our clock."""
    task = asyncio.ensure_future(work)
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        alarm.cancel()
        # Also where it is done: a failure that came in the moment of our own end is then nobody's, and not logged.
        task.cancel()


async def end(tasks: set[asyncio.Task[None]], seconds: float) -> None:
    """Cancel tasks and wait for them, at most `seconds`."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
