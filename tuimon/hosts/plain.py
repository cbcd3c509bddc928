"""A host without any Python: what a POSIX shell, `tail` and `nvidia-smi` can do there.

Each program is driven by our beats, one read of stdin per beat, so that it ends with its stdin or 25 s after the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from tuimon.hosts.beating import PATIENCE, beat
from tuimon.hosts.errors import HostError
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.hosts.quoting import last_line

BEATS = (
    f"t=; timeout 9 true 2>/dev/null && t='timeout {PATIENCE:.0f}'; "
    'while x=$($t dd bs=64 count=1 2>/dev/null) && test -n "$x"; do '
)
BEAT = b".\n"
"""A shell keeps nothing of an empty line, and would take it for the end."""
BEGIN = b"--tuimon--\n"
"""Stands before a program's own output; what comes before it is a login shell's."""
BIG = 2 << 20
LAST = 1 << 20
"""Of a log larger than 2 MB the last 1 MB is shown."""
# The command's stdin is not ours, or it would take our beats.
_BESIDE = f'echo --tuimon--; "$@" </dev/null & c=$!; {BEATS} :; done; kill $c 2>/dev/null; wait $c 2>/dev/null'


class Running(Protocol):
    """The part of a host that is needed here."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """As a host's."""

    async def start(self, argv: Sequence[str]) -> Channel:
        """As a host's."""


def beside(argv: Sequence[str]) -> list[str]:
    """The argument list that runs a program that never ends by itself, for as long as we beat."""
    return ["sh", "-c", _BESIDE, "tuimon", *argv]


async def follow(host: Running, path: str, offset: int, inode: int | None) -> AsyncGenerator[LogPiece]:
    """The bytes of a file by `tail -F`; of truncations only those are noticed that happen while the link is down."""
    size, here = await _look(host, path)
    if size is None:
        yield LogPiece("missing", max(offset, 0), reason="it cannot be read")
    if inode is not None and here is not None and inode != here:
        offset = 0
        yield LogPiece("rotated", 0, inode=here)
    elif size is not None and offset > size:
        offset = 0
        yield LogPiece("truncated", 0, inode=here)
    elif offset < 0 and size is not None and size > BIG:
        offset = size - LAST
        yield LogPiece("skipped", offset, skipped=offset, inode=here)
    offset = max(offset, 0)
    channel = await host.start(beside(["tail", "-c", f"+{offset + 1}", "-F", path]))
    beating = asyncio.create_task(beat(channel, word=BEAT))
    begun, heard = False, b""
    try:
        channel.write(BEAT)
        while piece := await channel.read():
            if not begun:
                heard = (heard + piece)[-(1 << 20) :]
                _, mark, piece = heard.partition(BEGIN)
                begun = bool(mark)
            if begun and piece:
                yield LogPiece("text", offset, piece, inode=here)
                offset += len(piece)
        raise HostError(f"tail of {path} ended: {last_line(channel.errors())}")
    finally:
        beating.cancel()
        channel.end_input()


async def _look(host: Running, path: str) -> tuple[int | None, int | None]:
    """Size and inode, None where they cannot be seen."""
    done = await host.run(["sh", "-c", 'wc -c <"$1"; ls -i "$1"', "tuimon", path])
    size, inode, *_ = [*done.stdout.split(), b"", b""]
    return int(size) if size.isdigit() else None, int(inode) if inode.isdigit() else None
