"""Hangs that were recorded on two H200s: groups, suspects and disagreements are what the truth says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tuimon.diagnose import ras
from tuimon.diagnose.conclusion import disagreements, named
from tuimon.diagnose.groups import group
from tuimon.diagnose.pyspy import parse_json, parse_text
from tuimon.launch.events import Collectives, RankStack, Stacks

RECORDINGS = Path(__file__).resolve().parents[2].parent / "shared" / "recordings"
pytestmark = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside the repository")


class Recorded:
    """One recording's diagnosis: its sections by their headlines, and the truth."""

    def __init__(self, name: str) -> None:
        folder = RECORDINGS / name
        parts = [part.partition("\n") for part in re.split(r"(?m)^--- ", (folder / "diagnosis.txt").read_text())[1:]]
        self.sections = [(head, body) for head, _, body in parts]
        self.truth: dict[str, Any] = json.loads((folder / "truth.json").read_text())["truth"]
        self.pids: list[int] = self.truth["rank_pids"]

    @property
    def stacks(self) -> Stacks:
        """The plain dump of each rank."""
        found = []
        for head, body in self.sections:
            if match := re.match(r"py-spy \[\] pid (\d+) rc 0 ", head):
                found.append(RankStack(int(match[1]), None, parse_text(body)))
        return Stacks(ranks=tuple(found))

    def counts(self, form: str) -> Collectives:
        """What RAS said in one form."""
        body = next(body for head, body in self.sections if head == f"RAS {form}")
        report = ras.parse(body)
        assert report is not None
        return ras.as_event(report, {pid: f"rank {number}" for number, pid in enumerate(self.pids)})


@pytest.mark.parametrize("form", ["verbose", "json"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [("torch-nccl-missing-rank", "launched 1 of 2 collectives"), ("torch-rank-killed", "does not answer")],
)
def test_ras_names_the_culprit_in_both_forms(name: str, form: str, reason: str) -> None:
    recorded = Recorded(name)
    (suspect,) = named(None, [recorded.counts(form)])
    assert (suspect.rank, suspect.pid, suspect.reason) == (
        recorded.truth["culprit"], recorded.truth["culprit_pid"], reason,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["verbose", "json"])
def test_a_mismatch_names_both_collectives_and_nobody(form: str) -> None:
    recorded = Recorded("torch-nccl-mismatch")
    counts = recorded.counts(form)
    assert recorded.truth["culprit"] == "ranks disagree"
    assert named(recorded.stacks, [counts]) == ()
    (words,) = disagreements([counts])
    assert words.endswith("the ranks disagree: rank 0 launched AllReduce 3, rank 1 launched Broadcast 1, AllGather 1")


@pytest.mark.parametrize(
    ("name", "culprit", "waits"),
    [
        ("torch-nccl-missing-rank", 1008, "in a GPU sync: synchronize"),
        ("torch-rendezvous-missing-rank", 1012, "in a rendezvous: _create_c10d_store"),
        ("torch-gloo-host-deadlock", 698, "in a collective: barrier"),
    ],
)
def test_the_stacks_alone_tell_who_waits_and_who_never_came(name: str, culprit: int, waits: str) -> None:
    recorded = Recorded(name)
    assert [each.pid for each in named(recorded.stacks, [])] == [culprit]
    (waiting,) = [item for item in group(recorded.stacks) if not item.odd]
    assert waiting.waits_in == waits
    assert recorded.truth.get("culprit_pid") in (culprit, None)


@pytest.mark.parametrize(
    "name", ["torch-busy-matmul", "torch-idle", "torch-graph-capture", "torch-nvcc-compile", "torch-inductor-compile"]
)
def test_of_ranks_that_work_nobody_is_named(name: str) -> None:
    assert named(Recorded(name).stacks, []) == ()


def test_counts_of_working_ranks_differ_by_one_and_accuse_nobody_once_they_are_seen_rising() -> None:
    recorded = Recorded("torch-decode-loop")
    first, second = (
        ras.parse(next(body for head, body in recorded.sections if head == f"RAS {form}"))
        for form in ("verbose", "json")
    )
    assert first is not None
    assert second is not None
    assert [each.rank for each in named(None, [ras.as_event(first)])] == ["rank 1"]
    assert ras.has_moved(first, second)
    event = ras.as_event(first, moving=True)
    assert named(None, [event]) == ()
    assert "is behind its peers" not in (event.text or "")
    assert "the ranks work" in (event.text or "")


def test_every_recorded_section_can_be_read() -> None:
    for path in RECORDINGS.glob("*/diagnosis.txt"):
        for head, body in Recorded(path.parent.name).sections:
            if re.match(r"py-spy \[.*\] pid \d+ rc 0 ", head):
                assert parse_text(body), (path, head)
            elif head.startswith("py-spy nonblocking json") and "rc 0" in head:
                threads = parse_json(body.encode())  # some were cut by the recorder
                assert threads is None or threads
            elif head.startswith("RAS ") and "NCCL" in body[:200]:
                assert ras.parse(body), (path, head)
