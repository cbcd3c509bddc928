"""Two servers to reach: asyncssh in this process, with faults to script, and a real sshd with its own habits."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tuimon.hosts.address import Address
from tuimon.hosts.ssh import SshHost


class Relay:
    """A wire between client and server that can be held (bytes stop, the link stays) or cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self.port = 0
        self.delay = 0.0
        """Seconds that each piece is on its way, in either direction."""

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def hold(self) -> None:
        self._flowing.clear()

    def release(self) -> None:
        """Bytes flow again: on new connections, and what was held on old ones."""
        self._flowing.set()

    def cut(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._ends |= {writer, far_writer}
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._carry(source, target))
            self._carrying.add(task)

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await source.read(65536):
                await self._flowing.wait()
                if self.delay:
                    asyncio.get_running_loop().call_later(self.delay, target.write, piece)
                    continue
                target.write(piece)
                await target.drain()
        target.transport.abort()


class FakeServer:
    """An SSH server in this process; runs real commands unless a fault says otherwise."""

    def __init__(self) -> None:
        self.user_key = asyncssh.generate_private_key("ssh-ed25519")
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.sessions = 0
        self.most_sessions = 100
        self.slowly = False
        self.noise = b""
        """What the login shell prints before a command's own output."""
        self.shell: tuple[str, ...] = ("/bin/sh",)
        """The user's login shell."""

    async def listen(self) -> None:
        self.acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: _Session(self),
            server_host_keys=[self.host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(self.user_key.export_public_key().decode()),
            encoding=None,
            gss_host=None,
        )
        self.port = self.acceptor.get_port()
        self.relay = Relay(self.port)
        await self.relay.listen()

    def host(self, **given: object) -> SshHost:
        """A host that reaches this server over the relay, without the developer's own SSH set-up."""
        trusted: object = ([self.host_key.convert_to_public()], [], [])
        own: dict[str, object] = {
            "known_hosts": trusted,
            "client_keys": [self.user_key],
            "config": None,
            "agent_path": None,
        }
        return SshHost("fake", Address("127.0.0.1", "tester", self.relay.port), **{**own, **given})

    def drop(self) -> None:
        """Pull the cable at the server's end."""
        for connection in list(self.connections):
            connection.abort()

    async def close(self) -> None:
        await self.relay.close()
        self.acceptor.close()
        self.drop()
        await self.acceptor.wait_closed()
        # Every command ends by itself now; what does not is a bug of ours.
        async with asyncio.timeout(5):
            await asyncio.gather(*self.tasks, return_exceptions=True)

    async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        child = await asyncio.create_subprocess_exec(
            *self.shell, "-c", process.command or "", stdin=-1, stdout=-1, stderr=-1, start_new_session=True
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        process.stdout.write(self.noise)
        work = [
            asyncio.create_task(self._feed(process, child.stdin)),
            asyncio.create_task(self._cut_off(process, child.stdin)),
            asyncio.create_task(self._carry(child.stdout, process.stdout)),
            asyncio.create_task(self._carry(child.stderr, process.stderr)),
        ]
        current = asyncio.current_task()
        assert current
        self.tasks.add(current)
        await asyncio.gather(*work[2:])
        status = await child.wait()
        with suppress(asyncssh.Error, OSError):
            process.exit(status)
        for task in work:
            task.cancel()

    async def _feed(self, process: asyncssh.SSHServerProcess[bytes], target: asyncio.StreamWriter) -> None:
        with suppress(asyncssh.Error, OSError):
            while piece := await process.stdin.read(65536):
                target.write(piece)
        target.close()

    async def _cut_off(self, process: asyncssh.SSHServerProcess[bytes], target: asyncio.StreamWriter) -> None:
        """What sshd does when the connection ends: the command's stdin ends."""
        await process.wait_closed()
        target.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
        # Read on when the client is gone: the command must not end by a full pipe, but by our guard.
        while piece := await source.read(1 if self.slowly else 65536):
            with suppress(asyncssh.Error, OSError):
                target.write(piece)
                await target.drain()


class _Session(asyncssh.SSHServer):
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self._server.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self._conn)

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes] | bool:
        self._server.sessions += 1
        if self._server.sessions > self._server.most_sessions:
            return False
        return asyncssh.SSHServerProcess(self._server.run, None, sftp_version=3, allow_scp=False)


@pytest.fixture
async def fake() -> AsyncIterator[FakeServer]:
    server = FakeServer()
    await server.listen()
    yield server
    await server.close()


class Sshd:
    """A real sshd on a high port, with throw-away keys, in a home of its own."""

    def __init__(self, folder: Path, program: str, *more: str) -> None:
        """`more`: further lines of its configuration."""
        self.folder = folder
        self._program = program
        self.home = folder / "home"
        self.user = getpass.getuser()
        (self.home / ".ssh").mkdir(parents=True)
        self.key = self.home / ".ssh" / "id_ed25519"
        _keygen(folder / "host_key")
        _keygen(self.key)
        shutil.copy(f"{self.key}.pub", folder / "authorized")
        self.port = _free_port()
        settings = (
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder}/host_key",
            f"AuthorizedKeysFile {folder}/authorized",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            *more,
        )
        (folder / "sshd_config").write_text("\n".join(settings) + "\n")
        self.start()

    def start(self, wrapper: tuple[str, ...] = ()) -> None:
        """Start it, or start it again on the same port."""
        self._process = subprocess.Popen(
            [*wrapper, self._program, "-D", "-e", "-f", str(self.folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    @property
    def name(self) -> str:
        return f"{self.user}@127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def known_hosts(self) -> Path:
        return self.home / ".ssh" / "known_hosts"

    def trust(self) -> None:
        """What a user's known_hosts says after the first `ssh`."""
        key = (self.folder / "host_key.pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key}")

    def host(self) -> SshHost:
        return SshHost(self.name)

    def wait_until_up(self) -> None:
        for line in self._process.stderr or ():
            if b"listening on" in line:
                return
        pytest.skip("sshd does not start here")

    def children(self) -> list[int]:
        """Pids of the processes that serve connections."""
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()


def _keygen(path: Path, passphrase: str = "") -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_sshd(folder: Path, *more: str) -> Sshd:
    """An sshd that listens; skips where there is none."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd on this machine")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # its privilege separation wants this folder
    server = Sshd(folder, program, *more)
    server.wait_until_up()
    return server


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    server = start_sshd(tmp_path)
    monkeypatch.setenv("HOME", str(server.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield server
    server.close()
