"""What each action does on the host. The results come back as events, like everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from tuimon.diagnose import (
    abort,
    collectives,
    debug_server,
    gpus,
    kept,
    ladder,
    preflight,
    recorder,
    report,
    saved,
    stacks,
    told,
)
from tuimon.diagnose.errors import DiagnoseError
from tuimon.diagnose.targets import Target, choose, names
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host
from tuimon.launch.events import Finding, Report, Stacks
from tuimon.watch.announced import Announced
from tuimon.watch.board import Board
from tuimon.watch.watching import Action

AIM_HOLDS = 60.0
"""Seconds: an answer to an older question is no answer."""
WORDS: dict[Action, str] = {
    "stacks": "look at the stacks", "diagnose": "diagnose", "collectives": "ask NCCL RAS",
    "checkpoint": "check the draft model's files", "flight_recorder": "ask the flight recorders",
    "native": "look at the stacks with native frames", "debug_server": "ask torch's debug server",
    "aim": "read what SIGABRT would do", "abort": "SIGABRT",
}  # fmt: skip
NO_PROCESS = ("There is no process whose stacks could be looked at", "Wait until a server is found")


class Errands:
    """Carries out actions, one at a time."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._aim: tuple[float, abort.Aim] | None = None

    async def run(self, host: Host, action: Action, by_key: bool) -> None:
        """Do it. Raises HostUnreachable."""
        why = f"{WORDS[action]} ({'asked for' if by_key else 'nothing else moves'})"
        doing: dict[Action, Callable[[Host, bool], Awaitable[None]]] = {
            "stacks": self._stacks, "diagnose": self._diagnose, "collectives": self._collectives,
            "checkpoint": self._checkpoint, "flight_recorder": self._flight_recorder, "native": self._native,
            "debug_server": self._debug_server, "aim": self._take_aim, "abort": self._abort,
        }  # fmt: skip
        await doing[action](Announced(host, why, self._board.post, self._board.clock), by_key)
        self._board.tick(at_once=by_key)  # whoever pressed the key waits for it

    # Looks that stop nothing.

    async def _stacks(self, host: Host, by_key: bool) -> None:
        if targets := self._targets(say=by_key):
            await self._show(host, await stacks.dump(host, targets, asked=by_key), by_key)

    async def _show(self, host: Host, look: Stacks, keep: bool) -> None:
        board = self._board
        if keep:
            verdict = board.view.verdict
            facts = {"verdict": f"{verdict.state}: {verdict.headline}", "phase": verdict.phase or "unknown"}
            written = await asyncio.to_thread(saved.save, look, host.name, board.clock.now(), facts)
            look = msgspec.structs.replace(look, saved=written.text)
            if written.note:
                self._find(f"The stacks could not be saved: {written.note}", "Free or unlock that folder")
        board.post(look)

    async def _diagnose(self, host: Host, by_key: bool) -> None:
        targets = self._targets(say=by_key)
        if not targets:
            return
        board = self._board
        view, server = board.view, board.server
        pid, since = (server.pid, server.started) if server else (None, None)
        found = await ladder.climb(host, targets, server=pid, since=since, asked=by_key)
        told_by_driver = gpus.read(board.sample.gpus if board.sample else None)
        found = msgspec.structs.replace(found, findings=(*told_by_driver, *found.findings))
        text = report.markdown(view, found)
        written = await asyncio.to_thread(kept.keep, text, found, host.name, board.clock.now())
        if written.note:
            self._find(f"The report could not be saved: {written.note}", "Free or unlock that folder")
        board.post(msgspec.structs.replace(found.stacks, saved=next(iter(written.paths), None)))
        board.post(found.collectives)
        for finding in found.findings:
            if finding.text not in view.findings:
                board.post(finding)
        board.post(
            Report(
                of="diagnose", text=text, saved=written.paths, seconds=found.seconds, unread=found.unread, asked=by_key
            )
        )

    async def _collectives(self, host: Host, by_key: bool) -> None:
        server = self._board.server
        counted = await collectives.ask(host, names(self._targets()), server.pid if server else None)
        self._board.post(counted)
        self._tell("collectives", told.collectives(counted), by_key)

    async def _checkpoint(self, host: Host, by_key: bool) -> None:
        server = self._board.server
        named = preflight.launched(server.argv) if server else None
        if server is None or named is None:
            self._find("This launch names no draft model", "Check one with: tuimon checkpoint HOST:PATH")
            return
        engine = server.engine.lower() if server.engine and server.engine.lower() in {"sglang", "vllm"} else None
        try:
            found = await preflight.check(
                host, named.draft, named.target, engine, server.version, algorithm=named.algorithm, pid=server.pid
            )
        except (DiagnoseError, CommandTimedOut) as error:
            self._tell("checkpoint", told.unreadable(error.sentence()), by_key)
            return
        self._tell("checkpoint", told.checkpoint(found), by_key)
        if found.verdict in {"broken", "silent"}:
            text = preflight.as_text(found).splitlines()[0]
            if text not in self._board.view.findings:
                fix = next((flaw.fix for flaw in found.findings), None)
                self._board.post(Finding(source="checkpoint", kind="draft", text=text, severity="warning", fix=fix))

    # Looks that ask first; whoever calls them has asked.

    async def _flight_recorder(self, host: Host, by_key: bool) -> None:
        if targets := self._targets(say=True):
            found = await recorder.ask(host, targets)
            if found.collectives is not None:
                self._board.post(found.collectives)
            self._board.post(Report(of="flight_recorder", text=told.recorded(found), unread=found.unread, asked=by_key))

    async def _native(self, host: Host, by_key: bool) -> None:
        if targets := self._targets(say=True):
            await self._show(host, await stacks.dump(host, targets, asked=by_key, native=True), keep=True)

    async def _debug_server(self, host: Host, by_key: bool) -> None:
        if targets := self._targets(say=True):
            self._tell("debug_server", told.debug_server(*await debug_server.ask(host, targets)), by_key)

    async def _take_aim(self, host: Host, by_key: bool) -> None:
        suspects = [suspect.pid for suspect in self._board.view.verdict.suspects if suspect.pid is not None]
        target = abort.choose(self._targets(say=True), suspects)
        if target is not None:
            aim = await abort.aim(host, target)
            self._aim = (self._board.clock.now(), aim) if aim.can else None
            why = () if aim.can else (aim.consequence,)
            self._board.post(Report(of="aim", text=told.aim(aim), unread=why, asked=by_key))

    async def _abort(self, host: Host, by_key: bool) -> None:
        taken, self._aim = self._aim, None
        if not by_key or taken is None or self._board.clock.now() - taken[0] > AIM_HOLDS:
            self._find("No signal was sent: nobody has asked what it would do within the last minute", "Press a again")
            return
        said = await abort.fire(host, taken[1])
        self._find(said, "Look at the end of the log")
        self._tell("abort", said, by_key)

    # What they share.

    def _targets(self, *, say: bool = False) -> tuple[Target, ...]:
        board = self._board
        found: tuple[Target, ...] = ()
        if board.sample is not None:
            found = choose(board.sample.processes, board.server.pid if board.server else None)
        if not found and say:
            self._find(*NO_PROCESS)
        return found

    def _tell(self, action: Action, text: str, asked: bool) -> None:
        self._board.post(Report(of=action, text=text, asked=asked))

    def _find(self, text: str, fix: str) -> None:
        self._board.post(Finding(source="tuimon", kind="action", text=text, fix=fix))
