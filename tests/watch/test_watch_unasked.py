"""Many nodes stall at once: few are looked at at a time, the longest silent first, and a key waits for none of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from tuimon.config import Settings
from tuimon.hosts.host import Host
from tuimon.hosts.turns import Turns
from tuimon.launch.view import State, Verdict
from tuimon.watch import actions, errands
from tuimon.watch.actions import Actions
from tuimon.watch.board import Board
from tuimon.watch.clock import Clock
from tuimon.watch.later import nothing_yet
from tuimon.watch.watching import Action


def stalled(name: str, state: State, since: float) -> Actions:
    """The actions of a host that is in this state since then."""
    view = replace(nothing_yet(name, 100.0), verdict=Verdict(state, since, ""))
    board = SimpleNamespace(view=view, clock=Clock(), name=name, trouble=print)
    return Actions(cast("Board", board), Settings())


async def test_of_many_nodes_that_stall_at_once_few_are_diagnosed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    ending = asyncio.Event()

    async def run(self: errands.Errands, _host: Host, _action: Action, by_key: bool) -> None:
        begun.append(f"{self._board.name}{' by key' if by_key else ''}")  # type: ignore[attr-defined]  # ours, above
        await ending.wait()

    monkeypatch.setattr(errands.Errands, "run", run)
    monkeypatch.setattr(actions, "UNASKED", Turns(2))
    nodes = {"a": stalled("a", "stalled", 50.0), "b": stalled("b", "stalled", 50.0)}
    work = [asyncio.create_task(each.run(cast("Host", None))) for each in nodes.values()]
    for each in nodes.values():
        await asyncio.sleep(0)
        each.look()
    await until(begun, 2)
    for name, state, since in (("spins", "spinning", 1.0), ("late", "stalled", 60.0), ("silent", "frozen", 40.0)):
        nodes[name] = stalled(name, cast("State", state), since)
        work.append(asyncio.create_task(nodes[name].run(cast("Host", None))))
        await asyncio.sleep(0)
        nodes[name].look()
    nodes["late"].ask("stacks")
    await until(begun, 3)
    assert begun == ["a", "b", "late by key"]
    ending.set()
    await until(begun, 6)
    assert begun[3:] == ["silent", "late", "spins"]
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)


async def until(begun: list[str], count: int) -> None:
    async with asyncio.timeout(5):
        while len(begun) < count:  # noqa: ASYNC110  a list tells of itself nothing
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)  # nobody else begins
    assert len(begun) == count
