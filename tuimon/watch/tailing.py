"""The log: where it is, how far it was read, where a launch begins in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

from msgspec import Struct

from tuimon.hosts.ending import Ending
from tuimon.hosts.errors import HostError, HostUnreachable
from tuimon.hosts.host import Host, LogPiece
from tuimon.launch.events import LogReset, LogText, LogUnreadable, ServerFound, ServerGone
from tuimon.probe.send import is_stream
from tuimon.watch.announced import Announced
from tuimon.watch.board import Board
from tuimon.watch.tending import end, tend

_RESTART = 10.0
"""Seconds: a log emptied so shortly before its server was seen to be gone was emptied by the next launch (`> log`)."""


class Place(Struct):
    """What outlives a broken link."""

    path: str | None = None
    offset: int = -1
    """Where reading goes on; -1 = head and tail."""
    inode: int | None = None
    """The file that `offset` belongs to."""
    mark: str | None = None
    """Where reading goes on in output that is no file."""
    ended: int | None = None
    """Where the text of the latest launch ends; None while it runs."""
    ended_mark: str | None = None
    """The same, in output that is no file."""
    cut: float | None = None
    """When the file was last seen truncated or replaced."""
    server: ServerFound | None = None
    """The latest one."""
    ending: Ending | None = None
    """The latest end that its machine told, of a container."""
    chosen: int | None = None
    """The launch that the user wants to see, where several run."""


class Tailing:
    """Follows one log at a time, for as long as the link is up."""

    def __init__(self, host: Host, board: Board, place: Place, fixed: str | None) -> None:
        self._host = Announced(host, "follow the log", board.post, board.clock)
        self._board = board
        self._place = place
        self._fixed = fixed
        """Path that the user named, instead of the one found."""
        self._task: asyncio.Task[None] | None = None
        if fixed is not None:
            place.path = fixed
        self._restart()

    def found(self, server: ServerFound) -> None:
        """A server was found: follow its log; a new launch begins where the old one ended."""
        place = self._place
        path = self._fixed or server.log
        first = place.server is None
        launched_anew = not first and not server.same(place.server)
        place.server = server
        if path is None:
            return
        if path != place.path:
            place.path, place.offset, place.inode, place.mark = path, -1, None, _since(server)
        elif launched_anew and path.startswith("tmux:"):
            place.mark = place.ended_mark or place.mark  # a pane does not say when it showed what
        elif launched_anew and is_stream(path):
            place.mark = _since(server)
        elif launched_anew:
            place.offset = place.offset if place.ended is None else place.ended
        elif first and place.offset >= 0:
            # What was read of the user's log before there was a server is this server's: it is told again.
            place.offset, place.inode, place.mark = -1, None, _since(server)
        elif self._task is not None:
            return
        if launched_anew:
            place.ended = place.ended_mark = None
            self._board.post(LogReset(why="relaunched", offset=max(place.offset, 0)))
        self._restart()

    def gone(self, server: ServerGone) -> None:
        """A launch has ended: what is written from here on is the next one's."""
        place = self._place
        ours = place.server is not None and server.pid == place.server.pid
        if ours and not (place.cut and self._board.clock.now() - place.cut < _RESTART):
            place.ended, place.ended_mark = max(place.offset, 0), place.mark

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            await end({self._task}, 0.5)

    def _restart(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._place.path is not None:
            self._task = asyncio.create_task(tend("log", self._follow, self._board))

    async def _follow(self) -> None:
        place = self._place
        if place.path is None:
            return
        # Closed here and now, not when the collector of garbage comes by: its end closes the channel.
        pieces = cast("AsyncGenerator[LogPiece]", self._host.follow(place.path, place.offset, place.inode, place.mark))
        try:
            async for piece in pieces:
                self._take(piece)
        except HostUnreachable:
            raise  # then all is unseen, not the log alone
        except Exception as error:
            # Shown where the log would be: without it the screen says "no line yet" for ever.
            words = str(error) if isinstance(error, HostError) else f"tuimon's own error: {error!r}"
            self._board.post(LogUnreadable(path=place.path, reason=words))
            raise
        finally:
            await pieces.aclose()

    def _take(self, piece: LogPiece) -> None:
        place = self._place
        place.mark = piece.mark or place.mark
        if piece.kind == "text":
            place.offset, place.inode = piece.offset + len(piece.text), piece.inode
            self._board.post(LogText(offset=piece.offset, text=piece.text, age=piece.age))
        elif piece.kind == "missing" or piece.kind == "denied":  # noqa: PLR1714  mypy narrows only this form
            self._board.post(LogUnreadable(path=place.path or "", reason=piece.reason or piece.kind))
        else:
            place.offset = piece.offset
            if piece.kind != "skipped":
                place.ended, place.inode, place.cut = 0, piece.inode, self._board.clock.now()
            self._board.post(LogReset(why=piece.kind, offset=piece.offset, skipped=piece.skipped))


def _since(server: ServerFound) -> str | None:
    """Where output that is no file begins for this launch; its start is known to a few hundredths of a second."""
    return None if server.started is None else f"@{server.started - 0.1:.2f}"
