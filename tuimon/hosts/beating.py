"""The heartbeat that keeps a program of ours alive on a host.

Our programs end when their stdin ends. A laptop that is closed, or a route that turns black, ends nothing: the host's
TCP waits for hours. So each program also ends when it was not told anything for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tuimon.hosts.host import Channel

EVERY = 5.0
"""Seconds between two beats."""
PATIENCE = 25.0
"""Seconds without one after which a program ends by itself: 30 s after the link fell silent nothing is left."""


async def beat(
    channel: Channel, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, word: bytes = b"\n"
) -> None:
    """Beat for ever; to our programs an empty line is no request."""
    while True:
        await sleep(EVERY)
        channel.write(word)
