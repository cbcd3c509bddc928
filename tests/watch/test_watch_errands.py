"""Actions on a scripted host: a stall diagnoses itself once, results are events, no signal without two questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.watch.scripted import SAMPLE, SERVER, Watched
from tuimon.config import Settings
from tuimon.hosts.errors import CommandTimedOut, HostError
from tuimon.hosts.host import Completed
from tuimon.launch.events import Collectives, CommandRun, Finding, Report, Stacks
from tuimon.launch.view import State, Verdict
from tuimon.watch.later import nothing_yet
from tuimon.watch.pauses import Stalls


def due(stalls: Stalls, state: State, now: float) -> bool:
    return stalls.due(replace(nothing_yet("x", now), verdict=Verdict(state, 0.0, "")), now)


def test_each_stall_is_due_once_and_a_flickering_one_at_most_once_a_minute() -> None:
    stalls = Stalls()
    assert not due(stalls, "quiet", 0)
    assert due(stalls, "stalled", 1)
    assert not due(stalls, "spinning", 2)
    assert not due(stalls, "stalled", 500)
    assert not due(stalls, "starting", 501)
    assert due(stalls, "frozen", 502)
    assert not due(stalls, "starting", 503)
    assert not due(stalls, "stalled", 504)
    assert due(stalls, "stalled", 563)


def test_a_crash_is_no_stall() -> None:
    assert not due(Stalls(), "crashed", 1)
    assert not due(Stalls(), "failing", 1)


def ready(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER, SAMPLE)
    watched.passes(1)


def test_a_stall_diagnoses_itself_once_and_its_parts_are_events(watched: Watched) -> None:
    ready(watched)
    watched.believer.state = "stalled"
    watched.passes(2)
    watched.until(lambda: bool(watched.seen(Report)))
    watched.passes(30)
    (report,) = watched.seen(Report)
    assert (report.of, report.asked) == ("diagnose", False)
    assert "# server on gpu-17: stalled" in report.text
    assert [event.asked for event in watched.seen(Stacks)] == [False]
    assert len(watched.seen(Collectives)) == 1
    assert any("the kernel log cannot be read" in note for note in report.unread)
    assert Path(report.saved[0]).read_text() == report.text
    assert {event.why for event in watched.seen(CommandRun) if "tuimon-dump" in event.command} == {
        "diagnose (nothing else moves)"
    }


def test_no_stall_diagnoses_itself_where_that_is_switched_off() -> None:
    watched = Watched(Settings(auto_diagnose=False))
    ready(watched)
    watched.believer.state = "stalled"
    watched.passes(30)
    watched.watch.stop()
    assert watched.seen(Report) == []


def test_xids_become_findings_once(watched: Watched) -> None:
    def answers(argv: Sequence[str]) -> Completed:
        if argv[0] == "dmesg":
            return Completed(0, b"NVRM: Xid (PCI:0000:61:00): 79, pid=42, GPU has fallen off the bus.\n", b"")
        return Completed(1, b"", b"")

    watched.host.answers = answers
    ready(watched)
    watched.watch.ask("diagnose")
    watched.until(lambda: bool(watched.seen(Report)))
    (finding,) = (each for each in watched.seen(Finding) if each.kind == "xid")
    assert finding.text.startswith("Xid 79 on GPU 0000:61:00: the GPU has fallen off the bus")
    assert watched.seen(Report)[0].asked


@pytest.mark.parametrize("action", ["flight_recorder", "native", "debug_server", "aim"])
def test_without_a_process_an_action_says_so(watched: Watched, action: str) -> None:
    watched.start()
    watched.watch.ask(action)  # type: ignore[arg-type]  # one of Action
    watched.passes(1)
    assert watched.findings() == ["There is no process whose stacks could be looked at"]


def test_a_launch_without_a_draft_says_how_to_check_one(watched: Watched) -> None:
    ready(watched)
    watched.watch.ask("checkpoint")
    watched.passes(1)
    assert watched.findings() == ["This launch names no draft model"]


def test_a_host_that_fails_or_is_late_ends_neither_the_action_queue_nor_the_watching(watched: Watched) -> None:
    errors: list[Exception] = [HostError("opens no session"), CommandTimedOut("too late")]

    def answers(_argv: Sequence[str]) -> Completed:
        if errors:
            raise errors.pop(0)
        return Completed(1, b"", b"")

    ready(watched)
    watched.host.answers = answers
    watched.watch.ask("collectives")
    watched.passes(5)
    assert watched.watch.busy is None
    watched.watch.ask("collectives")
    watched.passes(5)
    assert watched.seen(Report)
    assert "opens no session" in watched.findings()


class Abortable:
    """A host that says what SIGABRT would do, and counts signals."""

    def __init__(self, masks: str) -> None:
        self.masks = masks
        self.asked = 0

    def __call__(self, argv: Sequence[str]) -> Completed:
        if argv[0] != "python3":
            return Completed(1, b"", b"")
        self.asked += 1
        seen = {"SigCgt": self.masks, "State": "S"}
        return Completed(0, json.dumps({"gone": False, "started": 5, "seen": seen, "ended": True}).encode(), b"")


def test_abort_needs_an_aim_of_the_last_minute_and_is_done_once(watched: Watched) -> None:
    host = Abortable("4ea")
    watched.host.answers = host
    ready(watched)
    watched.watch.ask("abort")
    watched.passes(1)
    assert watched.findings()[-1].startswith("No signal was sent")
    assert host.asked == 0

    watched.watch.ask("aim")
    watched.passes(1)
    watched.passes(61)
    watched.watch.ask("abort")
    watched.passes(1)
    assert host.asked == 1

    watched.watch.ask("aim")
    watched.passes(1)
    watched.watch.ask("abort")
    watched.passes(1)
    assert host.asked == 3
    assert watched.findings()[-1].startswith("SIGABRT ended TP0 (pid 42)")
    watched.watch.ask("abort")
    watched.passes(1)
    assert host.asked == 3


def test_an_aim_that_is_of_no_use_cannot_be_followed_by_an_abort(watched: Watched) -> None:
    host = Abortable("not a mask")
    watched.host.answers = host
    ready(watched)
    watched.watch.ask("aim")
    watched.passes(1)
    assert watched.seen(Report)[-1].unread == ("its signal masks cannot be read",)
    watched.watch.ask("abort")
    watched.passes(1)
    assert host.asked == 1


def test_a_key_does_not_wait_for_what_the_judge_has_asked_for(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def dump(_host: object, _targets: object, *, asked: bool, native: bool = False) -> Stacks:
        order.append(asked)
        if not asked:
            await asyncio.Event().wait()
        return Stacks(asked=asked)

    order = asked
    monkeypatch.setattr("tuimon.diagnose.stacks.dump", dump)
    ready(watched)
    watched.believer.wants_stacks = True
    watched.passes(2)
    assert (asked, watched.watch.busy) == ([False], "stacks")
    watched.watch.ask("stacks")
    watched.until(lambda: bool(watched.seen(Stacks)))
    assert asked == [False, True]
