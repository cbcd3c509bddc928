"""One file of a recording, being written. Every call may raise OSError; what was written before stays readable."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import zstandard
from msgspec import structs

from tuimon.recording.form import FRAME_RAW, FRAME_SECONDS, LEVEL, STARTS, Header, block_bytes, header_bytes

NEW = ".new"
"""Ending of a file whose header is not yet written."""


class Writer:
    """Begins the file `path` (which must not exist) and locks it: a locked file is never tidied away."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.size = 0
        self.unsynced = False
        begun = path.with_name(path.name + NEW)
        self._file = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._append(header_bytes(header))
            begun.rename(path)
        except OSError:
            os.close(self._file)
            with suppress(OSError):
                begun.unlink()
            raise
        self._zstd = zstandard.ZstdCompressor(level=LEVEL)
        self._frame = self._zstd.compressobj()
        self._frame_began: float | None = None
        self._frame_raw = 0

    def write(self, lines: Sequence[bytes], first: float, last: float) -> None:
        """Append a block with these lines; readable by others when this returns."""
        text = b"".join(lines)
        flags = 0
        began = self._frame_began
        # One large block may fill a frame of its own.
        if began is None or first - began >= FRAME_SECONDS or self._frame_raw + len(text) > FRAME_RAW:
            self._frame = self._zstd.compressobj()
            self._frame_began, self._frame_raw = first, 0
            flags = STARTS
        payload = self._frame.compress(text) + self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._frame_raw += len(text)
        self._append(block_bytes(payload, flags, len(text), (first, last)))

    def sync(self) -> None:
        """Onto the disk. A file that somebody removed is an error too: what is written there is lost."""
        if self.unsynced:
            self.unsynced = False
            os.fsync(self._file)
            if os.fstat(self._file).st_nlink == 0:
                raise OSError(errno.ENOENT, "the recording was removed")

    def rename(self, path: Path, engine: str | None) -> None:
        """Take another name, and say the engine in the header."""
        header = structs.replace(self.header, engine=engine)
        os.pwrite(self._file, header_bytes(header), 0)
        self.header = header
        self.path.rename(path)
        self.path = path

    def close(self) -> None:
        """End the file."""
        try:
            self.sync()
        finally:
            os.close(self._file)

    def _append(self, text: bytes) -> None:
        self.unsynced = True
        done = 0
        try:
            while done < len(text):
                done += os.pwrite(self._file, text[done:], self.size + done)
        except OSError:
            self._frame_began = None
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self.size += len(text)
