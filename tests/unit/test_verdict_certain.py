"""Certain deaths need no patience; what only looks like one needs a second look."""

from __future__ import annotations

import pytest

from tests.judging import Rank, Story, hung
from tuimon.launch.events import Finding, HostLoad, LogText, Sample, ServerGone
from tuimon.launch.told import LogError
from tuimon.launch.view import RED
from tuimon.ui.pressing import pressing


def _alive(ranks: int = 2) -> Story:
    story = Story(ranks)
    story.everybody("imports", "idle")
    story.runs(5)
    return story


def _fatal(story: Story, rank: str | None = None, advice: str | None = None) -> LogError:
    return LogError(
        line=9,
        text="torch.OutOfMemoryError: CUDA out of memory",
        kind="cuda_memory",
        at=story.now,
        fatal=True,
        rank=rank,
        advice=advice,
    )


def test_a_zombie_rank_is_certain_within_three_seconds() -> None:
    story = _alive()
    story.ranks[1].does = "zombie"
    verdict = story.runs(2)
    assert verdict.state == "stalled"
    assert verdict.certain
    assert verdict.kind == "rank killed"
    assert [(s.rank, s.pid) for s in verdict.suspects] == [("TP1", 102)]


def test_a_vanished_rank_is_certain_while_others_work_on() -> None:
    story = _alive()
    story.ranks = story.ranks[:1]
    verdict = story.runs(2)
    assert verdict.state == "stalled"
    assert verdict.certain
    assert [s.pid for s in verdict.suspects] == [102]


def test_a_helper_may_come_and_go() -> None:
    story = _alive()
    story.others = [
        Rank(300, None, title="python -m vllm.model_executor.models.registry"),
        Rank(301, None, name="nvidia-smi"),
        Rank(302, None, title="python -c from multiprocessing.resource_tracker import main"),
    ]
    story.runs(5)
    story.others[1].does = "zombie"
    story.runs(3)
    story.others = []
    story.runs(5)
    assert not set(story.states()) & RED


SPAWNED = "python -c from multiprocessing.spawn import spawn_main"


def test_a_worker_without_a_title_yet_that_vanishes_beside_its_twin_is_certain() -> None:
    story = Story(0)
    story.others = [Rank(301, None, title=SPAWNED), Rank(302, None, title=SPAWNED)]
    story.runs(5)
    story.others = story.others[:1]
    verdict = story.runs(3)
    assert verdict.state == "stalled"
    assert verdict.certain
    assert [s.pid for s in verdict.suspects] == [302]


def test_a_pool_of_workers_that_ends_within_a_second_or_two_has_done_its_work() -> None:
    story = _alive()
    story.others = [Rank(301 + i, None, title=SPAWNED) for i in range(3)]
    story.runs(5)
    for _ in range(3):
        story.others = story.others[1:]
        story.runs(1)
    story.runs(10)
    assert not set(story.states()) & RED


LOADER = "python3 train.py --epochs 3"


def _training(loaders: int = 0) -> Story:
    story = Story(0, real_log=True, engine="torchrun", argv=("torchrun", "--nproc-per-node", "2", "train.py"))
    story.others = [Rank(201 + i, None, title=LOADER, does="imports") for i in range(2)]
    story.others += [Rank(301 + i, None, ppid=201 + i % 2, title=LOADER, does="imports") for i in range(loaders)]
    story.runs(5)
    return story


def test_a_data_loader_that_is_glimpsed_as_a_zombie_is_no_dead_rank() -> None:
    story = _training(4)
    story.others[-1].does = "zombie"
    story.runs(1)
    story.others = story.others[:-1]
    story.runs(10)
    assert not set(story.states()) & RED


def test_data_loaders_are_no_suspects_where_a_rank_stands_still() -> None:
    story = _training(4)
    for rank in story.others:
        rank.does = "sleeps"
    story.others[0].does = "spins"
    verdict = story.runs(25)
    assert [suspect.pid for suspect in verdict.suspects] == [202]


@pytest.mark.parametrize("end", ["zombie", "vanishes"])
def test_a_rank_of_a_training_that_has_done_its_part_is_waited_for_by_nobody(end: str) -> None:
    story = _training()
    story.others[1].does = "zombie"
    story.others = story.others[: 2 if end == "zombie" else 1]
    story.runs(60)
    assert not set(story.states()) & RED
    story.others[0].does = "sleeps"
    assert story.runs(25).state in RED


@pytest.mark.parametrize("end", ["zombie", "vanishes"])
def test_one_whose_death_silences_the_others_at_once_is_the_reason(end: str) -> None:
    story = _training()
    story.others[0].does = "spins"
    story.others[1].does = "zombie"
    story.others = story.others[: 2 if end == "zombie" else 1]
    verdict = story.runs(4)
    assert (verdict.kind, [suspect.pid for suspect in verdict.suspects]) == ("rank killed", [202])


def test_a_lone_child_that_vanishes_matters_only_if_silence_follows() -> None:
    def after_the_child(does: str) -> Story:
        story = Story(0)
        story.others = [Rank(301, None, title=SPAWNED)]
        story.runs(5)
        story.others.append(Rank(302, None, title=SPAWNED))
        story.runs(5)
        story.others = story.others[:1]
        story.others[0].does = does
        story.runs(3)
        return story

    assert not set(after_the_child("imports").states()) & RED
    silent = after_the_child("sleeps").launch.verdict
    assert silent.state == "stalled"
    assert [s.pid for s in silent.suspects] == [302]


def test_a_rank_that_was_dead_when_we_came_matters_where_its_peers_wait() -> None:
    def came_late(does: str) -> Story:
        story = Story(0)
        story.others = [Rank(301, None, does=does), Rank(302, None, does="zombie")]
        story.runs(4)
        return story

    assert not set(came_late("imports").states()) & RED
    verdict = came_late("spins").launch.verdict
    assert verdict.kind == "rank killed"
    assert [s.pid for s in verdict.suspects] == [302]


def test_no_rank_left_is_a_crash() -> None:
    story = _alive()
    story.everybody("zombie")
    assert story.runs(2).state == "crashed"


def test_one_glance_at_a_zombie_is_not_enough() -> None:
    story = _alive()
    story.ranks[1].does = "zombie"
    assert story.runs(1).state not in RED


def test_an_oom_kill_is_named_only_if_it_was_ours() -> None:
    story = _alive()
    story.host_load = HostLoad(oom_kills=1)
    assert story.runs(2).state not in RED
    story.host_load = HostLoad(oom_kills=2)
    story.ranks[1].does = "zombie"
    verdict = story.runs(2)
    assert verdict.kind == "out of memory"
    assert "Memory" in pressing(verdict.advice)


def test_a_stopped_rank_is_frozen_and_certain() -> None:
    story = _alive()
    story.ranks[1].does = "stops"
    verdict = story.runs(2)
    assert verdict.state == "frozen"
    assert verdict.certain
    assert verdict.kind == "rank stopped"
    assert [s.rank for s in verdict.suspects] == ["TP1"]
    assert "CONT" in pressing(verdict.advice)


def test_a_debuggers_stop_is_not_frozen() -> None:
    story = _alive()
    story.ranks[1].more = {"state": "t"}
    assert story.runs(5).state not in RED


def test_a_frozen_cgroup_is_frozen() -> None:
    story = _alive()
    for rank in story.ranks:
        rank.more = {"frozen": True, "state": "S"}
    verdict = story.runs(2)
    assert verdict.state == "frozen"
    assert verdict.kind == "cgroup frozen"


def test_after_a_stopped_rank_goes_on_silence_begins_anew() -> None:
    story = _alive()
    story.everybody("sleeps")
    story.ranks[1].does = "stops"
    story.runs(60)
    story.ranks[1].does = "sleeps"
    assert story.runs(2).state not in RED
    assert story.runs(20).state == "stalled"
    assert story.launch.snapshot(story.now).episodes[0].state == "frozen"


def test_slow_sampling_needs_no_second_sample() -> None:
    story = _alive()
    story.interval = 5.0
    story.runs(20)
    story.ranks[1].does = "stops"
    story.runs(5)
    assert story.launch.settle(story.now + 3).state == "frozen"


def test_a_fatal_line_is_a_crash_at_once() -> None:
    story = _alive()
    story.tells(fatal=_fatal(story, rank="TP1", advice="Lower --mem-fraction-static."), error=_fatal(story, rank="TP1"))
    verdict = story.runs(1)
    assert verdict.state == "crashed"
    assert verdict.certain
    assert verdict.headline.startswith("torch.OutOfMemoryError")
    assert pressing(verdict.advice) == "Lower --mem-fraction-static."
    assert [s.pid for s in verdict.suspects] == [102]


def test_the_first_error_is_shown_not_the_last() -> None:
    story = _alive()
    first = LogError(line=3, text="ValueError: the cause", kind="traceback", at=story.now, fatal=False)
    story.tells(error=first, fatal=_fatal(story))
    assert story.runs(1).headline == "ValueError: the cause"


def test_a_fatal_line_that_the_server_outlives_was_none() -> None:
    story = _alive()
    story.tells(fatal=_fatal(story))
    assert story.runs(1).state == "crashed"
    for _ in range(8):
        story.runs(3)
        story.says("goes on")
    assert story.runs(1).state == "starting"
    ready = _alive()
    ready.tells(fatal=_fatal(ready))
    ready.runs(2)
    ready.tells(ready=ready.now)
    assert ready.runs(1).state == "ready"


class TestTheEnd:
    """How a launch can end."""

    def test_as_asked(self) -> None:
        story = _alive()
        story.tells(ready=story.now)
        story.runs(2)
        story.tells(ended=story.now)
        story.ranks = []
        assert story.runs(3).state == "finished", "ranks that vanish after SIGTERM are no deaths"
        self._gone(story)
        assert story.launch.settle(story.now).state == "finished"

    def test_before_ready_without_a_word(self) -> None:
        story = _alive()
        self._gone(story)
        verdict = story.launch.settle(story.now)
        assert verdict.state == "crashed"
        assert verdict.certain

    def test_after_ready_without_a_word(self) -> None:
        story = _alive()
        story.tells(ready=story.now)
        self._gone(story)
        assert story.launch.settle(story.now).state == "crashed"

    def test_training_that_just_ends_has_finished(self) -> None:
        story = _alive()
        story.tells(serves=False)
        self._gone(story)
        assert story.launch.settle(story.now).state == "finished"

    def test_training_with_a_dead_rank_has_crashed(self) -> None:
        story = _alive()
        story.tells(serves=False)
        story.ranks[1].does = "zombie"
        story.runs(1)
        self._gone(story)
        verdict = story.launch.settle(story.now)
        assert verdict.state == "crashed"
        assert [s.pid for s in verdict.suspects] == [102]

    @pytest.mark.parametrize(("code", "state"), [(0, "finished"), (1, "crashed"), (-9, "crashed")])
    def test_the_exit_code_decides_where_it_is_known(self, code: int, state: str) -> None:
        story = _alive()
        story.apply(ServerGone(at=story.now, pid=100, exit=code))
        assert story.launch.settle(story.now).state == state

    @staticmethod
    def _gone(story: Story) -> None:
        story.now += 1
        story.apply(Sample(at=story.now, mono=story.mono + 1, processes=()))


def test_a_stop_is_found_even_in_a_launch_that_is_already_red() -> None:
    story = hung()
    story.runs(25)
    story.ranks[0].does = "stops"
    assert story.runs(2).state == "frozen"


def test_silence_right_after_an_error_is_a_crash_with_that_error() -> None:
    story = _alive()
    story.tells(error=LogError(line=3, text="ValueError: no such tensor", kind="traceback", at=story.now, fatal=False))
    story.says("ValueError: no such tensor")
    story.everybody("sleeps")
    assert story.runs(15).state not in RED
    verdict = story.runs(10)
    assert (verdict.state, verdict.kind, verdict.certain) == ("crashed", "error", False)
    assert "no such tensor" in verdict.headline


def test_an_old_error_is_not_the_reason_of_a_later_silence() -> None:
    story = _alive()
    story.tells(error=LogError(line=3, text="ValueError: optional", kind="traceback", at=story.now, fatal=False))
    story.runs(15)
    story.everybody("sleeps")
    assert story.runs(25).state == "stalled"


def test_an_error_before_the_arguments_were_told_was_survived() -> None:
    story = Story(2, real_log=True)
    story.runs(2)
    log = b"""Traceback (most recent call last):
  File "/opt/site/deep_gemm_wrapper/entrypoint.py", line 21, in <module>
    from deep_gemm.utils.layout import (
ModuleNotFoundError: No module named 'deep_gemm.utils'
[2026-11-30 04:04:30] server_args=ServerArgs(model_path='/data/models/target', tp_size=2)
"""
    story.apply(LogText(at=story.now, offset=0, text=log))
    story.runs(1)
    story.everybody("sleeps", "idle")
    verdict = story.runs(25)
    assert (verdict.state, verdict.kind) == ("stalled", "host deadlock")


@pytest.mark.parametrize(("xid", "red"), [(79, True), (31, False)])
def test_a_gpu_that_is_lost_is_certain(xid: int, red: bool) -> None:
    story = _alive()
    story.gpu_more[1] = {"xid": xid}
    verdict = story.runs(1)
    assert (verdict.state in RED) is red
    if red:
        assert verdict.kind == "GPU lost"
        assert [s.rank for s in verdict.suspects] == ["TP1"]


def test_the_kernels_word_for_a_lost_gpu_counts_for_one_that_does_nothing() -> None:
    story = _alive()
    story.apply(Finding(at=story.now, source="kernel", kind="xid", text="Xid 79: off the bus", severity="fatal"))
    assert story.runs(5).state not in RED
    story.everybody("sleeps")
    assert story.runs(12).state == "crashed"


@pytest.mark.parametrize(("ready", "state"), [(True, "failing"), (False, "stalled")])
def test_the_servers_own_watchdog_reports_a_hang_and_no_crash(ready: bool, state: str) -> None:
    story = _alive()
    story.tells(
        ready=story.now if ready else None,
        fatal=LogError(line=3, text="watchdog timeout", kind="watchdog", at=story.now + 1, fatal=True),
    )
    verdict = story.runs(2)
    assert verdict.state == state
    assert verdict.certain
