"""The files of one watch, one after the other: a file for each launch, and parts of it where it grows too large."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from tuimon import __version__
from tuimon.launch.events import Linked, LogReset, LogText, ServerFound, Unlinked
from tuimon.recording.form import VERSION, Header, Recorded, line
from tuimon.recording.secrets import cleaned
from tuimon.recording.shelf import Shelf
from tuimon.recording.writer import Writer

BLOCK_RAW = 2 * 1024 * 1024
"""Bytes of lines after which a block is closed."""
_HEAD = 1024 * 1024
"""Bytes of the log's beginning that are told again at the start of a part: its milestones."""


class Series:
    """Puts events where they belong. Every call may raise OSError; then `abandon`, and the next write begins anew."""

    def __init__(self, shelf: Shelf, host: str) -> None:
        self._shelf = shelf
        self._host = host
        self._writer: Writer | None = None
        self._part = 1
        self._link: Linked | Unlinked | None = None
        self._server: ServerFound | None = None
        self._head: list[LogText] = []
        self._head_bytes = 0
        self._text_end = 0
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
            if isinstance(event, ServerFound) and not self._same(event):
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
        match event:
            case Linked() | Unlinked():
                self._link = event
            case ServerFound():
                if not self._same(event):
                    self._head, self._head_bytes = [], 0
                self._server = event
            case LogText():
                if self._head_bytes + len(event.text) <= _HEAD and self._goes_on(event):
                    self._head.append(event)
                    self._head_bytes += len(event.text)
                self._text_end = event.offset + len(event.text)
            case LogReset() if event.why in {"rotated", "truncated"}:
                self._head, self._head_bytes = [], 0
            case _:
                pass

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

    def _same(self, event: ServerFound) -> bool:
        """The server that is known, told again (as `Launch` sees it)."""
        known = self._server
        return known is not None and known.pid == event.pid and known.started in {None, event.started}

    def _goes_on(self, event: LogText) -> bool:
        return not self._head or self._head[-1].offset + len(self._head[-1].text) == event.offset

    def _launch(self, event: ServerFound) -> None:
        """The first server gives its file a better name; another one begins a new file."""
        self._part = 1
        if self._server is None and self._writer is not None:
            start = self._writer.header.start
            self._writer.rename(self._shelf.path(self._host, _engine(event), start), event.engine)
            return
        self._flush()
        self.close()
        self._server = None
        self._head, self._head_bytes = [], 0
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
        server = server or self._server
        engine = server.engine if server else None
        header = Header(VERSION, self._host, at, engine, __version__, self._part)
        self._writer = self._free(header, _engine(server) if server else None)
        self._shelf.tidy()
        if self._link is not None:
            self._put(structs.replace(self._link, at=at))
        known = self._server
        if known is None:
            return
        age = None if known.age is None else known.age + at - known.at
        self._put(cleaned(structs.replace(known, at=at, age=age)))
        for text in self._head:
            self._put(structs.replace(text, at=at))
        told = self._head[-1].offset + len(self._head[-1].text) if self._head else 0
        if self._text_end > told:
            skipped = self._text_end - told
            self._put(LogReset(at=at, why="skipped", offset=self._text_end, skipped=skipped))

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
