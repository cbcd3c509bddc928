"""The collector's event loop: name look-ups cannot hold up its end, stray errors become findings."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from tuimon.hosts.aside import aside

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
        look = partial(socket.getaddrinfo, host, port, family, type, proto, flags)
        try:
            return await aside(look, "tuimon-names")
        except UnicodeError as error:  # a label that is empty or longer than 63 characters
            raise socket.gaierror(socket.EAI_NONAME, str(error)) from error


def new_loop(trouble: Callable[[str, BaseException], None]) -> asyncio.AbstractEventLoop:
    """A loop whose stray errors go to `trouble` instead of the terminal, which belongs to the screen."""
    loop = Loop()

    def stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        trouble("collecting", error if isinstance(error, BaseException) else RuntimeError(str(context.get("message"))))

    loop.set_exception_handler(stray)
    return loop
