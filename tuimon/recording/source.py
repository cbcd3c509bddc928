"""Where a replay gets its events from: a recording, a folder of a recorded launch, or standard input."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from tuimon.recording import folder
from tuimon.recording.errors import UnreadableRecording
from tuimon.recording.form import MAGIC, MOST_RAW, Recorded
from tuimon.recording.reader import RecordingFile

MINUTE = 60.0
_PIECE = 1024 * 1024
_IN_MEMORY = 64 * 1024 * 1024


class Source(Protocol):
    """Events in order of time, in pieces that can each be read by itself."""

    @property
    def host(self) -> str:
        """Who was watched."""

    @property
    def firsts(self) -> Sequence[float]:
        """When each piece begins, tuimon's clock of then; rising."""

    @property
    def end(self) -> float:
        """`at` of the last event."""

    @property
    def notes(self) -> Sequence[str]:
        """What is wrong with it, each a sentence; grows while it is read."""

    def read(self, piece: int) -> Sequence[Recorded]:
        """The events of a piece."""


class FileSource:
    """A file that tuimon recorded."""

    def __init__(self, file: RecordingFile) -> None:
        self.host = file.header.host
        self._file = file
        self.firsts = [frame.first for frame in file.frames]
        for index in range(1, len(self.firsts)):
            self.firsts[index] = max(self.firsts[index], self.firsts[index - 1])
        last = file.read(len(file.frames) - 1) if file.frames else []
        self.end = last[-1].at if last else file.header.start

    @property
    def notes(self) -> Sequence[str]:
        """What is wrong with the file."""
        return tuple(self._file.notes)

    def read(self, piece: int) -> Sequence[Recorded]:
        """One frame of the file."""
        return self._file.read(piece)


class ListSource:
    """Events that are all at hand."""

    def __init__(self, host: str, events: Sequence[Recorded]) -> None:
        self.host = host
        self.notes: Sequence[str] = ()
        self._pieces: list[list[Recorded]] = []
        self.firsts: list[float] = []
        for event in events:
            if not self._pieces or event.at - self.firsts[-1] >= MINUTE:
                self._pieces.append([])
                self.firsts.append(event.at)
            self._pieces[-1].append(event)
        self.end = events[-1].at if events else 0.0

    def read(self, piece: int) -> Sequence[Recorded]:
        """One minute of events."""
        return self._pieces[piece]


def open_source(where: str) -> Source:
    """FILE, DIR, or `-` for standard input. Raises UnreadableRecording."""
    if where == "-":
        return FileSource(_kept(sys.stdin.buffer, "standard input"))
    path = Path(where)
    if path.is_fifo() or path.is_char_device():  # `<(…)` of a shell is one
        return FileSource(_piped(path))
    if not path.is_dir():
        return FileSource(RecordingFile.open(path))
    try:
        return ListSource(path.resolve().name, list(folder.events(path)))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UnreadableRecording(
            f"{path} cannot be read as a recording: {error!r}", "Its samples.jsonl is not in the expected form"
        ) from error


def _piped(path: Path) -> RecordingFile:
    try:
        with path.open("rb") as pipe:
            return _kept(pipe, path.name)
    except OSError as error:
        raise UnreadableRecording(
            f"{path} cannot be read: {error.strerror}", "Give a recording, or a folder"
        ) from error


def _kept(pipe: BinaryIO, name: str) -> RecordingFile:
    """A pipe cannot be looked up in, so it is kept (unnamed, gone with us), if it begins as a recording can."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
        begun = False
        while (begun or kept.tell() <= MOST_RAW) and (piece := pipe.read(_PIECE)):
            begun = begun or MAGIC in piece
            kept.write(piece)
        kept.seek(0)
        return RecordingFile(kept, name)  # type: ignore[arg-type]  # it is a file in all but name
