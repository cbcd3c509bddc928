"""A place that had ended, as its machine tells, and a link that comes and goes meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from tuimon.config import Settings
from tuimon.hosts.ending import Ending
from tuimon.hosts.errors import HostUnreachable, PlaceGone
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.launch.events import AnyEvent, Linked, ServerFound, ServerGone, Unlinked
from tuimon.watch.clock import Clock
from tuimon.watch.live import LiveWatch

FASTER = 50.0
SERVE = ("vllm", "serve", "/model")


class Fast(Clock):
    """A clock that runs fast, sleeps and all."""

    def now(self) -> float:
        return time.monotonic() * FASTER

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / FASTER)


class Place:
    """Somewhere that has ended, or whose machine does not answer: what the next tries find, the last one for ever."""

    name = detail = "machine/docker:one"
    log_source = "docker:one"
    python = "python3"

    def __init__(self, *tries: Ending | str) -> None:
        self._tries = list(tries)
        self.ending: Ending | None = None

    async def connect(self) -> None:
        found = self._tries.pop(0) if len(self._tries) > 1 else self._tries[0]
        self.ending = found if isinstance(found, Ending) else None
        if found == "no answer":
            raise HostUnreachable("machine does not answer")
        raise PlaceGone("The container one is not running")

    async def start(self, _argv: Sequence[str]) -> Channel:
        raise HostUnreachable("The container one is not running")

    async def run(
        self, _argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        raise HostUnreachable("The container one is not running")

    async def follow(self, *_where: object) -> AsyncIterator[LogPiece]:
        yield LogPiece("text", 0, b"ValueError: no such weights\n", mark="2026")
        await asyncio.Event().wait()

    async def put(self, content: bytes, path: str, mode: int) -> None:
        raise HostUnreachable("The container one is not running")

    async def lost(self) -> str:
        return "the container one is gone"

    async def close(self) -> None:
        """Nothing is open."""


def watch(place: Place, enough: int) -> tuple[LiveWatch, list[AnyEvent]]:
    """Watch it until so many Linked and Unlinked have come, and a while longer."""
    events: list[AnyEvent] = []
    watching = LiveWatch(place, Settings(), clock=Fast())
    watching.on_event(events.append)
    watching.start()
    try:
        deadline = time.monotonic() + 20
        while len(links(events)) < enough:
            assert time.monotonic() < deadline, links(events)
            time.sleep(0.01)
        until = watching.view.now + 60
        watching.wait_for(lambda view: view.now > until, 10)
    finally:
        watching.stop()
    return watching, events


def links(events: Sequence[AnyEvent]) -> list[str]:
    """`up` and `down`, as they were told."""
    return [type(event).__name__ for event in list(events) if isinstance(event, Linked | Unlinked)]


def test_an_end_is_told_once_however_often_its_machine_tells_it() -> None:
    watching, events = watch(Place(Ending(3, argv=SERVE)), 1)
    assert links(events) == ["Linked"]
    assert [event.exit for event in events if isinstance(event, ServerGone)] == [3]
    view = watching.view
    assert (view.verdict.state, view.link.state) == ("crashed", "up")
    assert view.server is not None
    assert view.server.engine is not None


def test_what_was_known_is_known_again_as_soon_as_its_machine_answers() -> None:
    ended = Ending(3, argv=SERVE)
    watching, events = watch(Place(ended, "no answer", ended), 3)
    assert links(events) == ["Linked", "Unlinked", "Linked"]
    assert sum(isinstance(event, ServerGone) for event in events) == 1
    assert watching.view.verdict.state == "crashed"


def test_also_when_its_machine_has_forgotten_it_meanwhile() -> None:
    watching, events = watch(Place(Ending(3, argv=SERVE), "no answer", "gone"), 3)
    assert links(events) == ["Linked", "Unlinked", "Linked"]
    assert watching.view.verdict.state == "crashed"


def test_one_that_was_started_again_and_ended_again_unseen_is_another_launch() -> None:
    watching, events = watch(Place(Ending(3, began=1000.0), Ending(0, began=1060.0)), 2)
    assert [event.started for event in events if isinstance(event, ServerFound)] == [1000.0, 1060.0]
    assert [event.exit for event in events if isinstance(event, ServerGone)] == [3, 0]
    assert [launch.state for launch in watching.view.earlier] == ["crashed"]
    assert watching.view.verdict.state == "finished"


def test_one_whose_end_nobody_knows_is_not_there() -> None:
    watching, events = watch(Place("gone"), 2)
    assert set(links(events)) == {"Unlinked"}
    assert watching.view.verdict.state == "unreachable"


def test_want_of_memory_is_the_cause_where_the_engine_says_so() -> None:
    watching, _events = watch(Place(Ending(-9, oom=True)), 1)
    assert watching.view.verdict.kind == "out of memory"
