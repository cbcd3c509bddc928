"""The demo's SSH server: in this process, on 127.0.0.1, for one key that exists only in memory; runs real commands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import asyncssh

from tuimon.demo.launch import Launch

CHUNK = 1 << 16
USER = "demo"


class Server:
    """Listens until `close`; what it started ends with it."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._groups: set[int] = set()
        self.user = USER
        self.client_key = asyncssh.generate_private_key("ssh-ed25519", comment="tuimon-demo")
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")

    async def listen(self) -> None:
        """Open a free port."""
        public = self.client_key.export_public_key().decode()
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: _Session(self._connections),
            server_host_keys=[self.host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(public),
            process_factory=self._run,
            sftp_factory=True,
            encoding=None,
            agent_forwarding=False,
            gss_host=None,
        )

    @property
    def port(self) -> int:
        """Where it listens; 0 = it does not."""
        return self._acceptor.get_port() if self._acceptor else 0

    @property
    def access(self) -> dict[str, Any]:
        """What asyncssh needs to connect, and nothing of the user's own SSH set-up."""
        trusted: tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]] = (
            [self.host_key.convert_to_public()],
            [],
            [],
        )
        return {"known_hosts": trusted, "client_keys": [self.client_key], "config": None, "agent_path": None}

    @property
    def known_hosts(self) -> str:
        """The line of a known_hosts file for this server."""
        public = self.host_key.export_public_key().decode().strip()
        return f"[127.0.0.1]:{self.port} {public}\n"

    async def close(self) -> None:
        """Stop listening, drop every connection, end every command."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None
        # Closing the acceptor leaves connections alive (asyncssh).
        for connection in list(self._connections):
            connection.abort()
        for group in list(self._groups):
            _kill(group)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        if process.command is None:
            process.stderr.write(b"The demo's host only runs commands: ssh ... COMMAND\r\n")
            process.exit(1)
            return
        child = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", process.command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=self._environ(), start_new_session=True,
        )  # fmt: skip
        self._groups.add(child.pid)
        self._launch.note(child.pid, started=True)
        try:
            await _pump(process, child)
        finally:
            _kill(child.pid)
            await child.wait()
            self._groups.discard(child.pid)
            self._launch.note(child.pid, started=False)

    def _environ(self) -> Mapping[str, str]:
        """What sshd would give, and where the stand-in GPUs and the launch are."""
        names = ("HOME", "LANG", "LC_ALL", "TMPDIR", "SHELL", "LD_LIBRARY_PATH")
        given = {name: os.environ[name] for name in names if name in os.environ}
        # Our interpreter's folder first: a machine may have no other python3, and py-spy lies beside it.
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
        own = {"TUIMON_PYNVML": str(self._launch.pynvml), "TUIMON_WITHIN": str(self._launch.within)}
        return {**given, "PATH": path, "USER": USER, **own}


class _Session(asyncssh.SSHServer):
    """One client; keeps the server's list of connections."""

    def __init__(self, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.discard(self._connection)


async def _pump(process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Carry bytes by hand: asyncssh's redirect loses output at random when the command ends."""
    assert child.stdout is not None  # noqa: S101 - asked for
    assert child.stderr is not None  # noqa: S101
    feeding = asyncio.create_task(_feed(process, child))
    closed = asyncio.create_task(process.wait_closed())
    carrying = asyncio.gather(_carry(child.stdout, process.stdout), _carry(child.stderr, process.stderr))
    try:
        both: set[asyncio.Future[Any]] = {carrying, closed}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if closed.done():
            # The client is gone: nobody is left to end this command.
            return
        status = await child.wait()
        process.exit(status if status >= 0 else 128 - status)
    finally:
        for task in (feeding, closed, carrying):
            task.cancel()
        await asyncio.gather(feeding, closed, carrying, return_exceptions=True)


async def _feed(process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    assert child.stdin is not None  # noqa: S101 - asked for
    try:
        while sent := await process.stdin.read(CHUNK):
            child.stdin.write(sent)
            await child.stdin.drain()
    except (asyncssh.Error, OSError):
        pass
    finally:
        child.stdin.close()


async def _carry(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    try:
        while said := await source.read(CHUNK):
            target.write(said)
            await target.drain()
    except (asyncssh.Error, OSError):
        return


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)
