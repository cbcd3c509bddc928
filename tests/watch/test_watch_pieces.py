"""The parts of the watching that need no host: clock, views, lines, pauses, containment."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.config import Patience
from tuimon.errors import TuimonError
from tuimon.hosts.errors import HostError, HostUnreachable
from tuimon.launch.events import AnyEvent, Finding, Health, Linked, LogText, Sample, ServerFound
from tuimon.launch.view import LaunchView, Verdict
from tuimon.watch.announced import shown
from tuimon.watch.board import Board
from tuimon.watch.clock import Clock
from tuimon.watch.later import Later, nothing_yet
from tuimon.watch.lines import LONGEST, Lines
from tuimon.watch.pauses import Backoff, Looks
from tuimon.watch.tending import tend, within


class Cranked(Clock):
    """Time passes when the test says so; a sleep takes no time but is counted."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


class Believer:
    """Takes events, or fails to."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.fails_at: type | None = None
        self.fails = False
        self.made = 0

    def apply(self, event: AnyEvent) -> None:
        if self.fails_at and isinstance(event, self.fails_at):
            raise ValueError("cannot believe it")
        self.events.append(event)

    def snapshot(self, now: float) -> LaunchView:
        self.made += 1
        if self.fails:
            raise ZeroDivisionError("no view")
        return _view(now=now)

    def findings(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Finding)]


def test_the_clock_is_the_wall_clock_and_goes_on_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    assert abs(clock.now() - time.time()) < 1
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock.now() - before < 1


def test_views_are_made_four_times_a_second_at_most_and_once_a_second_at_least() -> None:
    believer, clock = Believer(), Cranked()
    board = Board(believer, clock)
    made = believer.made
    for _ in range(100):  # 10 s, with news all the time
        clock.time += 0.1
        board.post(Linked(host="gpu-17"))
        board.tick()
    assert 30 <= believer.made - made <= 40
    made = believer.made
    board.tick()
    for _ in range(100):  # 10 s without news
        clock.time += 0.1
        board.tick()
    assert 9 <= believer.made - made <= 11


def test_samples_bring_their_views_and_the_same_answer_again_brings_none() -> None:
    believer, clock = Believer(), Cranked()
    board = Board(believer, clock)
    made = believer.made
    for quarter in range(40):  # 10 s of a launch that starts: a sample and a refused question each second
        if quarter % 4 == 0:
            board.post(Sample(mono=quarter / 4))
        if quarter % 4 == 2:
            board.post(Health(address="127.0.0.1:30000", error="refused"))
        board.tick()
        clock.time += 0.25
    assert believer.made - made <= 11
    board.post(Health(address="127.0.0.1:30000", path="/health", status=200))
    board.tick()
    assert believer.made - made <= 12
    assert board.view.now == clock.now()


def test_a_view_stays_the_same_object_until_it_is_made_anew() -> None:
    board = Board(Believer(), Cranked())
    view = board.view
    board.tick()
    assert board.view is view


def test_events_get_our_time_whatever_the_host_claims() -> None:
    believer = Believer()
    Board(believer, Cranked()).post(Sample(at=5.0, mono=1.0, host_time=9e9))
    assert believer.events[0].at == 1000.0
    assert believer.events[0].host_time == 9e9


def test_an_event_that_cannot_be_believed_is_said_once_and_the_next_ones_are_taken() -> None:
    believer = Believer()
    board = Board(believer, Cranked())
    believer.fails_at = Sample
    for _ in range(3):
        board.post(Sample(mono=1.0))
    board.post(LogText(offset=0, text=b"x"))
    assert believer.findings() == ["tuimon's own error while judging: ValueError: cannot believe it"]
    assert isinstance(believer.events[-1], LogText)


def test_a_believer_that_fails_even_at_the_finding_does_not_end_anything() -> None:
    believer = Believer()
    believer.fails_at = object
    Board(believer, Cranked()).post(Sample(mono=1.0))


def test_when_no_view_can_be_made_the_old_one_goes_on_counting_and_says_that_it_is_old() -> None:
    believer, clock = Believer(), Cranked()
    board = Board(believer, clock)
    believer.fails = True
    clock.time += 2
    board.tick()
    assert (board.view.now, board.view.broken) == (1002.0, "ZeroDivisionError: no view")
    assert believer.findings() == ["tuimon's own error while judging: ZeroDivisionError: no view"]


def test_a_listener_that_fails_is_said_and_the_others_hear_on() -> None:
    believer, heard = Believer(), list[AnyEvent]()
    board = Board(believer, Cranked())

    def full(_: AnyEvent) -> None:
        raise OSError(28, "No space left on device")

    board.listen(full)
    board.listen(heard.append)
    board.post(Sample(mono=1.0))
    board.post(Sample(mono=2.0))
    assert [type(event) for event in heard if not isinstance(event, Finding)] == [Sample, Sample]
    assert len(believer.findings()) == 1
    assert "No space left" in believer.findings()[0]


def test_before_the_first_event_nothing_is_believed_and_then_the_launch_is_there() -> None:
    later = Later("gpu-17", Patience())
    assert later.snapshot(1000.0).link.state == "connecting"
    later.apply(Linked(host="gpu-17", at=1001.0))
    assert later.snapshot(1002.0).link.state == "up"
    assert later.make() is later.make()


def test_the_link_does_not_wait_for_the_launch_and_what_it_told_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def choose() -> tuple[Finding, ...]:
        made.append(1)
        return ()

    monkeypatch.setattr("tuimon.watch.grammars.choose", choose)
    later = Later("gpu-17", Patience())
    later.apply(Linked(host="gpu-17", at=1001.0))
    later.apply(Sample(mono=1.0, at=1001.5))
    assert not made
    assert later.snapshot(1002.0).data_age == 0.5
    assert made == [1]


def test_a_launch_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TuimonError("rule step.bar has no fixed text", "Correct torchrun.toml")

    monkeypatch.setattr("tuimon.launch.state.Launch", fail)
    later = Later("gpu-17", Patience())
    Board(later, Cranked()).post(Linked(host="gpu-17"))
    assert later.snapshot(1000.0).broken == "rule step.bar has no fixed text. Correct torchrun.toml"


def test_a_launch_whose_module_cannot_even_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tuimon.launch.state", None)
    later = Later("gpu-17", Patience())
    for _ in range(2):
        with pytest.raises(ImportError):
            later.make()
    assert "tuimon.launch.state" in str(later.snapshot(1000.0).broken)


def test_waiting_for_a_view_ends_when_it_comes_and_gives_the_latest_when_time_is_up() -> None:
    clock = Cranked()
    board = Board(Believer(), clock)
    waiting = threading.Thread(target=lambda: seen.append(board.wait_for(lambda view: view.now > 1001, timeout=10)))
    seen = list[LaunchView]()
    waiting.start()
    clock.time += 5
    board.tick()
    waiting.join(5)
    assert seen == [board.view]
    assert board.wait_for(lambda _: False, timeout=0.01) is board.view


def test_lines_become_events_however_they_are_cut() -> None:
    events = [ServerFound(pid=7, argv=("sglang",)), Sample(mono=3.5), Finding(source="kernel", kind="oom", text="ö")]
    stream = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
    for size in (1, 2, 7, 1000):
        lines = Lines()
        found = [event for at in range(0, len(stream), size) for event in lines.feed(stream[at : at + size])]
        assert found == events
        assert lines.garbage == 0


def test_garbage_is_counted_and_shown_without_its_control_characters() -> None:
    lines = Lines()
    good = msgspec.json.encode(Sample(mono=1.0))
    stream = good + b"\nWelcome!\x1b[31m\n\n{}\n[1]\n\xff\xfe\n" + good + b"\n"
    assert len(list(lines.feed(stream))) == 2
    assert lines.garbage == 4
    assert lines.example == "Welcome![31m"


def test_a_host_may_not_say_what_is_not_its_to_say() -> None:
    lines = Lines()
    list(lines.feed(msgspec.json.encode(Sample(mono=1.0)) + b"\n"))
    for event in (Linked(host="x"), LogText(offset=0, text=b"x")):
        assert not list(lines.feed(msgspec.json.encode(event) + b"\n"))
    assert lines.garbage == 2


def test_a_greeting_does_not_count_but_a_flood_before_the_first_event_does() -> None:
    lines = Lines()
    list(lines.feed(b"Welcome!\n" * 50 + msgspec.json.encode(Sample(mono=1.0)) + b"\n"))
    assert lines.garbage == 0
    flood = Lines()
    list(flood.feed(b"y\n" * 1000))
    assert flood.garbage == 800


def test_a_line_without_end_takes_bounded_memory_and_the_next_is_read() -> None:
    lines = Lines()
    for _ in range(LONGEST // 65536 * 3):
        assert not list(lines.feed(b"x" * 65536))
        assert len(lines._pending) <= LONGEST
    assert len(list(lines.feed(b"\n" + msgspec.json.encode(Sample(mono=1.0)) + b"\n"))) == 1
    assert lines.example.startswith("xxx")


@given(st.lists(st.binary(max_size=200)))
def test_no_bytes_make_the_reader_of_lines_fail(pieces: list[bytes]) -> None:
    lines = Lines()
    for piece in pieces:
        list(lines.feed(piece))


def test_pauses_grow_to_thirty_seconds_with_full_jitter_and_begin_anew() -> None:
    longest = Backoff(chance=lambda: 1.0)
    assert [longest.next() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    longest.reset()
    assert longest.next() == 1
    assert Backoff(chance=lambda: 0.0).next() == 0.2
    many = Backoff()
    assert all(0.2 <= many.next() <= 30 for _ in range(1000))


def test_stacks_are_looked_at_every_four_seconds_and_five_times_in_one_silence() -> None:
    silent = _view(wants=True)
    looks = Looks()
    taken = [second for second in range(60) if looks.due(silent, 1000.0 + second)]
    assert taken == [0, 4, 8, 12, 16]
    assert not looks.due(_view(wants=False), 1060.0)
    assert looks.due(silent, 1061.0)


async def test_work_that_fails_is_said_once_per_reason_and_tried_again_later_and_later() -> None:
    believer, clock = Believer(), Cranked()
    board = Board(believer, clock)
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries < 5:
            raise HostError("no more sessions", "Raise MaxSessions") if tries % 2 else ValueError("bug")

    await tend("log", work, board)
    assert tries == 5
    assert believer.findings() == ["no more sessions", "tuimon's own error while log: ValueError: bug"]
    assert len(clock.slept) == 4


async def test_a_broken_link_is_not_a_finding_of_the_work_that_notices_it() -> None:
    believer = Believer()
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise HostUnreachable("gone")

    await tend("log", work, Board(believer, Cranked()))
    assert not believer.findings()


async def test_a_wait_is_bounded_by_our_clock_and_leaves_nothing_running() -> None:
    forever = asyncio.Event()
    with pytest.raises(TimeoutError):
        await within(Cranked(), 5.0, forever.wait())

    async def answer() -> int:
        return 42

    assert await within(Clock(), 5.0, answer()) == 42
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("turns", range(5))
async def test_work_that_fails_just_as_its_wait_is_cancelled_leaves_no_stray_error(turns: int) -> None:
    stray: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    broken = asyncio.Event()

    async def read() -> None:
        await broken.wait()
        raise HostUnreachable("the link broke")

    waiting = asyncio.create_task(within(Clock(), 5.0, read()))
    await asyncio.sleep(0.01)
    broken.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    del waiting
    gc.collect()
    assert stray == []


def test_a_command_is_shown_as_a_shell_would_take_it_with_programs_cut() -> None:
    assert shown(["python3", "-c", "x" * 500, "a b"]) == f"python3 -c '{'x' * 80}…' 'a b'"


def _view(*, now: float = 1000.0, wants: bool = False) -> LaunchView:
    view = nothing_yet("gpu-17", now)
    return msgspec.structs.replace(view, verdict=Verdict("quiet", 990.0, "", wants_stacks=wants))


def test_who_asked_for_it_is_called_after_each_new_view_and_only_then() -> None:
    clock = Cranked()
    board = Board(Believer(), clock)
    seen: list[LaunchView] = []
    board.on_view = lambda: seen.append(board.view)
    board.tick()
    assert not seen
    clock.time += 1.0
    board.tick()
    assert seen == [board.view]


def test_news_make_the_next_view_due_sooner() -> None:
    clock = Cranked()
    board = Board(Believer(), clock)
    assert board.rest() == 1.0
    clock.time += 0.1
    board.post(Linked(host="gpu-17"))
    assert board.came.is_set()
    assert 0.1 < board.rest() <= 0.15
    clock.time += 0.2
    assert board.rest() == 0.0
