"""Actions on the host: asked for by a key, or by the judge. One at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tuimon.config import Settings
from tuimon.hosts.host import Host
from tuimon.launch.events import Finding
from tuimon.watch.board import Board
from tuimon.watch.pauses import Looks, Stalls
from tuimon.watch.watching import Action

if TYPE_CHECKING:
    from tuimon.watch.errands import Errands


class Actions:
    """A queue of what is asked for; lives as long as the watching, works while a link is up."""

    def __init__(self, board: Board, settings: Settings) -> None:
        self.busy: Action | None = None
        """The action that is running now."""
        self._board = board
        self._auto = settings.auto_diagnose
        self._looks = Looks()
        self._asked: asyncio.Queue[tuple[Action, bool]] = asyncio.Queue()
        self._waiting: set[Action] = set()
        self._linked = False
        self._stalls = Stalls()
        self._errands: Errands | None = None

    def ask(self, action: Action, *, by_key: bool = True) -> None:
        """Queue an action; one that waits or runs already is not queued again."""
        if not self._linked:
            self._find(f"{action}: there is no link to the host", "It is being tried again now")
        elif action != self.busy and action not in self._waiting:
            self._waiting.add(action)
            self._asked.put_nowait((action, by_key))

    def look(self) -> None:
        """Look at the stacks if the judge wants it, diagnose a stall once; called while a link is up."""
        view, now = self._board.view, self._board.clock.now()
        if not self._auto or self.busy is not None:
            return
        if self._looks.due(view, now):
            self.ask("stacks", by_key=False)
        elif self._stalls.due(view, now):
            self.ask("diagnose", by_key=False)

    async def run(self, host: Host) -> None:
        """Carry out what is asked for, as long as the link is up; never returns."""
        self._linked = True
        try:
            while True:
                action, by_key = await self._asked.get()
                self._waiting.discard(action)
                self.busy = action
                await self._carry_out(host, action, by_key)
                self.busy = None
        finally:
            # What was asked of a link that broke would come as a surprise on the next.
            self.busy, self._linked, self._asked, self._waiting = None, False, asyncio.Queue(), set()

    async def _carry_out(self, host: Host, action: Action, by_key: bool) -> None:
        if self._errands is None:
            from tuimon.watch.errands import Errands  # noqa: PLC0415  only when a launch has gone quiet

            self._errands = Errands(self._board)
        await self._errands.run(host, action, by_key)

    def _find(self, text: str, fix: str) -> None:
        self._board.post(Finding(source="tuimon", kind="action", text=text, fix=fix))
