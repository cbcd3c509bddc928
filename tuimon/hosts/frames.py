"""The tail program on a host, and the frames it writes: a JSON header line, then exactly `length` raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from tuimon.hosts import plain
from tuimon.hosts.beating import PATIENCE, beat
from tuimon.hosts.errors import HostError
from tuimon.hosts.finding import unfit
from tuimon.hosts.host import LogPiece
from tuimon.hosts.quoting import last_line
from tuimon.probe import send
from tuimon.probe.program.speech import FORSAKEN

_LONGEST_HEADER = 16384  # a header carries a reason, never a line of the log

_LONGEST_WHOLE = 4 << 20


class _Header(Struct, frozen=True):
    kind: Literal["text", "rotated", "truncated", "skipped", "missing", "denied"]
    offset: int
    length: int = 0
    skipped: int = 0
    reason: str = ""
    inode: int | None = None
    mark: str | None = None
    age: float | None = None


class Frames:
    """Takes the stream apart; text is passed on as it comes, so a frame of any length needs no memory."""

    def __init__(self) -> None:
        self._pending = b""
        self._offset = 0
        self._left = 0
        self._inode: int | None = None
        self._mark: str | None = None
        self._age: float | None = None

    def feed(self, piece: bytes) -> Iterator[LogPiece]:
        """The pieces that are complete now."""
        self._pending += piece
        while self._pending:
            if self._left:
                if self._mark is not None and len(self._pending) < self._left <= _LONGEST_WHOLE:
                    return  # a mark stands for the whole of its frame: half of one would come twice
                text, self._pending = self._pending[: self._left], self._pending[self._left :]
                self._left -= len(text)
                yield LogPiece("text", self._offset, text, inode=self._inode, mark=self._mark, age=self._age)
                self._offset += len(text)
                continue
            line, newline, rest = self._pending.partition(b"\n")
            if not newline:
                # What a login shell prints at its start, or a liar; either way no header.
                self._pending = b"" if len(line) > _LONGEST_HEADER else line
                return
            self._pending = rest
            yield from self._header(line)

    def _header(self, line: bytes) -> Iterator[LogPiece]:
        try:
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if header.kind == "text":
            self._offset, self._left, self._inode = header.offset, max(header.length, 0), header.inode
            self._mark, self._age = header.mark, header.age
        else:
            yield LogPiece(
                header.kind,
                header.offset,
                skipped=header.skipped,
                reason=header.reason,
                inode=header.inode,
                mark=header.mark,
            )


class _Starter(plain.Running, Protocol):
    python: str


async def follow(
    host: _Starter, path: str, offset: int, inode: int | None, mark: str | None = None
) -> AsyncIterator[LogPiece]:
    """Run the tail on `host`; ends only by an error: HostUnreachable, or HostError when the tail itself ended."""
    status: int | None = FORSAKEN
    # It ends by itself where we stood still for too long (a laptop asleep, Ctrl-Z): then it goes on where it was.
    while status == FORSAKEN:
        channel = await host.start(send.tail_command(host.python))
        beating = asyncio.create_task(beat(channel))
        try:
            if send.is_stream(path):
                channel.write(send.stream_payload(path, offset, mark, PATIENCE))
            else:
                channel.write(send.tail_payload(path, offset, inode, PATIENCE))
            frames = Frames()
            while piece := await channel.read():
                for one in frames.feed(piece):
                    offset, inode, mark = one.offset + len(one.text), one.inode, one.mark or mark
                    yield one
            status = await channel.wait()
        finally:
            beating.cancel()
            channel.end_input()
    if unfit(status, last_line(channel.errors())) and not send.is_stream(path):
        async with aclosing(plain.follow(host, path, offset, inode)) as pieces:
            async for one in pieces:
                yield one
    raise HostError(f"The tail of {path} ended (exit {status}): {last_line(channel.errors())}")
