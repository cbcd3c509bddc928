"""Follow a file of this machine: the very tail that runs on other hosts, woken by watchfiles instead of a short sleep.

A look each second is the net for what no one tells us (NFS, full inotify tables).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import watchfiles

from tuimon.hosts.aside import aside
from tuimon.hosts.host import LogPiece
from tuimon.probe.program import tail

POLL = 1.0
"""Seconds between looks when nothing wakes us."""


async def follow(path: Path, offset: int, inode: int | None = None) -> AsyncIterator[LogPiece]:
    """The bytes of `path` from `offset` on, for ever; offset -1 = head and tail of what is there, then on."""
    changed = asyncio.Event()
    watching = asyncio.create_task(_wake(path, changed))
    file = Follower(path, offset, inode)
    try:
        while True:
            changed.clear()
            # Not here: on dead storage it never returns, and the loop is the whole of the watch.
            for piece in await aside(file.look_on, "tuimon-log"):
                yield piece
            if file.behind:
                await asyncio.sleep(0)  # a large file must not hold up the loop
                continue
            try:
                async with asyncio.timeout(POLL):
                    await changed.wait()
            except TimeoutError:
                continue
    finally:
        watching.cancel()
        file.close()


async def _wake(path: Path, changed: asyncio.Event) -> None:
    while True:
        try:
            async for _ in watchfiles.awatch(
                path.parent,
                watch_filter=lambda _, name: Path(name).name == path.name,
                recursive=False,
                step=50,
                debounce=250,  # four looks a second in a flood: as many as the screen draws
            ):
                changed.set()
        except (OSError, RuntimeError):  # no such folder yet, or no inotify watch left: the poll does it
            await asyncio.sleep(POLL)


class Follower(tail.Tail):
    """The tail with its frames kept instead of written; the program is untyped, because it runs on Python 3.6 too."""

    def __init__(self, path: Path, offset: int, inode: int | None) -> None:
        super().__init__(str(path), offset, inode)  # type: ignore[no-untyped-call]  # see above
        self._kept: list[LogPiece] = []
        self._looking = threading.Lock()
        self._closed = False
        self.behind = False
        """There may be more to read at once."""

    def look_on(self) -> list[LogPiece]:
        """What is new, up to a frame of text; on any thread."""
        with self._looking:
            self._kept = []
            try:
                self.behind = bool(self.look())  # type: ignore[no-untyped-call]  # see above
            except OSError as error:
                self.behind = False
                self.trouble(error)  # type: ignore[no-untyped-call]  # see above
        if self._closed:
            self.close()
        return self._kept

    def send(self, kind: str, offset: int, content: bytes = b"", skipped: int = 0, reason: str = "") -> None:
        """One frame."""
        inode = self.identity[1] if self.identity is not None else None
        self._kept.append(LogPiece(kind, offset, content, skipped, reason, inode))  # type: ignore[arg-type]  # kind is untyped there

    def close(self) -> None:
        """Give the file back; where a look is under way, as soon as it returns."""
        self._closed = True
        if self._looking.acquire(blocking=False):
            if self.fd is not None:
                os.close(self.fd)
                self.fd = None
            self._looking.release()
