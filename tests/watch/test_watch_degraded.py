"""A host without Python: its two programs end with the link, and nothing of that is an error of ours."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests.watch.scripted import ScriptedChannel, settle
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.host import Channel, Host
from tuimon.launch.events import Finding, Sample
from tuimon.watch.board import Board
from tuimon.watch.clock import Clock
from tuimon.watch.degraded import Degraded
from tuimon.watch.lines import Reported

SMI = b"0, NVIDIA H200, 90, 40, 1000, 143771, 300.5, 700, 41, 1980\n"
LOOK = b"\n--tuimon--\n@up\n100.0 50.0\n0.5 0.5 0.5 1/2 3\n@memory\n@stat\n@argv\n@fd\n@end\n"


class Bare:
    """The host."""

    name = "bare"

    def __init__(self) -> None:
        self.looks, self.smi = ScriptedChannel(), ScriptedChannel()

    async def start(self, argv: Sequence[str]) -> Channel:
        return self.smi if "nvidia-smi" in argv else self.looks


async def degraded() -> tuple[Bare, list[Reported], asyncio.Task[None], list[dict[str, Any]]]:
    strays: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: strays.append(context))
    host, heard = Bare(), list[Reported]()
    board = cast("Board", type("Fake", (), {"clock": Clock()}))
    task = asyncio.create_task(Degraded(cast("Host", host), board, heard.append, None).run())
    host.smi.said.put_nowait(SMI)
    await settle()
    host.looks.said.put_nowait(LOOK)
    await settle()
    return host, heard, task, strays


def gpus(heard: Sequence[Reported]) -> list[int | None]:
    """How many GPUs each sample has."""
    return [None if event.gpus is None else len(event.gpus) for event in heard if isinstance(event, Sample)]


async def test_a_link_that_breaks_is_told_once_and_is_no_error_of_ours() -> None:
    host, heard, task, strays = await degraded()
    assert gpus(heard) == [1]
    for program in (host.smi, host.looks):
        program.said.put_nowait(HostUnreachable("the link broke"))
    with pytest.raises(HostUnreachable):
        await task
    gc.collect()
    await asyncio.sleep(0)
    assert strays == []
    assert [event.kind for event in heard if isinstance(event, Finding)] == ["no_python"]


async def test_what_nvidia_smi_said_before_it_ended_is_no_reading_of_now() -> None:
    host, heard, task, _strays = await degraded()
    host.smi.said.put_nowait(b"")
    await settle()
    host.looks.said.put_nowait(LOOK)
    await settle()
    task.cancel()
    await asyncio.wait({task})
    assert gpus(heard) == [1, None]
