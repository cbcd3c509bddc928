"""Ranks in the same place are one group; the odd one is marked, and nobody where nobody can be singled out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.diagnose.groups import StackGroup, disagree, group, moved, summary, tree
from tuimon.diagnose.ranges import compact
from tuimon.launch.events import Frame, RankStack, Stacks, ThreadStack

PLUMBING = (
    Frame("BaseProcess.run", "/opt/python3.11/lib/python3.11/multiprocessing/process.py", 108),
    Frame("BaseProcess._bootstrap", "/opt/python3.11/lib/python3.11/multiprocessing/process.py", 314),
    Frame("_main", "/opt/python3.11/lib/python3.11/multiprocessing/spawn.py", 135),
    Frame("spawn_main", "/opt/python3.11/lib/python3.11/multiprocessing/spawn.py", 122),
    Frame("<module>", "<string>", 1),
)
SCHEDULER = "/usr/lib/python3/site-packages/sglang/srt/managers/scheduler.py"


def rank(
    name: str | None, *calls: str, pid: int | None = None, state: str = "S", wchan: str = "futex_do_wait"
) -> RankStack:
    """Calls outermost first: `forward:22`."""
    split = [call.partition(":") for call in reversed(calls)]
    frames = [Frame(call, SCHEDULER, int(line or 1)) for call, _, line in split]
    main = ThreadStack("MainThread", (*frames, *PLUMBING), active=False, owns_gil=False)
    other = ThreadStack("watchdog", (Frame("heartbeat", SCHEDULER, 40),))
    number = pid if pid is not None else 1000 + sum(map(ord, name or "")) * 7 % 991
    return RankStack(number, name, (other, main), state=state, wchan="futex_do_wait")


def looked(*ranks: RankStack) -> Stacks:
    return Stacks(ranks=ranks)


def shown(groups: tuple[StackGroup, ...]) -> list[tuple[str, bool, str | None]]:
    return [(item.label, item.odd, item.waits_in) for item in groups]


def test_the_rank_that_never_came_to_the_collective_is_the_odd_one() -> None:
    waiting = [rank(f"TP{n}", "scheduler", "forward:22", "all_reduce", pid=n + 1) for n in range(8) if n != 3]
    found = group(looked(*waiting, rank("TP3", "scheduler", "forward:20", "go_wrong", pid=99)))

    assert shown(found) == [
        ("TP3", True, "for a lock (futex)"),
        ("TP[0-2,4-7]", False, "in a collective: all_reduce"),
    ]
    assert summary(found) == (
        "8 ranks in 2 groups: TP[0-2,4-7] waits in a collective: all_reduce"
        " · TP3 waits for a lock (futex) (odd one out)"
    )


def test_where_most_have_not_come_yet_they_are_the_odd_ones_not_the_first_to_wait() -> None:
    found = group(looked(rank("TP0", "barrier"), *(rank(f"TP{n}", "load") for n in range(1, 4))))

    assert [(item.label, item.odd) for item in found] == [("TP[1-3]", True), ("TP0", False)]


def test_different_collectives_mean_that_the_ranks_disagree_and_single_nobody_out() -> None:
    found = group(
        looked(rank("TP0", "check", "all_reduce"), *(rank(f"TP{n}", "recv", "broadcast") for n in range(1, 4)))
    )

    assert not any(item.odd for item in found)
    assert disagree(found)
    assert "no single culprit" in summary(found)


def test_without_any_collective_the_minority_is_the_suspect() -> None:
    found = group(looked(rank("TP0", "a"), rank("TP1", "b"), rank("TP2", "b"), rank("TP3", "b")))
    assert [(item.label, item.odd) for item in found] == [("TP0", True), ("TP[1-3]", False)]


def test_two_ranks_in_different_places_give_no_minority() -> None:
    assert not any(item.odd for item in group(looked(rank("TP0", "a"), rank("TP1", "b"))))


def test_a_stopped_rank_stands_apart_though_it_is_in_the_same_call() -> None:
    found = group(looked(rank("TP0", "all_reduce"), rank("TP1", "all_reduce", state="T")))
    assert shown(found) == [("TP1", True, "stopped by a signal"), ("TP0", False, "in a collective: all_reduce")]


def test_launcher_and_detokenizer_are_no_peers_and_never_odd() -> None:
    found = group(looked(rank("launcher", "serve"), rank("TP0", "step"), rank("TP1", "step"), rank("detokenizer", "x")))
    assert [(item.label, item.peers, item.odd) for item in found] == [
        ("TP[0-1]", True, False),
        ("detokenizer", False, False),
        ("launcher", False, False),
    ]


def test_ranks_that_no_title_names_are_compared_with_each_other() -> None:
    found = group(
        looked(rank("launcher", "wait", pid=1), *(rank(None, "barrier", pid=n) for n in (2, 3)), rank(None, "x", pid=4))
    )
    assert [(item.label, item.odd) for item in found] == [("pid 4", True), ("pid [2-3]", False), ("launcher", False)]


def test_plumbing_is_left_out_and_engine_frames_are_marked() -> None:
    (item,) = group(looked(rank("TP0", "run_scheduler_process", "forward")))
    assert [(place.name, place.file, place.engine) for place in item.frames] == [
        ("forward", "sglang/srt/managers/scheduler.py", True),
        ("run_scheduler_process", "sglang/srt/managers/scheduler.py", True),
    ]


def test_a_stack_of_nothing_but_plumbing_is_shown_whole() -> None:
    (item,) = group(looked(RankStack(1, "TP0", (ThreadStack("MainThread", PLUMBING),))))
    assert len(item.frames) == len(PLUMBING)


def test_different_lines_split_a_group_but_a_loop_does_not_scatter_it() -> None:
    split = group(looked(*(rank(f"TP{n}", "forward:20" if n == 3 else "forward:22") for n in range(8))))
    loop = group(looked(*(rank(f"TP{n}", f"spin:{10 + n}") for n in range(8))))

    assert [item.label for item in split] == ["TP3", "TP[0-2,4-7]"]
    assert [(item.label, item.frames[0].line) for item in loop] == [("TP[0-7]", None)]


def test_a_gil_held_inside_c_is_said() -> None:
    main = ThreadStack("MainThread", (Frame("step", SCHEDULER, 1),), active=False, owns_gil=True)
    assert group(looked(RankStack(1, "TP0", (main,))))[0].gil_held


def test_the_main_thread_is_found_by_its_id_before_its_name() -> None:
    renamed = ThreadStack("worker", (Frame("main_work", SCHEDULER, 1),), tid=7)
    other = ThreadStack("MainThread", (Frame("impostor", SCHEDULER, 1),), tid=8)
    assert group(looked(RankStack(7, "TP0", (renamed, other))))[0].frames[0].name == "main_work"


def test_the_tree_writes_shared_calls_once_and_names_the_ranks_of_each_branch() -> None:
    waiting = [rank(f"TP{n}", "scheduler", "forward:22", "all_reduce", pid=n + 1) for n in range(64) if n != 3]
    lines = tree(group(looked(*waiting, rank("TP3", "scheduler", "forward:20", "go_wrong", pid=99))))

    assert [(line.depth, line.place.name, line.label, line.count) for line in lines] == [
        (0, "scheduler", "TP[0-63]", 64),
        (1, "forward", "TP3", 1),
        (2, "go_wrong", "TP3", 1),
        (1, "forward", "TP[0-2,4-63]", 63),
        (2, "all_reduce", "TP[0-2,4-63]", 63),
    ]
    assert [line.group.label for line in lines if line.group] == ["TP3", "TP[0-2,4-63]"]


def test_moved_compares_main_threads_of_processes_that_are_in_both_looks() -> None:
    before = looked(rank("TP0", "step:1", pid=1), rank("TP1", "wait", pid=2))

    assert moved(before, looked(rank("TP0", "step:2", pid=1))) is True
    assert moved(before, looked(rank("TP1", "wait", pid=2))) is False
    assert moved(before, looked(rank("TP1", "wait", pid=3))) is None


def test_a_look_that_read_nothing_has_no_groups() -> None:
    assert group(Stacks()) == ()
    assert summary((), 3) == "no stack could be read (3 tried)"


@pytest.mark.parametrize(
    ("labels", "short"),
    [
        (["TP0", "TP1", "TP2", "TP4", "TP10"], "TP[0-2,4,10]"),
        (["TP3"], "TP3"),
        ([f"DP{d} TP{t}" for d in range(2) for t in range(4)], "DP[0-1] TP[0-3]"),
        (["DP0 TP0", "DP0 TP1", "DP1 TP1"], "DP0 TP[0-1], DP1 TP1"),
        ([f"PP{p} DP{d} TP{t}" for p in range(2) for d in range(2) for t in range(2)], "PP[0-1] DP[0-1] TP[0-1]"),
        (["EngineCore", "TP0"], "EngineCore, TP0"),
        ([], ""),
    ],
)
def test_many_ranks_are_named_in_few_characters(labels: list[str], short: str) -> None:
    assert compact(labels) == short


@given(st.lists(st.text(max_size=20), max_size=20))
def test_any_labels_can_be_folded(labels: list[str]) -> None:
    assert isinstance(compact(labels), str)


frames = st.builds(Frame, st.text(max_size=30), st.none() | st.text(max_size=30), st.none() | st.integers())
threads = st.builds(ThreadStack, st.none() | st.text(max_size=9), st.lists(frames, max_size=5).map(tuple))
ranks = st.builds(
    RankStack, st.integers(1, 50), st.none() | st.text(max_size=9), st.lists(threads, max_size=3).map(tuple),
    state=st.none() | st.text(max_size=1), wchan=st.none() | st.text(max_size=20),
)  # fmt: skip


@given(st.lists(ranks, max_size=8))
def test_any_stacks_can_be_grouped_and_nobody_is_lost(found: list[RankStack]) -> None:
    groups = group(Stacks(ranks=tuple(found)))
    assert sum(len(item.pids) for item in groups) == len(found)
    assert isinstance(summary(groups), str)
    assert all(line.count > 0 for line in tree(groups))
