"""`tuimon diagnose`: its document keeps to its schema, its exit code to INTERFACES, and a stall is diagnosed once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
from msgspec.structs import replace

from tuimon.headless import diagnose
from tuimon.headless.diagnose import Heard
from tuimon.launch.events import (
    AnyEvent,
    CollectiveCount,
    Collectives,
    Finding,
    Frame,
    RankStack,
    Report,
    Stacks,
    ThreadStack,
)
from tuimon.launch.state import Launch
from tuimon.launch.view import LaunchView, LinkView, Verdict
from tuimon.watch.watching import Action

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema" / "diagnose.json").read_text())
NOW = 1_800_000_000.0
REPORT = Report(
    at=NOW, of="diagnose", text="# report\n", saved=("/x/report.md",), seconds=0.4, unread=("a",), asked=True
)


def view(*reports: Report, link: str = "up") -> LaunchView:
    state = LinkView(state=link, since=NOW - 9)  # type: ignore[arg-type]  # test data
    verdict = Verdict("stalled", NOW - 20, "after “graphs”, nothing alive", "host deadlock")
    return replace(Launch("gpu-17").snapshot(NOW), link=state, verdict=verdict, reports=reports, data_age=0.1)


def heard(*events: AnyEvent) -> Heard:
    made = Heard()
    for event in events:
        made.take(event)
    return made


def waiting(pid: int, rank: str, call: str, file: str) -> RankStack:
    return RankStack(pid, rank, (ThreadStack("MainThread", (Frame(call, file, 1),), tid=pid),))


LOOK = Stacks(
    ranks=(
        waiting(10, "TP0", "all_reduce", "/x/torch/distributed/distributed_c10d.py"),
        waiting(11, "TP1", "load", "/x/app.py"),
    ),
    asked=True,
)
COUNTED = Collectives(
    source="NCCL RAS", text="x", counts=(CollectiveCount("TP0", "0x1", 2, 10), CollectiveCount("TP1", "0x1", 1, 11))
)
XID = Finding(source="kernel", kind="xid", text="Xid 79", severity="fatal", fix="Reboot")


def test_the_document_holds_what_each_look_found_and_keeps_to_its_schema() -> None:
    document = diagnose.document(view(REPORT), heard(LOOK, COUNTED, XID, REPORT), NOW - 5)
    jsonschema.validate(document, SCHEMA)
    assert [(each["rank"], each["source"]) for each in document["suspects"]] == [("TP1", "NCCL RAS"), ("TP1", "stacks")]
    assert document["verdict"]["state"] == "stalled"
    assert document["findings"][0]["kind"] == "xid"
    assert (document["unread"], document["saved"], document["error"]) == (["a"], ["/x/report.md"], None)
    assert json.loads(json.dumps(document)) == document


def test_nothing_found_is_null_and_says_why() -> None:
    document = diagnose.document(view(link="lost"), heard(), NOW - 5)
    jsonschema.validate(document, SCHEMA)
    assert document["seconds"] is None
    assert document["error"] == "the host cannot be reached"


def test_of_two_counts_of_one_source_the_later_stands() -> None:
    later = replace(COUNTED, text="later")
    recorder = replace(COUNTED, source="flight recorder")
    assert [event.text for event in heard(COUNTED, recorder, later).counted] == ["later", "x"]


def test_what_the_flight_recorders_did_not_tell_is_among_the_unread() -> None:
    asked = Report(of="flight_recorder", text="", unread=("flight recorder of TP1: it is stopped",))
    document = diagnose.document(view(REPORT), heard(asked, LOOK, REPORT), NOW)
    assert document["unread"] == ["flight recorder of TP1: it is stopped", "a"]


def test_exit_codes() -> None:
    assert diagnose.exit_code(view(REPORT), heard(LOOK, REPORT)) == 0
    assert diagnose.exit_code(view(REPORT), heard(COUNTED, REPORT)) == 0
    assert diagnose.exit_code(view(REPORT), heard(REPORT)) == 1
    assert diagnose.exit_code(view(), heard()) == 1
    assert diagnose.exit_code(view(link="refused"), heard()) == 6


class Watch:
    """A watching that answers the first question with a report."""

    def __init__(self, view: LaunchView, answer: Report | None) -> None:
        self.view = view
        self.asked: list[Action] = []
        self._answer = answer

    def ask(self, action: Action) -> None:
        self.asked.append(action)
        if self._answer is not None:
            self.view = replace(self.view, reports=(self._answer,))

    def wait_for(self, predicate: Callable[[LaunchView], bool], timeout: float) -> LaunchView:
        assert timeout > 0
        assert predicate(self.view) or self._answer is None
        return self.view


def test_a_stall_that_diagnosed_itself_is_not_diagnosed_again() -> None:
    watch = Watch(view(replace(REPORT, asked=False)), None)
    assert diagnose.on_stall(watch) == ("/x/report.md",)
    assert watch.asked == []


def test_a_report_of_an_earlier_stall_does_not_count() -> None:
    watch = Watch(view(replace(REPORT, at=NOW - 500)), replace(REPORT, saved=("/y/report.md",)))
    assert diagnose.on_stall(watch) == ("/y/report.md",)
    assert watch.asked == ["diagnose"]


def test_where_nothing_comes_nothing_is_saved() -> None:
    assert diagnose.on_stall(Watch(view(), None)) == ()
