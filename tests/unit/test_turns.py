"""Turns: a few at a time, of many that each run on a thread and a loop of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

from tuimon.hosts.turns import Turns


class Ward:
    """Hosts that hold a turn until they are told to let go, each on a loop of its own."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self._letting: dict[str, Callable[[], object]] = {}
        self._threads: list[threading.Thread] = []
        self._news = threading.Condition()

    def come(self, name: str, *urgency: float) -> None:
        """Get in line; returns when it has its turn or waits."""
        waits = threading.Event()

        async def hold() -> None:
            let = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._letting[name] = lambda: loop.call_soon_threadsafe(let.set)
            loop.call_soon(lambda: loop.call_soon(waits.set))
            async with self.turns.turn(urgency):
                with self._news:
                    self.order.append(name)
                    self._news.notify_all()
                await let.wait()

        self._run(hold())
        assert waits.wait(5)

    def _run(self, work: Coroutine[object, object, None]) -> None:
        thread = threading.Thread(target=lambda: asyncio.run(work))
        thread.start()
        self._threads.append(thread)

    def leave(self, name: str, then: str) -> None:
        """Let this one go; returns when that one has its turn."""
        self._letting[name]()
        with self._news:
            assert self._news.wait_for(lambda: then in self.order, 5)

    def end(self, *names: str) -> None:
        """Let these go, and wait for all threads."""
        for name in names:
            self._letting[name]()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()


def test_only_so_many_go_at_a_time_and_the_most_urgent_first() -> None:
    ward = Ward(Turns(2))
    for name, urgency in (("a", 5), ("b", 5), ("late", 9), ("spins", 7), ("silent", 1)):
        ward.come(name, float(name == "spins"), urgency)
    assert ward.order == ["a", "b"]
    ward.leave("a", then="silent")
    ward.leave("b", then="late")
    assert ward.order == ["a", "b", "silent", "late"]
    ward.leave("late", then="spins")
    ward.end("silent", "spins")


def test_who_came_first_goes_first_where_all_are_alike() -> None:
    ward = Ward(Turns(1))
    for name in "abcd":
        ward.come(name)
    for name, then in ("ab", "bc", "cd"):
        ward.leave(name, then)
    assert ward.order == list("abcd")
    ward.end("d")


async def test_one_that_hangs_holds_up_the_others_for_so_long_and_no_longer() -> None:
    turns = Turns(1, longest=0.05)
    async with turns.turn(), asyncio.timeout(5), turns.turn(), turns.turn():
        pass  # all three at a time: the first two have had theirs
    async with turns.turn():
        waiting = asyncio.create_task(_through(turns))
        await asyncio.sleep(0)
        assert not waiting.done()  # given back once only: one at a time it is again
    await waiting


async def test_one_that_is_called_off_while_it_waits_leaves_no_gap_and_takes_no_turn() -> None:
    turns = Turns(1)
    async with turns.turn():
        waiting = [asyncio.create_task(_through(turns)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()  # whose turn has just come
    async with asyncio.timeout(5):
        await waiting[2]
        await _through(turns)


async def test_one_whose_loop_has_ended_is_passed_over() -> None:
    turns = Turns(1)
    async with turns.turn():
        await asyncio.to_thread(_wait_and_end, turns)
    async with asyncio.timeout(5):
        await _through(turns)


def _wait_and_end(turns: Turns) -> None:
    """Get in line on a loop that ends before the turn comes, without a word."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(_through(turns))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own


async def _through(turns: Turns) -> None:
    async with turns.turn():
        await asyncio.sleep(0)
