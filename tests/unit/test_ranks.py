"""Who is a rank, and ranks in short."""

from __future__ import annotations

import pytest

from tests.judging import MIB
from tuimon.launch.events import Process
from tuimon.launch.ranks import in_short, ranks_of


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["TP0", "TP1", "TP2", "TP4", "TP5", "TP6", "TP7"], "TP[0-2,4-7]"),
        (["TP3"], "TP3"),
        (["EngineCore", "Worker_TP0", "Worker_TP1"], "Worker_TP[0-1] EngineCore"),
        (["DP0 TP1", "DP0 TP0", "DP1 TP0"], "DP0 TP[0-1] DP1 TP0"),
        ([], ""),
    ],
)
def test_many_ranks_have_one_short_name(names: list[str], short: str) -> None:
    assert in_short(names) == short


def test_titles_tell_the_ranks() -> None:
    processes = [Process(pid=1, ppid=0, state="S", rss=900 * MIB), Process(pid=2, ppid=1, state="S", rank="TP0")]
    assert [process.pid for process in ranks_of(processes)] == [2]


def test_without_titles_the_spawned_children_are_the_ranks() -> None:
    spawned = "python -c from multiprocessing.spawn import spawn_main"
    processes = [
        Process(pid=1, ppid=0, state="S", title="vllm serve", rss=900 * MIB),
        Process(pid=2, ppid=1, state="S", title=spawned),
        Process(pid=3, ppid=1, state="S", title="python -c from multiprocessing.resource_tracker import main"),
    ]
    assert [process.pid for process in ranks_of(processes)] == [2]


def test_without_any_title_whoever_loaded_a_library_is_compared() -> None:
    processes = [Process(pid=1, ppid=0, state="S", rss=900 * MIB), Process(pid=2, ppid=0, state="S", rss=900 * MIB)]
    assert [
        process.pid for process in ranks_of([*processes, Process(pid=3, ppid=1, state="S", name="sh", rss=MIB)])
    ] == [1, 2]
