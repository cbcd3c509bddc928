"""Keeps looks at the stacks in the state folder, as text and JSON. A full disk never stops a diagnosis: it is said."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from tuimon.config import state_dir
from tuimon.diagnose.pyspy import printable
from tuimon.diagnose.written import as_document, as_text
from tuimon.launch.events import Stacks
from tuimon.launch.redact import redact

KEEP = 200
"""Looks kept; the oldest go first."""
_NAME = re.compile(r"^stacks-\d{8}-\d{6}(?:-\d+)?-.*\.(?:txt|json)$")


class Saved(Struct, frozen=True):
    """Where a look was written."""

    text: str | None
    """Path of the text; None where nothing could be written."""
    json: str | None
    note: str | None = None
    """Why it could not be written."""


def save(
    stacks: Stacks, host: str, at: float, facts: Mapping[str, str] | None = None, folder: Path | None = None
) -> Saved:
    """Write one look; `at` in seconds since the epoch, `facts` are lines for its head (verdict, log position …).

    Never raises for a disk that is full, read-only or not ours.
    """
    folder = folder or state_dir() / "stacks"
    moment = datetime.fromtimestamp(at, UTC)
    head = {"tuimon stacks": f"{host}, {moment:%Y-%m-%d %H:%M:%S} UTC", **(facts or {})}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = claim(folder, f"stacks-{moment:%Y%m%d-%H%M%S}", safe(host), ".txt", _reserve)
        document = text.with_suffix(".json")
        try:
            write(text, printable(redact(as_text(stacks, head))).encode("utf-8", "replace"))
            raw = {**as_document(stacks, str(text)), "facts": head, "event": msgspec.to_builtins(stacks)}
            write(document, json.dumps(redacted(raw), ensure_ascii=False, indent=1).encode("utf-8", "replace"))
        except OSError:
            text.unlink(missing_ok=True)
            raise
        sweep(folder)
    except OSError as error:
        return Saved(None, None, f"not saved: {folder}: {error.strerror or error}")
    return Saved(str(text), str(document))


def redacted(value: object) -> object:
    """The same tree with the secrets in its texts replaced."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: redacted(item) for name, item in value.items()}
    return [redacted(item) for item in value] if isinstance(value, list | tuple) else value


def safe(host: str) -> str:
    """The host's name as part of a file name."""
    return re.sub(r"[^\w.-]", "_", host)[:60] or "host"


def claim(folder: Path, stem: str, host: str, ending: str, make: Callable[[Path], None]) -> Path:
    """A path that `make` has made and nobody else has: many tuimons may look at one host within one second."""
    for number in range(1, 1000):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}-{host}{ending}"
        with suppress(FileExistsError):
            make(path)
            return path
    raise FileExistsError(errno.EEXIST, "no name is free")


def _reserve(path: Path) -> None:
    path.touch(mode=0o600, exist_ok=False)


def write(path: Path, content: bytes) -> None:
    """A whole file or none, readable by its owner only: stacks can name private paths."""
    draft = path.with_name(f".{path.name}.part")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sweep(folder: Path) -> None:
    """Keep the newest KEEP looks (two files each)."""
    files = sorted((path for path in folder.iterdir() if _NAME.match(path.name)), key=lambda path: path.name)
    for path in files[: max(0, len(files) - 2 * KEEP)]:
        path.unlink(missing_ok=True)
