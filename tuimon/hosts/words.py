"""What asyncssh and the system raise, in the user's words."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import asyncssh

from tuimon.hosts import hostkey
from tuimon.hosts.errors import AccessDenied, BadSshConfig, HostError, HostUnreachable
from tuimon.hosts.quoting import quoted

_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


async def refused(
    error: Exception,
    place: hostkey.Place,
    options: asyncssh.SSHClientConnectionOptions,
    known: object,
    offered: asyncssh.SSHKey | None,
) -> HostError:
    """The error for a connection that did not come about."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return hostkey.refusal(place, _readable(known), offered, error.reason)
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" in error.reason.lower():
        # known_hosts has keys of other types only: asyncssh asks for those, and the server has none of them.
        return hostkey.refusal(place, _readable(known), await _ask_for_key(options), error.reason)
    if isinstance(error, asyncssh.PermissionDenied):
        return await asyncio.to_thread(_denied, place, options)
    return unreachable(error, place)


def unreachable(error: Exception, place: hostkey.Place) -> HostError:
    """The error for a machine that does not answer as it should."""
    where = f"{place.name} (port {place.port})"
    if isinstance(error, TimeoutError):
        return HostUnreachable(
            f"{where} does not answer", "Check the name, the network or VPN, and that the machine is up"
        )
    if isinstance(error, ConnectionRefusedError):
        return HostUnreachable(
            f"{where} refuses the connection", "Is sshd running there, on this port? Another port is NAME:PORT"
        )
    if isinstance(error, socket.gaierror):
        return HostUnreachable(f"The name {place.host} cannot be resolved", "Check the spelling, DNS or VPN")
    if isinstance(error, asyncssh.ChannelOpenError):
        return HostUnreachable(f"The jump host cannot reach {where}: {quoted(error.reason)}")
    if isinstance(error, (asyncssh.Error, OSError)):
        return HostUnreachable(f"No connection to {where}: {reason(error)}")
    return BadSshConfig(
        f"The ssh configuration or a key for {place.name} cannot be used: {quoted(str(error))}", "Correct it"
    )


def reason(error: Exception | None) -> str:
    """Why a link broke, in words."""
    if error is None:
        return "the host closed the connection"
    if isinstance(error, asyncssh.ConnectionLost) and "keepalive" in error.reason:
        return "the host has stopped answering"
    if isinstance(error, asyncssh.ConnectionLost):
        return "the connection broke"
    if isinstance(error, asyncssh.DisconnectError):
        return f"the host ended the connection ({quoted(error.reason)})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return quoted(str(error)) or type(error).__name__


def _readable(known: object) -> asyncssh.SSHKnownHosts:
    return known if isinstance(known, asyncssh.SSHKnownHosts) else asyncssh.SSHKnownHosts()


async def _ask_for_key(options: asyncssh.SSHClientConnectionOptions) -> asyncssh.SSHKey | None:
    try:
        async with asyncio.timeout(10):
            return await asyncssh.get_server_host_key(options.host, options.port, config=None)
    except (asyncssh.Error, OSError, ValueError, TimeoutError):
        return None


def _denied(place: hostkey.Place, options: asyncssh.SSHClientConnectionOptions) -> AccessDenied:
    """No key was accepted; an encrypted key that nobody unlocked is the usual reason."""
    text = f"{place.name} accepts none of your keys for the user {options.username}"
    locked = [path for path in _key_files(options) if _encrypted(path)]
    if locked:
        names = " and ".join(locked)
        return AccessDenied(
            f"{text}; {names} needs a passphrase, and the ssh agent has not got it"
            + ("" if options.agent_path else " (no agent runs)"),
            f"Unlock it with: {'' if options.agent_path else 'eval $(ssh-agent); '}ssh-add {locked[0]}",
        )
    return AccessDenied(
        text, f"Check the user (USER@{place.host}), and that your public key is in its ~/.ssh/authorized_keys there"
    )


def _key_files(options: asyncssh.SSHClientConnectionOptions) -> list[str]:
    named = options.config.get("IdentityFile")
    paths = [str(path) for path in named] if isinstance(named, list) else [f"~/.ssh/{name}" for name in _DEFAULT_KEYS]
    return [path for path in paths if Path(path).expanduser().is_file()]


def _encrypted(path: str) -> bool:
    try:
        asyncssh.read_private_key(Path(path).expanduser())
    except asyncssh.KeyImportError as error:
        return "passphrase" in str(error).lower()
    except (OSError, ValueError, asyncssh.Error):
        return False
    return False
