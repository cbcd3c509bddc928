"""`[user@]name[:port]`, IPv6 in brackets."""

from __future__ import annotations

import re

from msgspec import Struct

from tuimon.hosts.errors import BadAddress

_FORM = "[user@]name[:port], IPv6 in brackets"
# The user's ssh config may hand both to a shell (`Match exec`, ProxyCommand) or to a program as words of its own; names
# come from scripts and assistants too. What OpenSSH refuses since 9.6; `$` and `\` are in the names of domain users.
_NO_HOST = re.compile(r"""^-|[\s\x00-\x1f\x7f/'`"$\\;&<>|(){}]""")
_NO_USER = re.compile(r"""^-|[\s\x00-\x1f\x7f/'`";&<>|(){}]|\\$""")


class Address(Struct, frozen=True):
    """Where to log in; what is None comes from the user's ssh config."""

    host: str
    user: str | None = None
    port: int | None = None


def parse(spec: str) -> Address:
    """Take an address apart. Raises BadAddress."""
    user, at, rest = spec.rpartition("@")
    if at and not user:
        raise BadAddress(f"{spec!r} names no user before the @", f"Write {_FORM}")
    host, port = _host_and_port(spec, rest)
    if not host or _NO_HOST.search(host) or _NO_USER.search(user):
        raise BadAddress(f"{spec!r} is not a host", f"Write {_FORM}")
    return Address(host, user or None, port)


def _host_and_port(spec: str, rest: str) -> tuple[str, int | None]:
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise BadAddress(f"{spec!r} has no closing bracket where one belongs", f"Write {_FORM}")
        return host, _port(spec, tail[1:]) if tail else None
    if rest.count(":") > 1:  # a bare IPv6 address
        return rest, None
    host, colon, text = rest.partition(":")
    return host, _port(spec, text) if colon else None


def _port(spec: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise BadAddress(f"{spec!r} has a port that is not a number from 1 to 65535", f"Write {_FORM}")
    return int(text)
