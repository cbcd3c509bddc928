"""`demo:SCENARIO` as a host: the way to it, its processes, its log and its port are real; only its GPUs are not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from tuimon.demo import nvml
from tuimon.demo.errors import DemoError
from tuimon.demo.launch import Launch
from tuimon.demo.scenarios import find, phases, trouble_at
from tuimon.hosts.address import Address
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.hosts.ssh import SshHost

if TYPE_CHECKING:
    from tuimon.demo.server import Server


class DemoHost:
    """A machine inside this process, reached over SSH on 127.0.0.1; the launch starts at the first connect."""

    def __init__(self, scenario: str = "silent-stall", pace: str = "brisk") -> None:
        """Raises UnknownScenario, UnknownPace."""
        self._scenario = find(scenario)
        self._pace = pace
        phases(self._scenario, pace)
        self.launch: Launch | None = None
        self.server: Server | None = None
        self._ssh: SshHost | None = None

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return f"demo:{self._scenario.name}"

    @property
    def detail(self) -> str:
        """How it is reached; empty before `connect`."""
        return self._ssh.detail if self._ssh else ""

    @property
    def trouble_at(self) -> float | None:
        """Seconds after the launch's start at which its trouble begins; None where there is none."""
        return trouble_at(self._scenario, self._pace)

    @property
    def probe_nvml(self) -> bytes | None:
        """The source that the probe is to use as pynvml; None before `connect`."""
        return nvml.source(self.launch.folder) if self.launch else None

    @property
    def probe_within(self) -> int | None:
        """The pid below which the probe is to look for the server; None before `connect`."""
        return self.launch.within if self.launch else None

    async def connect(self) -> None:
        """Open a link; the first time, start the launch and its SSH server. Raises HostUnreachable."""
        try:
            await self.open()
        except (DemoError, OSError) as error:
            raise HostUnreachable(f"{self.name} could not be started: {error}", getattr(error, "advice", "")) from error
        assert self._ssh is not None  # noqa: S101 - opened above
        await self._ssh.connect()

    async def open(self) -> None:
        """Start the launch and its SSH server without a link of our own. Raises DemoFailed, OSError."""
        from tuimon.demo.server import Server  # noqa: PLC0415  asyncssh costs 0.1 s; a first frame may not wait for it

        if self.launch is None:
            self.launch = await Launch.start(self._scenario, self._pace)
        if self.server is None:
            self.server = Server(self.launch)
            await self.server.listen()
            self._ssh = SshHost(
                self.name, Address("127.0.0.1", self.server.user, self.server.port), **self.server.access
            )

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a short command. Raises CommandTimedOut, HostUnreachable."""
        return await self._up().run(argv, stdin=stdin, timeout=timeout, limit=limit)

    async def start(self, argv: Sequence[str]) -> Channel:
        """Start a program of ours that ends when its stdin ends. Raises HostUnreachable."""
        return await self._up().start(argv)

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The bytes of a file from `offset` on, for ever."""
        return self._up().follow(path, offset, inode, mark)

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Write a file on the host, atomically. Raises TransferFailed."""
        await self._up().put(content, path, mode)

    async def lost(self) -> str:
        """Wait until the link breaks; the reason in words."""
        return await self._ssh.lost() if self._ssh else "not connected"

    async def close(self) -> None:
        """End link, server and launch: no process and no file is left. Safe to call twice."""
        ssh, server, launch = self._ssh, self.server, self.launch
        self._ssh = self.server = self.launch = None
        try:
            if ssh is not None:
                await ssh.close()
            if server is not None:
                await server.close()
        finally:
            if launch is not None:
                await launch.stop()

    def _up(self) -> SshHost:
        if self._ssh is None:
            raise HostUnreachable(f"{self.name} is not connected")
        return self._ssh
