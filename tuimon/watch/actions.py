"""Actions on the host: asked for by a key, or by the judge. One at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from tuimon.config import Settings
from tuimon.hosts.host import Host
from tuimon.launch.events import Finding
from tuimon.watch.announced import Announced
from tuimon.watch.board import Board
from tuimon.watch.pauses import Looks
from tuimon.watch.watching import Action


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

    def ask(self, action: Action, *, by_key: bool = True) -> None:
        """Queue an action; one that waits or runs already is not queued again."""
        if not self._linked:
            self._find(f"{action}: there is no link to the host", "It is being tried again now")
        elif action != self.busy and action not in self._waiting:
            self._waiting.add(action)
            self._asked.put_nowait((action, by_key))

    def look(self) -> None:
        """Look at the stacks if the judge wants it; called while a link is up."""
        if self._auto and self.busy is None and self._looks.due(self._board.view, self._board.clock.now()):
            self.ask("stacks", by_key=False)

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
        if action != "stacks":
            self._find(f"{action} cannot be done yet", "s looks at the stacks")
            return
        await self._stacks(host, by_key)

    async def _stacks(self, host: Host, by_key: bool) -> None:
        from tuimon.diagnose import saved, stacks, targets  # noqa: PLC0415  only when a launch has gone quiet

        board = self._board
        server = board.server
        wanted: Sequence[targets.Target] = ()
        if board.sample is not None:
            wanted = targets.choose(board.sample.processes, server.pid if server else None)
        if not wanted:
            if by_key:
                self._find("There is no process whose stacks could be looked at", "Wait until a server is found")
            return
        why = "look at the stacks (asked for)" if by_key else "look at the stacks (nothing else moves)"
        look = await stacks.dump(Announced(host, why, board.post, board.clock), wanted, asked=by_key)
        if by_key:
            verdict = board.view.verdict
            facts = {"verdict": f"{verdict.state}: {verdict.headline}", "phase": verdict.phase or "unknown"}
            written = await asyncio.to_thread(saved.save, look, host.name, board.clock.now(), facts)
            look = msgspec.structs.replace(look, saved=written.text)
            if written.note:
                self._find(f"The stacks could not be saved: {written.note}", "Free or unlock that folder")
        board.post(look)

    def _find(self, text: str, fix: str) -> None:
        self._board.post(Finding(source="tuimon", kind="action", text=text, fix=fix))
