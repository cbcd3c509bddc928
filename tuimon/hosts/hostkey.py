"""Which host keys are trusted, and what to say about one that is not.

asyncssh reads `~/.ssh/known_hosts` alone and stops at a missing file or a broken line; ssh reads more and bears both.
Checking is never off: a config with `UserKnownHostsFile none` or `/dev/null` means the default file here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.hosts.errors import HostKeyUnknown
from tuimon.hosts.quoting import quoted

if TYPE_CHECKING:
    from asyncssh import SSHKey, SSHKnownHosts

KINDS = (
    "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-512,rsa-sha2-256,"
    "sk-ssh-ed25519@openssh.com"
)
"""Plain keys, no certificates."""
_USER_FILE = "~/.ssh/known_hosts"
_GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class Place(Struct, frozen=True):
    """Where a key was offered."""

    name: str
    """As the user wrote it, or the jump host's name."""
    login: tuple[str, ...]
    """The ssh command that leads there."""
    host: str
    port: int
    alias: str | None
    """HostKeyAlias."""
    direct: bool
    """False behind a jump host or a proxy command: ssh-keyscan does not reach it."""
    files: tuple[str, ...]
    """Where keys are looked up; the first is where a new one belongs."""
    unchecked: bool = False
    """The ssh config would have keys not checked at all."""

    @property
    def entry(self) -> str:
        """The name in known_hosts."""
        name = self.alias or self.host
        return name if self.port == 22 or self.alias else f"[{name}]:{self.port}"


_NO_FILES = {"/dev/null", "none"}


def switched_off(named: object) -> bool:
    """Whether the ssh config names files to look keys up in, but none that could hold any: nothing is checked then."""
    return isinstance(named, list) and set(map(str, named)) <= _NO_FILES


def files(user_files: Sequence[str], global_files: Sequence[str]) -> tuple[str, ...]:
    """The files to look keys up in, given what the ssh config says."""
    real = [path for path in user_files if path not in _NO_FILES] or [_USER_FILE]
    return tuple(str(Path(path).expanduser()) for path in (*real, *(global_files or _GLOBAL_FILES)))


def trusted(paths: Sequence[str]) -> SSHKnownHosts:
    """The keys of all readable files; a line that makes no sense is passed over, as ssh does."""
    return _trusted("\n".join(line for path in paths for line in _lines(path)))


@lru_cache(maxsize=4)
def _trusted(text: str) -> SSHKnownHosts:
    """3,000 hashed names take 30 ms, and 64 hosts have the same file."""
    import asyncssh  # noqa: PLC0415  110–150 ms: only once a connection is wanted

    try:
        return asyncssh.import_known_hosts(text)
    except ValueError:
        return asyncssh.import_known_hosts("\n".join(line for line in text.split("\n") if _makes_sense(line)))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _makes_sense(line: str) -> bool:
    import asyncssh  # noqa: PLC0415  as above

    try:
        asyncssh.import_known_hosts(line)
    except ValueError:
        return False
    return True


def refusal(place: Place, known: SSHKnownHosts, key: SSHKey | None, reason: str) -> HostKeyUnknown:
    """The error for a key that was not accepted: unknown, changed, or revoked."""
    if key is None:
        return HostKeyUnknown(
            f"The host key of {place.name} cannot be verified: {quoted(reason)}", f"Look at: {shlex.join(place.login)}"
        )
    offered = f"{_kind(key).upper()} {key.get_fingerprint('sha256')}"
    # Port None: the entry's name carries it, so that a key of the same machine's other port is no "change".
    listed, authorities, revoked, *_ = known.match(place.entry, "", None)
    if key in revoked or "revoked" in reason:
        return HostKeyUnknown(
            f"The host key of {place.name} ({offered}) is marked as revoked in known_hosts",
            "Do not connect; ask the machine's owner",
        )
    if listed or authorities:
        return HostKeyUnknown(
            f"THE HOST KEY OF {place.name} HAS CHANGED: it is now {offered}, but known_hosts holds another one. "
            "Either the machine was set up anew, or somebody is listening in",
            "Do not go on before its owner confirms the new fingerprint; then forget the old key with: "
            + shlex.join(["ssh-keygen", "-f", _holder(place), "-R", place.entry]),
        )
    return HostKeyUnknown(
        f"The host key of {place.name} is not known yet: {offered}",
        f"Compare this fingerprint with the one its owner gives you ({_there(key)} on that machine prints it); "
        + (_UNCHECKED if place.unchecked else "")
        + f"if they are equal, accept it with: {_accept(place, key)}",
    )


_UNCHECKED = "your ssh config would not check it at all, and to follow it there is --ssh-command ssh; "


def _kind(key: SSHKey) -> str:
    """`ed25519`, `ecdsa`, `rsa`: what ssh-keyscan and the key files call it."""
    name = key.get_algorithm()
    return next((kind for kind in ("ed25519", "ecdsa", "rsa", "dss") if kind in name), name)


def _there(key: SSHKey) -> str:
    return f"ssh-keygen -lf /etc/ssh/ssh_host_{_kind(key)}_key.pub"


def _accept(place: Place, key: SSHKey) -> str:
    if not place.direct or place.alias:
        return shlex.join(place.login)
    target = _short(place.files[0])
    scan = shlex.join(["ssh-keyscan", "-t", _kind(key), "-p", str(place.port), place.host])
    # On a fresh machine there is no ~/.ssh yet, and `>>` makes no folder.
    parent = Path(place.files[0]).parent
    folder = "" if parent.is_dir() else f"mkdir -p -m 700 {_short(str(parent))} && "
    return f"{folder}{scan} >> {target}"


def _short(path: str) -> str:
    home = str(Path.home())
    return f"~/{shlex.quote(path[len(home) + 1 :])}" if path.startswith(home + "/") else shlex.quote(path)


def _holder(place: Place) -> str:
    return next(_existing(place.files), place.files[0])


def _existing(paths: Sequence[str]) -> Iterator[str]:
    return (path for path in paths if Path(path).is_file())
