"""Open one SSH connection, over its jump hosts, the way the user's ssh would.

Jump hosts are dialled here one by one: options given to asyncssh's `connect` do not reach those it opens by itself, so
they would have no keepalive and other known hosts.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh
from msgspec import Struct

from tuimon.hosts import hostkey, keyring
from tuimon.hosts.address import Address, parse
from tuimon.hosts.errors import BadSshConfig, HostError
from tuimon.hosts.turns import Turns
from tuimon.hosts.words import refused

CONNECT_TIMEOUT = 10.0
"""Seconds for one hop, where the ssh config names no ConnectTimeout."""
KEEPALIVE = 5
"""Seconds between questions to the other side."""
KEEPALIVE_COUNT = 3
"""A link is lost after KEEPALIVE × (this + 1) seconds without an answer."""
_MOST_HOPS = 8
HANDSHAKES = Turns(8, longest=1.0)
"""At a time. One takes 20–30 ms of our CPU, and with 64 at once the screen gets its share of that; and sshd refuses at
random what goes beyond ten (MaxStartups), also on the jump host that all of them share. One that takes longer than a
second only waits for the other side: it holds up nobody."""
# Its warnings would be written over the screen.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())
_CONFIGS = ("~/.ssh/config", "/etc/ssh/ssh_config")
_CIPHER = "^aes128-gcm@openssh.com"  # first choice: 0.7 × the CPU of ssh's own default, measured

# After the kinds that known_hosts has: asked for those alone, a server whose key changed its kind just hangs up.
_KEY_KINDS = f"+{hostkey.KINDS}"


class Line(Struct, frozen=True):
    """An open connection."""

    connection: asyncssh.SSHClientConnection
    lost: asyncio.Future[Exception | None]
    """Done when the connection has ended."""
    jumps: tuple[asyncssh.SSHClientConnection, ...]
    """Outermost first."""
    detail: str
    """`root@10.1.2.3:22 via bastion`"""


class _Client(asyncssh.SSHClient):
    """Remembers the key that was offered, and why the connection ended; has more of our keys where the usual fail."""

    def __init__(self, offer: keyring.Offer) -> None:
        self.offer = offer
        self.offered: asyncssh.SSHKey | None = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Called for a key that is not in known_hosts; nothing else is ever accepted."""
        del host, addr, port
        self.offered = key
        return False

    def public_key_auth_requested(self) -> list[asyncssh.SSHKeyPair] | None:
        """Called when the agent's keys and the plain ones were refused."""
        return self.offer.pairs() or None

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(exc)


async def dial(address: Address, name: str, given: Mapping[str, object]) -> Line:
    """Connect and log in; `given` goes to asyncssh before the ssh config does.

    Raises HostUnreachable, HostKeyUnknown, AccessDenied, BadSshConfig.
    """
    return await _dial(address, name, given, ())


async def _dial(
    address: Address, name: str, given: Mapping[str, object], on_the_way: tuple[Address, ...], over: Line | None = None
) -> Line:
    try:
        _no_circle(address, name, on_the_way)
        options = await _options(address, name, given)
        if over is None and isinstance(options.tunnel, str):
            for hop in options.tunnel.split(","):
                over = await _hop(hop.strip().removeprefix("ssh://"), name, given, (*on_the_way, address), over)
        return await _connect(options, name, _login(address), given, over)
    except BaseException:
        await hang_up(over)
        raise


def _no_circle(address: Address, name: str, on_the_way: tuple[Address, ...]) -> None:
    if address in on_the_way or len(on_the_way) > _MOST_HOPS:
        raise BadSshConfig(f"The jump hosts of {name} lead in a circle", "Correct ProxyJump in the ssh config")


async def _hop(
    hop: str, name: str, given: Mapping[str, object], on_the_way: tuple[Address, ...], over: Line | None
) -> Line:
    try:
        return await _dial(parse(hop), hop, given, on_the_way, over)
    except HostError as error:
        # The same error (KeyLocked knows its path), in other words.
        error.args = (f"On the way to {name}: {error}",)
        raise


async def _options(address: Address, name: str, given: Mapping[str, object]) -> asyncssh.SSHClientConnectionOptions:
    chosen: dict[str, Any] = {
        "host": address.host,
        "keepalive_interval": KEEPALIVE,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "encoding": None,
        # Whatever the config says for people at a terminal is not for us.
        "request_pty": False,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "command": None,
    }
    if address.port:
        chosen["port"] = address.port
    if address.user:
        chosen["username"] = address.user
    if "config" not in given:
        chosen["config"] = _readable_configs()
    try:
        # In asyncssh's own executor: reading a config may run commands (Match exec).
        options: asyncssh.SSHClientConnectionOptions
        options = await asyncssh.SSHClientConnectionOptions.construct(None, **(chosen | dict(given)))
    except (ValueError, OSError, asyncssh.Error) as error:
        raise BadSshConfig(f"The ssh configuration for {name} cannot be used: {error}", "Correct it") from error
    return options


def _readable_configs() -> list[str]:
    paths = (Path(path).expanduser() for path in _CONFIGS)
    return [str(path) for path in paths if path.is_file() and os.access(path, os.R_OK)]


async def _connect(
    options: asyncssh.SSHClientConnectionOptions,
    name: str,
    login: tuple[str, ...],
    given: Mapping[str, object],
    over: Line | None,
) -> Line:
    config = options.config
    user_files = config.get("UserKnownHostsFile")
    place = hostkey.Place(
        name=name,
        login=login,
        host=options.host,
        port=options.port,
        alias=options.host_key_alias,
        direct=over is None and not options.proxy_command,
        files=hostkey.files(_texts(user_files), _texts(config.get("GlobalKnownHostsFile"))),
        unchecked=hostkey.switched_off(user_files),
    )
    client = _Client(_offer(options, given))
    more: dict[str, Any] = {"client_factory": lambda: client}
    if "known_hosts" not in given:
        more["known_hosts"] = hostkey.trusted(place.files)
    if "encryption_algs" not in given and config.get("Ciphers") is None:
        more["encryption_algs"] = _CIPHER
    if "server_host_key_algs" not in given and config.get("HostKeyAlgorithms") is None:
        more["server_host_key_algs"] = _KEY_KINDS
    if options.connect_timeout is None:
        more["connect_timeout"] = CONNECT_TIMEOUT
    if over is not None:
        more["tunnel"] = over.connection
    try:
        async with HANDSHAKES.turn():
            connection = await asyncssh.connect(options.host, options.port, config=None, options=options, **more)
    except (asyncssh.Error, OSError, ValueError, TimeoutError) as error:
        raise await refused(error, place, options, more.get("known_hosts"), client.offered, client.offer) from error
    via = f" via {over.detail}" if over else " via ProxyCommand" if options.proxy_command else ""
    jumps = (*over.jumps, over.connection) if over else ()
    host = f"[{options.host}]" if ":" in options.host else options.host
    return Line(connection, client.lost, jumps, f"{options.username}@{host}:{options.port}{via}")


def _offer(options: asyncssh.SSHClientConnectionOptions, given: Mapping[str, object]) -> keyring.Offer:
    paths = [] if "client_keys" in given else keyring.files(options)
    return keyring.Offer(keyring.RING, paths, keyring.certificates(options, paths))


def _login(address: Address) -> tuple[str, ...]:
    user = f"{address.user}@" if address.user else ""
    port = ("-p", str(address.port)) if address.port else ()
    return ("ssh", *port, f"{user}{address.host}")


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


async def hang_up(line: Line | None, deadline: float = 1.0) -> None:
    """Close a connection and those below it; over a silent link it is cut after `deadline` seconds."""
    if line is None:
        return
    for connection in (line.connection, *reversed(line.jumps)):
        connection.close()
        try:
            async with asyncio.timeout(deadline):
                await connection.wait_closed()
        except (TimeoutError, OSError, asyncssh.Error):
            connection.abort()
