"""The files of one watch, one after the other: a file for each launch, and parts of it where it grows too large."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tuimon import __version__
from tuimon.launch.events import ServerFound
from tuimon.recording.form import VERSION, Header, Recorded, line
from tuimon.recording.opening import Opening
from tuimon.recording.secrets import cleaned
from tuimon.recording.shelf import Shelf
from tuimon.recording.writer import Writer

BLOCK_RAW = 2 * 1024 * 1024
"""Bytes of lines after which a block is closed."""


class Series:
    """Puts events where they belong. Every call may raise OSError; then `abandon`, and the next write begins anew."""

    def __init__(self, shelf: Shelf, host: str) -> None:
        self._shelf = shelf
        self._host = host
        self._writer: Writer | None = None
        self._part = 1
        self._opening = Opening()
        self._lines: list[bytes] = []
        self._raw = 0
        self._span = (0.0, 0.0)

    @property
    def path(self) -> Path | None:
        """The file being written."""
        return self._writer.path if self._writer else None

    def write(self, events: Sequence[Recorded]) -> None:
        """Write clean events; readable by others when this returns."""
        for event in events:
            if isinstance(event, ServerFound) and not self._opening.same(event):
                self._launch(event)
            elif self._writer is not None and self._writer.size > self._shelf.limits.part:
                self._next_part()
            if self._writer is None:
                self._begin(event.at)
            self._put(event)
            self.remember(event)
        self._flush()

    def remember(self, event: Recorded) -> None:
        """Keep what a file that begins after this must tell first."""
        self._opening.remember(event)

    def sync(self) -> None:
        """Onto the disk."""
        if self._writer is not None:
            self._writer.sync()

    def abandon(self) -> None:
        """The file cannot be written any more."""
        writer, self._writer = self._writer, None
        self._lines, self._raw = [], 0
        if writer is not None:
            self._part += 1
            writer.close()

    def close(self) -> None:
        """The end."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    # Files.

    def _launch(self, event: ServerFound) -> None:
        """The first server gives its file a better name; another one begins a new file."""
        self._part = 1
        if self._opening.server is None and self._writer is not None:
            start = self._writer.header.start
            self._writer.rename(self._shelf.path(self._host, _engine(event), start), event.engine)
            return
        self._flush()
        self.close()
        self._opening.forget()
        self._begin(event.at, event)

    def _next_part(self) -> None:
        self._flush()
        last = self._span[1]
        self.close()
        self._part += 1
        self._begin(last)

    def _begin(self, at: float, server: ServerFound | None = None) -> None:
        """A file is complete in itself: it tells first what a watch that came only now would learn."""
        self._shelf.make()
        server = server or self._opening.server
        engine = server.engine if server else None
        header = Header(VERSION, self._host, at, engine, __version__, self._part)
        self._writer = self._free(header, _engine(server) if server else None)
        self._shelf.tidy()
        for event in self._opening.told(at):
            self._put(cleaned(event) if isinstance(event, ServerFound) else event)

    def _free(self, header: Header, name: str | None) -> Writer:
        """A new file; another tuimon may take the same name in the same instant."""
        for _ in range(5):
            with suppress(FileExistsError):
                return Writer(self._shelf.path(self._host, name, header.start, header.part), header)
        raise FileExistsError(errno.EEXIST, "no name is free")

    # Blocks.

    def _put(self, event: Recorded) -> None:
        text = line(event)
        if self._raw + len(text) > BLOCK_RAW:
            self._flush()
        first = self._span[0] if self._lines else event.at
        self._lines.append(text)
        self._raw += len(text)
        self._span = (first, max(first, event.at))

    def _flush(self) -> None:
        lines, self._lines, self._raw = self._lines, [], 0
        if lines and self._writer is not None:
            self._writer.write(lines, *self._span)


def _engine(server: ServerFound) -> str:
    return server.engine or "server"
