"""One open SSH connection and the channels on it: at most four, bytes only.

Nothing here waits for the other side on the way out: over a silent link a channel's close never comes back, the
connection's does. Long-running programs are ours and end when their stdin ends; short ones run guarded (command.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncssh

from tuimon.hosts.command import PIECE, Tail, collect, guarded
from tuimon.hosts.dial import Line, hang_up
from tuimon.hosts.errors import ChannelRefused, CommandTimedOut, HostUnreachable
from tuimon.hosts.host import Completed
from tuimon.hosts.loginshell import for_login_shell
from tuimon.hosts.quoting import quoted
from tuimon.hosts.words import reason

CHANNELS = 4
"""At a time: sampler, log tail, and two for commands. OpenSSH's MaxSessions is 10."""


class Wire:
    """A connection that is (or was) up."""

    def __init__(self, name: str, line: Line) -> None:
        self.line = line
        self._name = name
        self._slots = asyncio.Semaphore(CHANNELS)
        self._attending: set[asyncio.Task[None]] = set()

    @property
    def gone(self) -> bool:
        """The connection has ended."""
        return self.line.lost.done()

    async def lost(self) -> str:
        """Wait until it ends; the reason in words."""
        # Shielded: a cancelled waiter must not cancel the future that others wait for.
        return reason(await asyncio.shield(self.line.lost))

    def broken(self, error: Exception | None = None) -> HostUnreachable:
        """The error for whoever was using it."""
        return HostUnreachable(
            f"The link to {self._name} broke: {reason(self.line.lost.result() if self.gone else error)}"
        )

    async def run(self, argv: Sequence[str], stdin: bytes, timeout: float, limit: int) -> Completed:
        """Run a short command. Raises CommandTimedOut, HostUnreachable, ChannelRefused."""
        try:
            async with asyncio.timeout(timeout), self._slots:
                process = await self._open(guarded(argv, timeout, len(stdin)))
                try:
                    return await self._complete(process, stdin, limit)
                finally:
                    process.close()
        except TimeoutError:
            raise CommandTimedOut(f"{argv[0]} did not end within {timeout:g} s on {self._name}") from None

    async def _complete(self, process: asyncssh.SSHClientProcess[bytes], stdin: bytes, limit: int) -> Completed:
        try:
            if stdin:
                process.stdin.write(stdin)
            out, err, cut = await collect(process.stdout, process.stderr, limit, process.stdin.write_eof)
            await process.wait_closed()
        except (asyncssh.Error, OSError) as error:
            raise self.broken(error) from error
        if process.returncode is None and self.gone:
            raise self.broken()
        return Completed(process.returncode, out, err, cut)

    async def start(self, argv: Sequence[str]) -> SshChannel:
        """Start a program that ends when its stdin ends. Raises HostUnreachable, ChannelRefused."""
        await self._slots.acquire()
        try:
            process = await self._open(argv)
        except BaseException:
            self._slots.release()
            raise
        channel = SshChannel(self, process)
        task = asyncio.create_task(channel.attend())
        self._attending.add(task)
        task.add_done_callback(self._ended)
        return channel

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._attending.discard(task)
        self._slots.release()

    async def _open(self, argv: Sequence[str]) -> asyncssh.SSHClientProcess[bytes]:
        try:
            return await self.line.connection.create_process(for_login_shell(argv), encoding=None)
        except asyncssh.ChannelOpenError as error:
            if self.gone:
                raise self.broken(error) from error
            raise ChannelRefused(
                f"{self._name} opens no further session: {quoted(error.reason)}",
                "Raise MaxSessions in its sshd_config (10 is the default), or use an account that may run commands",
            ) from error
        except (asyncssh.Error, OSError) as error:
            raise self.broken(error) from error

    async def close(self) -> None:
        """Close the connection, not the channels; at most a second per hop."""
        for task in self._attending:
            task.cancel()
        await hang_up(self.line)


class SshChannel:
    """A program of ours on the other side."""

    def __init__(self, wire: Wire, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._wire = wire
        self._process = process
        self._stderr = Tail()

    async def attend(self) -> None:
        """Read its stderr until the channel has closed."""
        try:
            await self._stderr.drain(self._process.stderr)
            await self._process.wait_closed()
        except (asyncssh.Error, OSError):
            return  # `read` says it

    async def read(self) -> bytes:
        """Some bytes of its stdout; b"" when it has ended. Raises HostUnreachable when the link breaks."""
        try:
            piece = await self._process.stdout.read(PIECE)
        except (asyncssh.Error, OSError) as error:
            raise self._wire.broken(error) from error
        if not piece and self._wire.gone:
            raise self._wire.broken()
        return piece

    def write(self, text: bytes) -> None:
        """Send bytes to its stdin; after its end they go nowhere, and `read` says that it has ended."""
        if not self._process.stdin.is_closing():
            self._process.stdin.write(text)

    def end_input(self) -> None:
        """Close its stdin; our programs end then."""
        if not self._process.stdin.is_closing():
            self._process.stdin.write_eof()

    async def wait(self) -> int | None:
        """Its exit status, None where unknown."""
        try:
            await self._process.wait_closed()
        except (asyncssh.Error, OSError):
            return None
        return self._process.returncode

    def errors(self) -> str:
        """The last 4 KB of its stderr, decoded with replacement."""
        return self._stderr.text()
