"""Signs of life on the host: what counts, what does not, and counters that lie."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judging import MIB, Rank, Story
from tuimon.launch.signs import Sign


def _after(seconds: float = 3, **more: object) -> Story:
    """A story in which one rank does exactly this, and nobody else anything."""
    story = Story(1, gpus=False)
    story.everybody("sleeps")
    story.ranks[0].more = more
    story.runs(seconds)
    return story


def _was_seen(sign: Sign) -> bool:
    return sign.last is not None


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ({"minor": 99}, False),
        ({"minor": 101}, True),
        ({"cpu": 1.0, "state": "R"}, False),
        ({"cpu": 1.0, "system": 0.9, "state": "R", "switches": 10_000}, False),
        ({"switches": 700, "rchar": 4_000}, False),
        ({"rchar": 200_000}, False),
        ({"rchar": 200_000, "switches": 50}, True),
        ({"rchar": 200_000, "system": 0.1}, True),
    ],
    ids=[
        "few faults", "many faults", "CPU alone", "a sched_yield spin", "a poll of a store", "I/O that cost nothing",
        "I/O with switches", "I/O with kernel time",
    ],
)  # fmt: skip
def test_host_work_is_faults_or_io_and_never_cpu_alone(more: dict[str, Any], seen: bool) -> None:
    assert _was_seen(_after(**more).launch.run.vitals.host) is seen


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ({"read": 20_000}, False),
        ({"read": 200_000}, True),
        ({"major": 1}, False),
        ({"major": 10}, True),
        ({"rss": 40_000}, False),
        ({"rss": MIB}, True),
        ({"rchar": 10_000_000}, False),
    ],
    ids=["trickle", "reading", "a fault", "mmap faults", "breathing", "memory grows", "rchar is not the disk"],
)
def test_disk_is_bytes_from_storage_faults_or_growing_memory(more: dict[str, Any], seen: bool) -> None:
    assert _was_seen(_after(**more).launch.run.vitals.disk) is seen


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"read": 200_000}, "reads 200 KB/s from storage"),
        ({"rss": 2_000_000}, "memory grows by 2 MB/s"),
        ({"major": 10}, "10 major faults/s"),
    ],
)
def test_a_quiet_launch_says_what_really_moved(more: dict[str, Any], words: str) -> None:
    story = _after(12, **more)
    assert story.launch.verdict.state == "quiet"
    assert words in story.launch.verdict.headline


def test_memory_that_one_process_gives_back_does_not_hide_what_another_takes() -> None:
    story = Story(2, gpus=False)
    story.everybody("sleeps")
    story.ranks[0].more = {"rss": -50 * MIB}
    story.ranks[1].more = {"rss": 2 * MIB}
    story.runs(3)
    assert _was_seen(story.launch.run.vitals.disk)


def test_a_counter_that_goes_backwards_tells_nothing() -> None:
    story = Story(1, gpus=False)
    story.everybody("sleeps")
    story.runs(3)
    story.ranks[0].more = {"minor": -100_000, "read": -5_000_000, "major": -50}
    story.runs(1)
    story.ranks[0].more = {}
    story.runs(2)
    assert not _was_seen(story.launch.run.vitals.host)
    assert not _was_seen(story.launch.run.vitals.disk)


def test_a_counter_that_goes_backwards_hides_nobody_elses_work() -> None:
    story = Story(2, gpus=False)
    story.everybody("sleeps")
    story.runs(3)
    story.ranks[0].more = {"minor": -100_000}
    story.ranks[1].more = {"minor": 500}
    story.runs(1)
    assert _was_seen(story.launch.run.vitals.host)


def test_work_counts_at_once_after_a_stretch_that_nobody_saw() -> None:
    story = Story(1, gpus=False)
    story.everybody("sleeps")
    story.runs(3)
    story.unseen(40)
    story.runs(1)
    story.ranks[0].more = {"minor": 200}
    story.runs(1)
    assert story.launch.run.vitals.host.last == story.now


def test_a_burst_now_and_then_is_no_work_and_the_same_rate_for_some_seconds_is() -> None:
    story = Story(1, gpus=False)
    story.everybody("sleeps")
    story.runs(10)
    for _ in range(4):
        story.ranks[0].more = {"minor": 600}
        story.runs(1)
        story.ranks[0].more = {}
        story.runs(14)
    assert not _was_seen(story.launch.run.vitals.host)
    story.ranks[0].more = {"minor": 600}
    story.runs(2)
    assert _was_seen(story.launch.run.vitals.host)


def test_a_reused_pid_is_another_process_and_its_counters_are_no_progress() -> None:
    story = Story(1, gpus=False)
    story.everybody("sleeps")
    story.runs(3)
    reborn = Rank(101, "TP0", title="sglang::scheduler_TP0", does="sleeps")
    reborn.process = reborn.step(0)
    for field, value in {"started": 9999.0, "minor_faults": 10_000_000, "read_bytes": 10**12, "rss": 10**11}.items():
        reborn.process = type(reborn.process)(
            **{f: getattr(reborn.process, f) for f in reborn.process.__struct_fields__} | {field: value}
        )
    story.ranks = [reborn]
    story.runs(1)
    assert not _was_seen(story.launch.run.vitals.host)
    assert not _was_seen(story.launch.run.vitals.disk)


def test_what_cannot_be_read_is_said_to_be_unseen_and_is_never_zero() -> None:
    story = Story(1, gpus=False)
    story.ranks[0].process = type(story.ranks[0].process)(pid=101, ppid=100, state="S")
    story.root.process = type(story.root.process)(pid=100, ppid=1, state="S")
    story.runs(3)
    host, disk = story.launch.run.vitals.host, story.launch.run.vitals.disk
    assert not host.visible
    assert not disk.visible
    assert "host work" in story.launch.verdict.unseen


@pytest.mark.parametrize("name", ["nvcc", "cicc", "ptxas", "ninja", "cc1plus", "ld"])
def test_a_compiler_with_cpu_is_alive_wherever_it_hangs_in_the_tree(name: str) -> None:
    story = _after()
    story.others = [Rank(500, None, ppid=101, name=name, does="sleeps")]
    story.runs(1)
    born = story.launch.run.vitals.compilers.last
    story.others[0].more = {"cpu": 0.9, "state": "R"}
    story.runs(2)
    last = story.launch.run.vitals.compilers.last
    assert born is not None
    assert last is not None
    assert last > born
    assert name in story.launch.run.vitals.compilers.text


def test_a_compiler_that_waits_for_ever_is_not_alive() -> None:
    story = _after()
    story.others = [Rank(500, None, ppid=101, name="ninja", does="sleeps")]
    story.runs(1)
    born = story.launch.run.vitals.compilers.last
    story.runs(10)
    assert story.launch.run.vitals.compilers.last == born
    assert "idle" in story.launch.run.vitals.compilers.text


def test_compilers_that_live_for_less_than_a_sample_show_in_their_parents_account() -> None:
    assert _was_seen(_after(children=0.5).launch.run.vitals.compilers)
    assert not _was_seen(_after(children=0.01).launch.run.vitals.compilers)


def test_a_download_counts_and_the_traffic_of_others_does_not() -> None:
    def received(rate: int, **more: object) -> Story:
        story = Story(1, gpus=False)
        story.everybody("sleeps")
        story.ranks[0].more = more
        total = 0
        for _ in range(4):
            total += rate
            story.host_load = type(story.host_load)(net_rx=total)
            story.runs(1)
        return story

    assert _was_seen(received(50_000_000, rchar=40_000_000).launch.run.vitals.network)
    assert not _was_seen(received(50_000_000).launch.run.vitals.network)
    assert not _was_seen(received(100_000, rchar=40_000_000).launch.run.vitals.network)


def test_a_daemon_that_ticks_for_ever_keeps_nobody_alive() -> None:
    story = _after()
    story.others = [Rank(600, None, ppid=100, name="raylet", does="imports")]
    story.runs(5)
    assert not _was_seen(story.launch.run.vitals.host)


def test_what_ended_children_used_is_told_in_seconds_for_it_is_no_rate() -> None:
    assert _after(children=200.0).launch.run.vitals.compilers.text == "children ended, 200.0 s of CPU used"
