"""The link: connect, work, lose it, connect again. Where the user must act, say so and do not press on."""

from __future__ import annotations

import asyncio

from tuimon.config import Settings
from tuimon.hosts.ending import Ends
from tuimon.hosts.errors import HostError, HostUnreachable, PlaceGone
from tuimon.hosts.host import Host
from tuimon.launch.events import Gap, Linked, Unlinked
from tuimon.watch.asking import Question
from tuimon.watch.board import Board
from tuimon.watch.pauses import Backoff
from tuimon.watch.session import Acting, Session
from tuimon.watch.tailing import Place
from tuimon.watch.tending import within

REFUSED_AGAIN = 60.0
"""Seconds: after a refusal (wrong key, unknown host) the user may have acted; one quiet try a minute sees it."""
GONE_AGAIN = 5.0
"""Seconds at most until a container is looked for again: its machine answers, and it is expected to be started."""
LASTED = 30.0
"""Seconds: a link that held this long was a good one, and its loss begins a new backoff."""


class Linking:
    """Keeps the link up for as long as it runs."""

    def __init__(
        self, host: Host, board: Board, settings: Settings, acting: Acting, question: Question | None = None
    ) -> None:
        self._host = host
        self._board = board
        self._settings = settings
        self._acting = acting
        self._question = question or Question()
        self._place = Place()
        self._backoff = Backoff()
        self._hurry = asyncio.Event()
        self._lost: tuple[float, str] | None = None
        self._refusal: str | None = None
        self._up_now = False
        """Told last."""

    def hurry(self) -> None:
        """Do not wait for the next try, in which the user may be asked again."""
        self._question.willing = True
        self._hurry.set()

    def see(self, pid: int) -> None:
        """See this launch, of several on the host."""
        self._place.chosen = pid

    async def run(self) -> None:
        """Connect and collect, for ever."""
        while True:
            try:
                await self._host.connect()
            except PlaceGone as error:
                await self._gone(error.sentence())
            except HostUnreachable as error:
                await self._down(error.sentence())
            except HostError as error:
                await self._refused(error.sentence())
            except Exception as error:  # noqa: BLE001  an error of ours is no reason to give the host up
                self._board.trouble("connecting", error)
                await self._down("an error of tuimon's own")
            else:
                reason = await self._up()
                await self._down(reason, gone=isinstance(self._host, Ends) and self._host.ending is not None)

    async def _gone(self, reason: str) -> None:
        """Its machine answers; where that knows how the place ended, this is no lost link but the launch's end."""
        how = self._host.ending if isinstance(self._host, Ends) else None
        news = how is not None and how != self._place.ending
        if news or (self._place.ended is not None and not self._up_now):
            await self._up()
        await self._down(reason, gone=True)

    async def _up(self) -> str:
        clock = self._board.clock
        self._refusal, self._up_now = None, True
        self._board.post(Linked(host=self._host.name, detail=self._host.detail))
        if self._lost is not None:
            since, reason = self._lost
            self._board.post(Gap(of="link", since=since, reason=reason))
        began = clock.now()
        reason = await Session(self._host, self._board, self._settings, self._place, self._acting).run()
        if clock.now() - began > LASTED:
            self._backoff.reset()
        self._lost = (clock.now(), reason)
        return reason

    async def _down(self, reason: str, *, gone: bool = False) -> None:
        """`gone`: a place that is only there for its server; where that has ended no link is lost, and all is known."""
        self._refusal = None
        pause = min(self._backoff.next(), GONE_AGAIN) if gone else self._backoff.next()
        if gone and self._place.ended is not None:
            await self._pause(pause)
            return
        self._up_now = False
        self._board.post(Unlinked(reason=reason, next_try=self._board.clock.now() + pause))
        await self._pause(pause)

    async def _refused(self, reason: str) -> None:
        self._question.willing = False
        if reason != self._refusal:
            self._refusal, self._up_now = reason, False
            self._board.post(Unlinked(reason=reason, refused=True))
        await self._pause(REFUSED_AGAIN)

    async def _pause(self, seconds: float) -> None:
        self._hurry.clear()
        try:
            await within(self._board.clock, seconds, self._hurry.wait())
        except TimeoutError:
            return
