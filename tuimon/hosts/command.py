"""Short commands: they die with the link, and their output is bounded.

Over a root login sshd ignores signals, and a command that never writes outlives its connection (close, abort, a killed
client). So each command runs beside a `cat` on its stdin: when that ends first, the command is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

PIECE = 65536
"""Bytes asked for at a time."""

# The command cannot read our stdin here: the watching `cat` does. KILL after TERM, because a command may ignore TERM.
_GUARD = (
    'exec 3<&0; "$@" </dev/null 3<&- & c=$!; (cat <&3; kill $c; sleep 1; kill -9 $c) >/dev/null 2>&1 & w=$!; '
    "exec 3<&-; wait $c; r=$?; kill $w 2>/dev/null; exit $r"
)
# With input the command ends with its input; `head` gives it exactly what is meant for it.
_FED = 'n=$1; shift; head -c "$n" | "$@"'
# Temporary name, size check, rename: a broken link leaves neither a torn file nor a leftover.
_PUT = (
    't="$1.$$"; trap "exit 1" HUP INT TERM; trap "rm -f \\"\\$t\\"" EXIT; umask 077; mkdir -p "$(dirname "$1")" && '
    'cat >"$t" && [ "$(wc -c <"$t")" -eq "$2" ] && chmod "$3" "$t" && mv -f "$t" "$1"'
)


class Reader(Protocol):
    """The reading end that asyncio and asyncssh have in common."""

    async def read(self, n: int, /) -> bytes:
        """Up to `n` bytes; b"" at the end."""


def guarded(argv: Sequence[str], fed: int = 0) -> list[str]:
    """The argument list that runs `argv` so that it ends with our stdin; `fed` bytes of that are its own input."""
    if fed:
        return ["sh", "-c", _FED, "tuimon", str(fed), *argv]
    return ["sh", "-c", _GUARD, "tuimon", *argv]


def putting(path: str, size: int, mode: int) -> list[str]:
    """The argument list that writes `size` bytes of its stdin to `path`, atomically."""
    return ["sh", "-c", _PUT, "tuimon", path, str(size), f"{mode:o}"]


async def collect(stdout: Reader, stderr: Reader, limit: int, stop: Callable[[], None]) -> tuple[bytes, bytes, bool]:
    """Both streams up to `limit` bytes each, and whether they were cut; `stop` is called when one is full."""
    (out, cut_out), (err, cut_err) = await asyncio.gather(_keep(stdout, limit, stop), _keep(stderr, limit, stop))
    return out, err, cut_out or cut_err


async def _keep(reader: Reader, limit: int, stop: Callable[[], None]) -> tuple[bytes, bool]:
    kept = bytearray()
    cut = False
    while piece := await reader.read(PIECE):
        room = limit - len(kept)
        kept += piece[:room]
        if len(piece) > room and not cut:
            cut = True
            stop()  # the guard ends the command; what it still says is read and dropped
    return bytes(kept), cut


class Tail:
    """The last 4 KB of a stream, for its owner to quote."""

    def __init__(self) -> None:
        self._kept = b""

    async def drain(self, reader: Reader) -> None:
        """Read to the end: an unread stderr would fill its window and block the program."""
        while piece := await reader.read(PIECE):
            self._kept = (self._kept + piece)[-4096:]

    def text(self) -> str:
        """Decoded with replacement."""
        return self._kept.decode("utf-8", "replace")
