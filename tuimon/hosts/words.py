"""What asyncssh and the system raise, in the user's words."""

from __future__ import annotations

import asyncio
import socket

import asyncssh

from tuimon.hosts import hostkey
from tuimon.hosts.errors import AccessDenied, BadSshConfig, HostError, HostUnreachable, KeyLocked
from tuimon.hosts.keyring import Offer
from tuimon.hosts.quoting import quoted


async def refused(
    error: Exception,
    place: hostkey.Place,
    options: asyncssh.SSHClientConnectionOptions,
    known: object,
    offered: asyncssh.SSHKey | None,
    offer: Offer,
) -> HostError:
    """The error for a connection that did not come about."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        if offered is None:
            # A certificate by an authority that nobody trusts: ssh looks at the key in it then.
            offered = await _ask_for_key(place, options)
        return hostkey.refusal(place, _readable(known), offered, error.reason)
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" in error.reason.lower():
        # known_hosts has keys of other types only: asyncssh asks for those, and the server has none of them.
        return hostkey.refusal(place, _readable(known), await _ask_for_key(place, options), error.reason)
    if isinstance(error, asyncssh.PermissionDenied):
        return _denied(place, options, offer)
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


async def _ask_for_key(place: hostkey.Place, options: asyncssh.SSHClientConnectionOptions) -> asyncssh.SSHKey | None:
    if not place.direct:
        return None  # behind a jump host another machine may have the same address here
    try:
        async with asyncio.timeout(10):
            return await asyncssh.get_server_host_key(
                options.host, options.port, config=None, server_host_key_algs=hostkey.KINDS
            )
    except (asyncssh.Error, OSError, ValueError, TimeoutError):
        return None


def _denied(place: hostkey.Place, options: asyncssh.SSHClientConnectionOptions, offer: Offer) -> AccessDenied:
    """No key was accepted; an encrypted key that nobody unlocked is the usual reason."""
    text = f"{place.name} accepts none of your keys for the user {options.username}"
    if offer.locked:
        path = offer.locked[0]
        agent = "" if options.agent_path else "eval $(ssh-agent); "
        error = KeyLocked(
            f"{text}; {path} needs a passphrase, and the ssh agent has not got it"
            + (" (no agent runs)" if agent else ""),
            f"Unlock it with: {agent}ssh-add {path}",
        )
        error.path = path
        return error
    if offer.hardware:
        return AccessDenied(
            f"{text}; it would take {offer.hardware[0]}, whose hardware tuimon's own client cannot use here",
            f"Use the ssh program (--ssh-command ssh), or the agent: ssh-add {offer.hardware[0]}",
        )
    return AccessDenied(
        text, f"Check the user (USER@{place.host}), and that your public key is in its ~/.ssh/authorized_keys there"
    )
