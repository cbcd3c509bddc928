"""Hangs made on two H200 (torch 2.11, NCCL 2.28.9): RAS and the flight recorders name the rank, and agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.diagnose import flight_recorder, ras
from tuimon.launch.events import Collectives

DATA = Path(__file__).parent / "data" / "h200"


def asked_ras(scene: str) -> Collectives:
    report = ras.parse((DATA / scene / "ras.txt").read_text())
    assert report is not None
    return ras.as_event(report)


def recorded(scene: str) -> Collectives:
    dumps = sorted((DATA / scene).glob("flight_recorder_*.pickle"))
    return flight_recorder.analyse(
        {f"rank {path.stem[-1]}": flight_recorder.parse(path.read_bytes()) for path in dumps}
    )


def launched(found: Collectives) -> list[int | None]:
    return [count.launched for count in sorted(found.counts, key=lambda count: count.rank)]


def test_a_rank_that_never_joins_is_one_collective_behind_in_both() -> None:
    assert launched(asked_ras("missing")) == [21, 20]
    assert launched(recorded("missing")) == [21, 20]


def test_a_mismatch_blames_nobody_and_names_both_collectives_in_both() -> None:
    said, dumped = asked_ras("mismatch"), recorded("mismatch")
    assert "rank 0 launched AllReduce 21, rank 1 launched Broadcast 1" in (said.text or "")
    assert "rank 1 called nccl:broadcast" in (dumped.text or "")
    assert "rank 0 called nccl:all_reduce" in (dumped.text or "")
    assert not any(count.missing for count in said.counts)


def test_a_dead_rank_is_missing_in_ras() -> None:
    assert [count.rank for count in asked_ras("killed").counts if count.missing] == ["rank 1"]


@pytest.mark.parametrize("scene", ["stopped", "killed"])
def test_a_rank_that_is_stopped_or_dead_writes_no_dump(scene: str) -> None:
    assert [count.rank for count in recorded(scene).counts] == ["rank 0"]
