"""Short commands: they die with the link, and their output is bounded.

Over a root login sshd ignores signals, and a command that never writes outlives its connection (close, abort, a killed
client). So each command runs beside a `cat` on its stdin: when that ends first, the command is killed. A link that fell
silent never ends it, so there is a `timeout` too, where the host has one.

Login shells print what their start files say before our command runs; a mark tells where its own output begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

PIECE = 65536
"""Bytes asked for at a time."""
NOISE = 4096
"""Bytes kept of what stands before the mark."""

MARK = b"--tuimon--\n"
_BEGIN = "echo --tuimon--; echo --tuimon-- >&2; t=$1; shift; "
# Kills a child of the shell until it is gone: one signal may fall between fork and exec, or just before a `wait`.
_END = "while kill {0}; do sleep 0.01 || sleep 1; done 2>/dev/null"
# `timeout 9 true`: BusyBox before 1.30 has another syntax. Nobody ends before those it started: an orphan in a
# container would stay there as a zombie, because its first process is the server, which reaps nobody.
_WATCH = (
    'trap "test \\$! = $c || ' + _END.format("\\$!") + '; exit" TERM; '
    'if timeout 9 true; then timeout "$t" cat <&3 & else cat <&3 & fi; wait $!; kill $c; sleep 1; kill -9 $c'
)
# The command cannot read our stdin here: the watching `cat` does. KILL after TERM, because a command may ignore TERM.
_GUARD = (
    f'{_BEGIN}exec 3<&0; "$@" </dev/null 3<&- & c=$!; ({_WATCH}) >/dev/null 2>&1 & w=$!; '
    f"exec 3<&-; wait $c; r=$?; {_END.format('$w')}; exit $r"
)
# With input the command ends with its input; `head` gives it exactly what is meant for it.
_FED = (
    f'{_BEGIN}n=$1; shift; if timeout 9 true 2>/dev/null; then timeout "$t" head -c "$n"; else head -c "$n"; fi | "$@"'
)
# Temporary name, size check, rename: a broken link leaves neither a torn file nor a leftover.
_PUT = (
    't="$1.$$"; trap "exit 1" HUP INT TERM; trap "rm -f \\"\\$t\\"" EXIT; umask 077; mkdir -p "$(dirname "$1")" && '
    'cat >"$t" && [ "$(wc -c <"$t")" -eq "$2" ] && chmod "$3" "$t" && mv -f "$t" "$1"'
)


class Reader(Protocol):
    """The reading end that asyncio and asyncssh have in common."""

    async def read(self, n: int, /) -> bytes:
        """Up to `n` bytes; b"" at the end."""


def guarded(argv: Sequence[str], timeout: float, fed: int = 0) -> list[str]:
    """The argument list that runs `argv` so that it ends with our stdin; `fed` bytes of that are its own input.

    timeout: seconds after which we do not wait for it any more; it is given 5 s longer than that.
    """
    patience = str(int(timeout) + 5)
    if fed:
        return ["sh", "-c", _FED, "tuimon", patience, str(fed), *argv]
    return ["sh", "-c", _GUARD, "tuimon", patience, *argv]


def putting(path: str, size: int, mode: int) -> list[str]:
    """The argument list that writes `size` bytes of its stdin to `path`, atomically."""
    return ["sh", "-c", _PUT, "tuimon", path, str(size), f"{mode:o}"]


async def collect(stdout: Reader, stderr: Reader, limit: int, stop: Callable[[], None]) -> tuple[bytes, bytes, bool]:
    """What a guarded command wrote, up to `limit` bytes each, and whether it was cut; `stop` is called when that is so.

    Where the command was never reached, stderr is what the login shell said instead.
    """
    out, err = _Kept(limit, stop), _Kept(limit, stop)
    await asyncio.gather(out.read(stdout), err.read(stderr))
    if not out.marked:
        return b"", bytes(out.kept + err.kept), out.cut or err.cut
    return bytes(out.kept), bytes(err.kept), out.cut or err.cut


class _Kept:
    """One stream's bytes from the mark on."""

    def __init__(self, limit: int, stop: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.cut = False
        self.marked = False
        self._limit = limit
        self._stop = stop

    async def read(self, reader: Reader) -> None:
        """Read to the end, also what is not kept: a full window would block the command."""
        while piece := await reader.read(PIECE):
            self._take(piece)

    def _take(self, piece: bytes) -> None:
        if not self.marked:
            self.kept += piece
            at = self.kept.find(MARK)
            self.marked = at >= 0
            piece = bytes(self.kept[at + len(MARK) :]) if self.marked else b""
            del self.kept[: None if self.marked else -NOISE]
        room = self._limit - len(self.kept)
        self.kept += piece[: max(0, room)]
        if len(piece) > room and self.marked and not self.cut:
            self.cut = True
            self._stop()  # the guard ends the command; what it still says is read and dropped


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
