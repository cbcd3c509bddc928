"""Actions on the host: asked for by a key, or by the judge. One at a time of each; a key never waits for the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tuimon.config import Settings
from tuimon.diagnose.rungs import rung_of
from tuimon.hosts.host import Host
from tuimon.hosts.turns import Turns
from tuimon.launch.events import Finding
from tuimon.watch.board import Board
from tuimon.watch.pauses import Looks, Stalls
from tuimon.watch.tending import tend
from tuimon.watch.watching import Action

if TYPE_CHECKING:
    from tuimon.watch.errands import Errands


UNASKED = Turns(8, longest=15.0)
"""Looks and diagnoses that nobody asked for, of all hosts: where one of 64 nodes falls silent they all stall at once.
The longest silent goes first, because it is the suspect; those that spin wait for it, here too."""


class Queue:
    """What one of the two asks for, one after the other."""

    def __init__(self) -> None:
        self.busy: Action | None = None
        """The action that is running now."""
        self._asked: asyncio.Queue[Action] = asyncio.Queue()
        self._waiting: set[Action] = set()

    def put(self, action: Action) -> None:
        """Queue it; one that waits or runs already is not queued again."""
        if action != self.busy and action not in self._waiting:
            self._waiting.add(action)
            self._asked.put_nowait(action)

    async def run(self, carry_out: Callable[[Action], Awaitable[None]]) -> None:
        """Carry out what is asked for; never returns."""
        try:
            while True:
                self.busy = await self._asked.get()
                self._waiting.discard(self.busy)
                await carry_out(self.busy)
                self.busy = None
        finally:
            # What was asked of a link that broke would come as a surprise on the next.
            self.busy, self._asked, self._waiting = None, asyncio.Queue(), set()


class Actions:
    """Lives as long as the watching, works while a link is up."""

    def __init__(self, board: Board, settings: Settings) -> None:
        self._board = board
        self._auto = settings.auto_diagnose
        self._read_only = settings.read_only
        self._looks = Looks()
        self._stalls = Stalls()
        self._keys, self._judge = Queue(), Queue()
        self._linked = False
        self._errands: Errands | None = None

    @property
    def busy(self) -> Action | None:
        """The action that is running now; what a key asked for comes first."""
        return self._keys.busy or self._judge.busy

    def ask(self, action: Action) -> None:
        """Queue what a key asks for."""
        rung = rung_of(action)
        if self._read_only and rung is not None and rung.asks:
            self._find(f"{action}: not done, tuimon was started read-only", "Start it without --read-only")
        elif self._linked:
            self._keys.put(action)
        else:
            self._find(f"{action}: there is no link to the host", "It is being tried again now")

    def look(self) -> None:
        """Look at the stacks if the judge wants it, diagnose a stall once; called while a link is up."""
        view, now = self._board.view, self._board.clock.now()
        if not self._auto or self.busy is not None:
            return
        if self._looks.due(view, now):
            self._judge.put("stacks")
        elif self._stalls.due(view, now):
            self._judge.put("diagnose")

    async def run(self, host: Host) -> None:
        """Carry out what is asked for, as long as the link is up; never returns."""
        self._linked = True
        try:
            async with asyncio.TaskGroup() as both:
                for queue in (self._keys, self._judge):
                    both.create_task(tend("actions", lambda queue=queue: self._work(host, queue), self._board))  # type: ignore[misc]  # bound now
        finally:
            self._linked = False

    async def _work(self, host: Host, queue: Queue) -> None:
        by_key = queue is self._keys

        async def carry_out(action: Action) -> None:
            if self._errands is None:
                from tuimon.watch.errands import Errands  # noqa: PLC0415  only when a launch has gone quiet

                self._errands = Errands(self._board)
            if by_key:
                await self._errands.run(host, action, by_key)
                return
            verdict = self._board.view.verdict
            async with UNASKED.turn((float(verdict.state == "spinning"), verdict.since)):
                await self._errands.run(host, action, by_key)

        await queue.run(carry_out)

    def _find(self, text: str, fix: str) -> None:
        self._board.post(Finding(source="tuimon", kind="action", text=text, fix=fix))
