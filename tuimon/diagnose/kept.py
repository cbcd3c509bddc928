"""Keeps whole diagnoses in the state folder: a folder each, the report and the raw answers in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from tuimon.config import state_dir
from tuimon.diagnose.ladder import Diagnosis
from tuimon.diagnose.pyspy import printable
from tuimon.diagnose.saved import claim, redacted, safe, write
from tuimon.diagnose.written import as_text
from tuimon.launch.redact import redact

KEEP = 100
"""Diagnoses kept; the oldest go first."""
PATTERN = "diagnosis-[0-9]*"


class Kept(Struct, frozen=True):
    """Where a diagnosis was written."""

    paths: tuple[str, ...]
    """The report first; empty where nothing could be written."""
    note: str | None = None
    """Why it could not be written."""


def keep(report: str, found: Diagnosis, host: str, at: float, folder: Path | None = None) -> Kept:
    """Write report and raw answers; `at` in seconds since the epoch. A disk that is full or not ours never raises."""
    folder = folder or state_dir() / "diagnoses"
    moment = datetime.fromtimestamp(at, UTC)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = claim(folder, f"diagnosis-{moment:%Y%m%d-%H%M%S}", safe(host), "", partial(Path.mkdir, mode=0o700))
        paths = [place / name for name in write_all(place, files(report, found))]
        sweep(folder)
    except OSError as error:
        return Kept((), f"not saved: {folder}: {error.strerror or error}")
    return Kept(tuple(map(str, paths)))


def files(report: str, found: Diagnosis) -> dict[str, bytes]:
    """What is written, by name; the report first."""
    raw = {
        "report.md": report,
        "stacks.txt": printable(redact(as_text(found.stacks))),
        "stacks.json": as_json(found.stacks),
        "collectives.json": as_json(found.counted),
        "kernel.json": as_json(found.findings),
    }
    dumps = found.recorded.dumps if found.recorded else {}
    texts = {name: text.encode("utf-8", "replace") for name, text in raw.items()}
    return texts | {f"flight_recorder_{safe(rank)}.pickle": dump for rank, dump in dumps.items()}


def as_json(value: object) -> str:
    """Readable JSON without secrets."""
    return json.dumps(redacted(msgspec.to_builtins(value)), ensure_ascii=False, indent=1)


def write_all(place: Path, contents: Mapping[str, bytes]) -> list[str]:
    """Write them; their names."""
    for name, content in contents.items():
        write(place / name, content)
    return list(contents)


def sweep(folder: Path) -> None:
    """Keep the newest KEEP diagnoses."""
    old = sorted(path for path in folder.glob(PATTERN) if path.is_dir())
    for path in old[: max(0, len(old) - KEEP)]:
        shutil.rmtree(path, ignore_errors=True)
