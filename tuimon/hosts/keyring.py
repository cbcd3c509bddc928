"""Private keys that cannot sign as they lie there: encrypted ones, and those that live in a piece of hardware.

Which of them a host would take is found out by offering the public half, as ssh does; nobody is asked for the
passphrase of a key that would not help. What is unlocked stays in this process's memory until it ends, as in an agent;
passphrases are not kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import asyncssh

_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


class Keyring:
    """What was unlocked, by path."""

    def __init__(self) -> None:
        self._keys: dict[str, asyncssh.SSHKey] = {}
        self._unlocking = threading.Lock()

    def unlock(self, path: str, passphrase: str) -> bool:
        """Take a key in; False where that is not its passphrase. Takes up to a second of CPU, for all hosts once."""
        with self._unlocking:
            if path in self._keys:
                return True
            try:
                self._keys[path] = asyncssh.read_private_key(Path(path).expanduser(), passphrase)
            except (asyncssh.KeyImportError, ValueError, OSError):
                return False
            return True

    def key(self, path: str) -> asyncssh.SSHKey | None:
        """The key, where it was unlocked."""
        return self._keys.get(path)


RING = Keyring()
"""One for all hosts of this process: a key that opens two of them is asked for once."""


class Offer:
    """What one connection may still offer when the agent's keys and the plain ones were refused."""

    def __init__(
        self, ring: Keyring, paths: Sequence[str], certificates: Sequence[asyncssh.SSHCertificate] = ()
    ) -> None:
        self.locked: list[str] = []
        """Encrypted keys that the host takes, or that cannot be offered without their passphrase."""
        self.hardware: list[str] = []
        """Keys in hardware that the host takes and that could not sign."""
        self._ring = ring
        self._paths = list(paths)
        self._certificates = certificates

    def pairs(self) -> list[asyncssh.SSHKeyPair]:
        """Those of the next file that has any; none when all were offered."""
        while self._paths:
            found = self._of(self._paths.pop(0))
            if found:
                return found
        return []

    def _of(self, path: str) -> list[asyncssh.SSHKeyPair]:
        unlocked = self._ring.key(path)
        if unlocked is not None:
            return list(asyncssh.load_keypairs([unlocked], None, self._certificates))
        kind = _kind(path)
        if kind is None:
            return []
        told = self.locked if kind == "locked" else self.hardware
        try:
            public = asyncssh.read_public_key(f"{Path(path).expanduser()}.pub")
        except (OSError, ValueError):
            told.append(path)
            return []
        offered = _Offered(public, lambda: told.append(path))
        return list(asyncssh.load_keypairs([offered], None, self._certificates))


class _Offered(asyncssh.SSHKeyPair):
    """A public key without its private half."""

    def __init__(self, key: asyncssh.SSHKey, took: Callable[[], None]) -> None:
        super().__init__(key.algorithm, key.algorithm, key.sig_algorithms, key.sig_algorithms, key.public_data, None)
        self._took = took

    def sign(self, data: bytes) -> bytes:
        """Called when the host takes the key: note that, and let the next one be tried."""
        del data
        self._took()
        raise ValueError("it cannot sign yet")


def files(options: asyncssh.SSHClientConnectionOptions) -> list[str]:
    """The user's private keys for this host: those that the ssh config names, or the usual ones."""
    named = options.config.get("IdentityFile")
    paths = [str(path) for path in named] if isinstance(named, list) else [f"~/.ssh/{name}" for name in _DEFAULT_KEYS]
    return [path for path in paths if Path(path).expanduser().is_file()]


def certificates(options: asyncssh.SSHClientConnectionOptions, paths: Sequence[str]) -> list[asyncssh.SSHCertificate]:
    """The certificates beside these keys, and those that the ssh config names; what cannot be read is left out."""
    named = options.config.get("CertificateFile")
    found = []
    for path in [*(f"{path}-cert.pub" for path in paths), *(named if isinstance(named, list) else ())]:
        try:
            found.append(asyncssh.read_certificate(Path(str(path)).expanduser()))
        except (OSError, ValueError):
            continue
    return found


def _kind(path: str) -> str | None:
    """`locked`, `hardware`, or None for a key that needs nothing of us."""
    try:
        key = asyncssh.read_private_key(Path(path).expanduser())
    except asyncssh.KeyImportError as error:
        return "locked" if "passphrase" in str(error).lower() else None
    except (OSError, ValueError, asyncssh.Error):
        return None
    return "hardware" if key.get_algorithm().startswith("sk-") else None
