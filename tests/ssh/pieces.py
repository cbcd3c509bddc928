"""The pieces of a log that is followed, each awaited with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tuimon.hosts.host import LogPiece


async def next_of(pieces: AsyncIterator[LogPiece]) -> LogPiece:
    async with asyncio.timeout(5):
        return await anext(pieces)


async def text_of(pieces: AsyncIterator[LogPiece], length: int) -> bytes:
    """So many bytes of text, or more; anything else on the way is wrong."""
    text = b""
    while len(text) < length:
        piece = await next_of(pieces)
        assert piece.kind == "text"
        text += piece.text
    return text
