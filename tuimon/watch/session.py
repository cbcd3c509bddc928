"""What is done while the link is up: probe, log, looks at the stacks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import msgspec

from tuimon.config import Settings
from tuimon.hosts import ending
from tuimon.hosts.ending import Ends
from tuimon.hosts.host import Host
from tuimon.launch.events import Finding, Sample, ServerFound, ServerGone
from tuimon.watch import former
from tuimon.watch.board import Board
from tuimon.watch.lines import Reported
from tuimon.watch.sampling import Sampling
from tuimon.watch.tailing import Place, Tailing
from tuimon.watch.tending import end, tend, within

BEAT = 1.0
"""Seconds between looks at what the view calls for where no sample comes; each sample brings one."""
LAST_WORDS = 1.5
"""Seconds without a further line after which the log of a container that has ended is read to its end: why it ended
stands in its last lines."""
MOST_WORDS = 10.0
"""Seconds for which it is read at most."""


class Acting(Protocol):
    """Whoever carries out actions."""

    def look(self) -> None:
        """See whether the view calls for one."""

    async def run(self, host: Host) -> None:
        """Carry out what is asked for; never returns."""


class Session:
    """One stretch of a link being up."""

    def __init__(self, host: Host, board: Board, settings: Settings, place: Place, acting: Acting) -> None:
        self._host = host
        self._board = board
        self._place = place
        self._acting = acting
        self._blind = True
        self._sampled = asyncio.Event()
        self._tailing = Tailing(host, board, place, settings.log)
        self._sampling = Sampling(host, board, settings, self._heard, lambda: place.chosen)

    async def run(self) -> str:
        """Collect until the link breaks; the reason in words."""
        work = {
            asyncio.create_task(tend("probe", self._sampling.run, self._board)),
            asyncio.create_task(tend("actions", lambda: self._acting.run(self._host), self._board)),
            asyncio.create_task(tend("watching", self._beat, self._board)),
        }
        try:
            reason = await self._host.lost()
            await self._last_words()
            return reason
        finally:
            await end(work, 0.5)
            await self._tailing.stop()

    async def _last_words(self) -> None:
        """A place that is only there for its server has ended with it: that is the launch's end, and no lost link.

        The same whether that came while we watched, while the link to its machine was down, or before we came.
        """
        how = self._host.ending if isinstance(self._host, Ends) else None
        place = self._place
        if how is None:
            return
        place.ending = how
        if former.is_another(how, place.server):
            self._heard(former.server(how))
        server = place.server
        if server is None or place.ended is not None:
            return
        await self._read_out()
        text = ending.words(self._host.name, how)
        self._board.post(
            Finding(source="container", kind="ended", text=text, severity="warning" if how.exit else "info")
        )
        self._heard(ServerGone(pid=server.pid, exit=how.exit, oom=how.oom))
        self._board.tick(at_once=True)

    async def _read_out(self) -> None:
        clock = self._board.clock
        end = clock.now() + MOST_WORDS
        read = None
        while read != self._place.offset and clock.now() < end:
            read = self._place.offset
            await clock.sleep(LAST_WORDS)

    async def _beat(self) -> None:
        while True:
            self._sampling.look(self._board.view)
            self._acting.look()
            self._sampled.clear()
            with suppress(TimeoutError):
                await within(self._board.clock, BEAT, self._sampled.wait())

    def _heard(self, event: Reported) -> None:
        source = getattr(self._host, "log_source", None)
        if isinstance(event, ServerFound) and event.log is None and source:
            note = "what the container prints, from its runtime"
            event = msgspec.structs.replace(event, log=source, log_note=note)
        self._board.post(event)
        if isinstance(event, ServerFound):
            self._tailing.found(event)
        elif isinstance(event, ServerGone):
            self._tailing.gone(event)
        elif isinstance(event, Sample):
            # Fresh data does not wait for the next beat, the first least of all.
            self._board.tick(at_once=self._blind)
            self._blind = False
            self._sampled.set()
