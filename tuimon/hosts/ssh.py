"""A machine over SSH. Thin: what needs asyncssh is in `wire.py` and `dial.py`, imported at the first connect.

asyncssh takes 110–150 ms to import, and a monitor's first frame may not wait for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from tuimon.hosts import address
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.frames import follow
from tuimon.hosts.host import Ask, Channel, Completed, LogPiece
from tuimon.hosts.lean import no_search
from tuimon.hosts.putting import put

if TYPE_CHECKING:
    from tuimon.hosts.wire import Wire


class SshHost:
    """A host reached over SSH; `given` goes to asyncssh before what the user's ssh config says."""

    def __init__(self, name: str, at: address.Address | None = None, **given: object) -> None:
        self._name = name
        self._address = at or address.parse(name)
        self._given = given
        self._wire: Wire | None = None
        self.python = "python3"
        """The interpreter for our programs there."""
        self.ask: Ask | None = None
        """Who asks the user for the passphrase of a key; None = nobody does."""

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def detail(self) -> str:
        """`root@10.1.2.3:22 via bastion`; empty before `connect`."""
        return self._wire.line.detail if self._wire else ""

    @staticmethod
    def prepare() -> None:
        """Import what `connect` needs: long, so not on a thread that somebody waits for."""
        with no_search():
            import tuimon.hosts.wire  # noqa: F401, PLC0415  asyncssh

    async def connect(self) -> None:
        """Open the link. Raises HostUnreachable, HostKeyUnknown, AccessDenied, BadSshConfig."""
        self.prepare()
        from tuimon.hosts.unlocking import dialled  # noqa: PLC0415  imports asyncssh
        from tuimon.hosts.wire import Wire  # noqa: PLC0415  as above

        await self.close()
        self._wire = Wire(self._name, await dialled(self._address, self._name, self._given, self.ask))

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a short command. Raises CommandTimedOut, HostUnreachable, ChannelRefused."""
        return await self._up().run(argv, stdin, timeout, limit)

    async def start(self, argv: Sequence[str]) -> Channel:
        """Start a program of ours that ends when its stdin ends. Raises HostUnreachable, ChannelRefused."""
        return await self._up().start(argv)

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The bytes of a file from `offset` on, for ever."""
        return follow(self, path, offset, inode, mark)

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Write a file on the host, atomically. Raises TransferFailed."""
        await put(self, content, path, mode)

    async def lost(self) -> str:
        """Wait until the link breaks; the reason in words."""
        return await self._wire.lost() if self._wire else "not connected"

    async def close(self) -> None:
        """Close the link; at most a second per hop, also when nothing answers."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def _up(self) -> Wire:
        if self._wire is None:
            raise HostUnreachable(f"{self._name} is not connected")
        return self._wire
