"""This machine: subprocesses instead of channels, the log read directly."""

from __future__ import annotations

import asyncio
import getpass
import signal
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from tuimon.hosts import frames
from tuimon.hosts.command import PIECE, Tail, collect, guarded
from tuimon.hosts.errors import CannotStart, CommandTimedOut, TransferFailed
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.probe.send import is_stream

_GRACE = 2.0
"""Seconds for a program to end after its stdin did."""


class LocalHost:
    """The machine tuimon runs on."""

    def __init__(self, name: str = "localhost") -> None:
        self._name = name
        self._channels: set[LocalChannel] = set()
        self._ending: set[asyncio.Future[list[int | None]]] = set()
        self.python = "python3"
        """The interpreter for our programs."""

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def detail(self) -> str:
        """How it is reached."""
        return f"this machine, as {getpass.getuser()}"

    async def connect(self) -> None:
        """Nothing to open."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a short command; one that is not found exits with 127, as over SSH.

        Raises CommandTimedOut, CannotStart.
        """
        process, feed, stdout, stderr = await _spawn(guarded(argv, timeout, len(stdin)))
        try:
            async with asyncio.timeout(timeout):
                feed.write(stdin)
                out, err, cut = await collect(stdout, stderr, limit, feed.close)
                return Completed(await process.wait(), out, err, cut)
        except TimeoutError:
            raise CommandTimedOut(f"{argv[0]} did not end within {timeout:g} s") from None
        finally:
            feed.close()  # the guard ends the command
            if process.returncode is None:
                self._attend(process, stdout, stderr)

    async def start(self, argv: Sequence[str]) -> Channel:
        """Start a program of ours that ends when its stdin ends. Raises CannotStart."""
        channel = LocalChannel(*await _spawn(argv))
        self._channels.add(channel)
        return channel

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The bytes of a file from `offset` on, for ever."""
        if is_stream(path):
            return frames.follow(self, path, offset, inode, mark)
        from tuimon.hosts.tail import follow  # noqa: PLC0415  watchfiles takes 50 ms to import

        return follow(Path(path), offset, inode)

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Write a file, atomically. Raises TransferFailed."""
        try:
            await asyncio.to_thread(_write, Path(path), content, mode)
        except OSError as error:
            raise TransferFailed(f"{path} could not be written: {error.strerror}") from error

    async def lost(self) -> str:
        """This machine is never lost: waits for ever."""
        await asyncio.Event().wait()
        return ""

    async def close(self) -> None:
        """End our programs."""
        channels, self._channels = self._channels, set()
        await asyncio.gather(*(channel.close() for channel in channels), *self._ending)

    def _attend(self, process: Process, *streams: StreamReader) -> None:
        """See a command off that has outlived our interest: unread pipes would keep it, and us, waiting."""
        ending = asyncio.ensure_future(asyncio.gather(process.wait(), *(Tail().drain(stream) for stream in streams)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


def _write(target: Path, content: bytes, mode: int) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{id(content)}")
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        temporary.write_bytes(content)
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


async def _spawn(argv: Sequence[str]) -> tuple[Process, StreamWriter, StreamReader, StreamReader]:
    try:
        # A session of its own: a Ctrl-C in our terminal is for us, not for the programs.
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
    except OSError as error:  # not there, no rights, or no more files and processes for us
        raise CannotStart(f"{argv[0]} cannot be started: {error.strerror}") from error
    return (
        process,
        cast(StreamWriter, process.stdin),
        cast(StreamReader, process.stdout),
        cast(StreamReader, process.stderr),
    )


class LocalChannel:
    """A program of ours on this machine."""

    def __init__(self, process: Process, stdin: StreamWriter, stdout: StreamReader, stderr: StreamReader) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = Tail()
        self._draining = asyncio.create_task(self._stderr.drain(stderr))

    async def read(self) -> bytes:
        """Some bytes of its stdout; b"" when it has ended."""
        return await self._stdout.read(PIECE)

    def write(self, text: bytes) -> None:
        """Send bytes to its stdin; after its end they go nowhere, and `read` says that it has ended."""
        if not self._stdin.is_closing():
            self._stdin.write(text)

    def end_input(self) -> None:
        """Close its stdin; our programs end then."""
        self._stdin.close()

    async def wait(self) -> int | None:
        """Its exit status."""
        status = await self._process.wait()
        await self._draining
        return status

    def errors(self) -> str:
        """The last 4 KB of its stderr, decoded with replacement."""
        return self._stderr.text()

    async def close(self) -> None:
        """End it: stdin first, a signal to this program of ours after a grace."""
        self.end_input()
        try:
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
        self._draining.cancel()
