"""The collector's event loop: name look-ups cannot hold up its end, stray errors become findings."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

Answer = Any
"""One of `socket.getaddrinfo`'s tuples."""


class Loop(asyncio.SelectorEventLoop):
    """Looks names up on daemon threads: a name server that does not answer takes 10–30 s, and the interpreter waits at
    its end for every thread of an executor.
    """  # fmt: skip

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  asyncio's own name
        proto: int = 0,
        flags: int = 0,
    ) -> list[Answer]:
        """`socket.getaddrinfo` on a thread that nobody waits for."""
        answer: asyncio.Future[list[Answer]] = self.create_future()

        def ask() -> None:
            try:
                settle = partial(_succeed, answer, socket.getaddrinfo(host, port, family, type, proto, flags))
            except OSError as error:
                settle = partial(_fail, answer, error)
            except UnicodeError as error:  # a label that is empty or longer than 63 characters
                settle = partial(_fail, answer, socket.gaierror(socket.EAI_NONAME, str(error)))
            if not self.is_closed():
                self.call_soon_threadsafe(settle)

        threading.Thread(target=ask, name="tuimon-names", daemon=True).start()
        return await answer


def _succeed(answer: asyncio.Future[list[Answer]], result: list[Answer]) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[list[Answer]], error: OSError) -> None:
    if not answer.done():
        answer.set_exception(error)


def new_loop(trouble: Callable[[str, BaseException], None]) -> asyncio.AbstractEventLoop:
    """A loop whose stray errors go to `trouble` instead of the terminal, which belongs to the screen."""
    loop = Loop()

    def stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        trouble("collecting", error if isinstance(error, BaseException) else RuntimeError(str(context.get("message"))))

    loop.set_exception_handler(stray)
    return loop
