"""The folder of recordings: names, and what goes when there are too many or too old ones."""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

ENDING = ".tuimon"
_STRANGE = re.compile(r"[^A-Za-z0-9.@-]+")


class Limits(Struct, frozen=True):
    """How much is kept."""

    total: int
    """Bytes of all recordings together."""
    days: float
    """Age of a recording at which it goes."""
    writers: int = 1
    """How many recordings are written at once, here: together they keep to the total."""

    @property
    def part(self) -> int:
        """Bytes after which a file is followed by another: what is being written never goes, so it may not be all."""
        return max(1024 * 1024, self.total // (8 * self.writers))


class Shelf:
    """Recordings in one folder, also those of other tuimons."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.limits = limits

    def make(self) -> None:
        """Make the folder, for this user alone. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, host: str, engine: str | None, start: float, part: int = 1) -> Path:
        """A free name: `gpu-17_sglang_2026-11-30T06-07-08Z.tuimon`."""
        when = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(start))
        name = f"{_word(host)}_{_word(engine or 'waiting')}_{when}{f'_part{part}' if part > 1 else ''}"
        path = self.folder / f"{name}{ENDING}"
        number = 2
        while path.exists() or path.with_name(path.name + ".new").exists():
            path = self.folder / f"{name}_{number}{ENDING}"
            number += 1
        return path

    def tidy(self, now: float | None = None) -> list[Path]:
        """Remove recordings that are too old, then the oldest until the rest is small enough; never a locked one."""
        now = time.time() if now is None else now
        found: list[tuple[float, int, Path]] = []
        for path in self.folder.glob(f"*{ENDING}*"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        found.sort()
        total = sum(size for _, size, _ in found)
        gone: list[Path] = []
        for mtime, size, path in found:
            if now - mtime <= self.limits.days * 86_400 and total <= self.limits.total:
                break
            if _remove(path):
                total -= size
                gone.append(path)
        return gone


def _word(text: str) -> str:
    return _STRANGE.sub("-", text)[:60].strip("-.") or "host"


def _remove(path: Path) -> bool:
    """Remove a file unless somebody writes it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)
