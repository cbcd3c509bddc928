"""Calls that may never come back, from an event loop: a name server that is silent, a file on dead storage.

On daemon threads, because the interpreter waits at its end for every thread of an executor.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


async def aside(work: Callable[[], Result], name: str) -> Result:
    """What `work` returns or raises, on a thread of this name that nobody waits for once we are cancelled."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(_succeed, answer, work())
        except Exception as error:  # noqa: BLE001  it is raised where it is waited for
            settle = partial(_fail, answer, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answer


def _succeed(answer: asyncio.Future[Result], result: Result) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Result], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
