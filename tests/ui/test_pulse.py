"""When the screen wakes: at its own looks, and at once when it is called."""

from __future__ import annotations

import asyncio
import select
import threading
from contextvars import ContextVar

from tuimon.ui.driver import Bell
from tuimon.ui.pulse import Pulse

WHOSE: ContextVar[str] = ContextVar("whose", default="nobody")


async def test_a_call_from_another_thread_is_looked_at_at_once_in_the_apps_own_context() -> None:
    seen: list[str] = []
    beaten = asyncio.Event()

    def beat() -> None:
        seen.append(WHOSE.get())
        beaten.set()

    WHOSE.set("the app's")
    pulse = Pulse(lambda: True, beat, pause=3600)
    pulse.start()
    threading.Thread(target=pulse.hurry).start()
    async with asyncio.timeout(5):
        await beaten.wait()
    assert seen == ["the app's"]
    pulse.stop()


async def test_a_pulse_that_has_stopped_takes_no_calls() -> None:
    beats: list[bool] = []
    pulse = Pulse(lambda: True, lambda: beats.append(True), pause=3600)
    pulse.hurry()
    pulse.start()
    pulse.stop()
    pulse.hurry()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not beats


def test_the_bell_that_ends_the_input_thread_can_be_waited_for_like_a_file() -> None:
    bell = Bell()

    def rings() -> bool:
        return bool(select.select([bell], [], [], 0)[0])

    assert not rings()
    bell.set()
    assert rings()
    assert bell.is_set()
    bell.clear()
    assert not rings()
