"""The red banner's evidence: a few words for each thing that a reader would check first."""

from __future__ import annotations

from msgspec.structs import replace

from tests.ui import launches
from tuimon.launch.view import LaunchView
from tuimon.ui.banner import rows
from tuimon.ui.brief import reasons
from tuimon.ui.gpus import together
from tuimon.ui.rows import plain


def stall() -> LaunchView:
    return launches.MOMENTS["stall"]()


def test_a_silent_stall_is_said_in_a_few_words() -> None:
    assert reasons(stall())[:3] == ("log silent", "8 GPUs idle, 89 W at most", "all 10 processes asleep")


def test_a_busy_gpu_without_work_is_counted_as_such() -> None:
    view = stall()
    assert view.gpus is not None
    spinning = tuple(replace(gpu, util=100.0, work=0.0) if gpu.index != 3 else gpu for gpu in view.gpus)
    assert "7 of 8 GPUs busy without work" in reasons(replace(view, gpus=spinning))


def test_a_gpu_that_works_is_not_called_idle_or_lying() -> None:
    view = stall()
    assert view.gpus is not None
    working = tuple(replace(gpu, util=90.0, work=0.6) for gpu in view.gpus)
    assert not any("GPU" in reason for reason in reasons(replace(view, gpus=working)))


def test_processes_that_do_not_sleep_are_counted_by_what_they_do() -> None:
    view = stall()
    assert view.processes is not None
    first, *rest = view.processes
    stopped = (replace(first, states="T", pids=(1,)), *rest)
    said = next(reason for reason in reasons(replace(view, processes=stopped)) if "asleep" in reason)
    assert said.endswith("1 stopped")


def test_what_cannot_be_seen_says_so_and_never_reads_as_evidence() -> None:
    view = stall()
    hidden = tuple(replace(sign, visible=False) for sign in view.signs)
    said = reasons(replace(view, signs=hidden, gpus=None, processes=None))
    assert "log cannot be seen" in said
    assert "stacks not read" in said
    assert not any("GPU" in reason or "process" in reason for reason in said)


def test_all_gpus_in_one_line_say_their_work_and_who_stands_out() -> None:
    gpus = launches.spinning().gpus or ()
    words = plain([together(gpus, 56)])
    assert words == "▁▁▁▁▁▁▁▁ · 0 % work · TP5 ◀ · 8 × busy, no work · 568 GB"
    assert plain([together(gpus, 30)]) == "▁▁▁▁▁▁▁▁ · 0 % work · TP5 ◀"


def test_a_reason_that_is_cut_says_so() -> None:
    view = stall()
    reason = (
        "no “Load weight end” yet, which TP2 had 25 s ago; waits for storage; " + "stands in a long stack of names " * 9
    )
    suspects = (replace(view.verdict.suspects[0], reason=reason),)
    lines = plain(rows(replace(view, verdict=replace(view.verdict, suspects=suspects)), 120, 7)).splitlines()
    [cut] = [line.strip("█ ") for line in lines if "TP3: no" in line or "stands in" in line]
    assert cut.endswith("…")
