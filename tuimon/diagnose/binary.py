"""Our own py-spy: the static binary of the installed package, sent to hosts that have none."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import sysconfig
import zlib
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from tuimon.diagnose.errors import NoPySpy

MACHINES = {62: "x86_64", 183: "aarch64", 40: "armv7l", 3: "i686"}
"""ELF e_machine → `uname -m`."""
ADVICE = "Install py-spy in the server's environment on the host: pip install py-spy"


class Binary(Struct, frozen=True):
    """A py-spy that can be sent."""

    name: str
    """`py-spy-0.4.3-a41205d4`: its name in the host's cache."""
    machine: str
    sha256: str
    packed: bytes


@lru_cache(maxsize=1)
def own() -> Binary:
    """The py-spy that came with tuimon, packed (0.4 s the first time). Raises NoPySpy."""
    path = find()
    content = path.read_bytes()
    machine = MACHINES.get(int.from_bytes(content[18:20], "little")) if content[:4] == b"\x7fELF" else None
    if machine is None:
        raise NoPySpy(f"{path} is no Linux program, so it cannot be sent to the host", ADVICE)
    sha256 = hashlib.sha256(content).hexdigest()
    return Binary(f"py-spy-{version()}-{sha256[:8]}", machine, sha256, zlib.compress(content, 6))


def find() -> Path:
    """Where our py-spy is. Raises NoPySpy."""
    places = [Path(sysconfig.get_path("scripts")) / "py-spy"]
    try:
        files = importlib.metadata.files("py-spy") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    places += [Path(str(file.locate())) for file in files if file.name == "py-spy"]
    places += [Path(found) for found in [shutil.which("py-spy")] if found]
    for place in places:
        if place.is_file():
            return place
    raise NoPySpy("py-spy is not installed beside tuimon, so it cannot be sent to the host", ADVICE)


def version() -> str:
    """The version of our py-spy, `0` where it is not known."""
    try:
        return importlib.metadata.version("py-spy")
    except importlib.metadata.PackageNotFoundError:
        return "0"


@lru_cache(maxsize=1)
def identity() -> tuple[str, str] | None:
    """Name and sha256 of our py-spy, without packing it; None where there is none."""
    try:
        content = find().read_bytes()
    except (NoPySpy, OSError):
        return None
    sha256 = hashlib.sha256(content).hexdigest()
    return f"py-spy-{version()}-{sha256[:8]}", sha256
