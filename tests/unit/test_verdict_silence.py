"""Silence: amber, then red, and everything that must not turn red."""

from __future__ import annotations

import pytest

from tests.judging import START, Rank, Story, hung
from tuimon.config import Patience
from tuimon.launch.events import UsualTimes
from tuimon.launch.view import RED, Missing, PhaseView
from tuimon.ui.pressing import pressing

STACK = [("acquire", 10), ("wait", 20), ("barrier", 30), ("load_model", 40)]


def test_a_launch_that_works_is_starting() -> None:
    story = Story(2)
    assert story.runs(60).state == "quiet", "alive, but the log is silent: amber"
    assert not set(story.states()) & RED
    assert "alive" in story.launch.verdict.headline


def test_a_launch_that_writes_is_starting() -> None:
    story = Story(2)
    story.everybody("sleeps")
    for _ in range(20):
        story.says("loading")
        story.runs(3)
    assert story.states() == ["starting"]


@pytest.mark.parametrize(("running", "words"), [(True, "CUDA graphs"), (False, "after “CUDA graphs”")])
def test_a_phase_that_has_ended_is_not_said_to_run(running: bool, words: str) -> None:
    story = Story(2)
    story.says("Capture cuda graph")
    story.tells(phase="CUDA graphs", phase_running=running)
    verdict = story.runs(3)
    assert (verdict.state, verdict.headline) == ("starting", words)


def test_amber_at_ten_seconds_red_at_twenty() -> None:
    story = hung()
    onset = story.now
    assert story.runs(9).state == "starting"
    assert story.runs(2).state == "quiet"
    assert story.launch.verdict.wants_stacks
    assert story.runs(7).state == "quiet"
    verdict = story.runs(3)
    assert verdict.state == "stalled"
    assert verdict.kind == "host deadlock"
    assert verdict.since == onset
    assert not verdict.certain
    assert "nothing alive" in verdict.headline


def test_only_what_is_alive_now_is_said_to_work() -> None:
    story = Story(2)
    story.everybody("imports", "idle")
    story.runs(12)
    story.everybody("sleeps", "idle")
    quiet = [story.runs(1) for _ in range(8)]
    assert {verdict.state for verdict in quiet} == {"quiet"}
    assert pressing(quiet[1].advice) == "Wait: it works."
    assert quiet[-1].headline == "the log is silent, last alive: disk reads"
    assert pressing(quiet[-1].advice) == "Wait some seconds: if nothing comes, it is called a stall."


def test_patience_can_be_set() -> None:
    story = Story(1, patience=Patience(quiet=3, stalled=6))
    story.everybody("sleeps")
    assert story.runs(5).state == "quiet"
    assert story.runs(3).state == "stalled"


@pytest.mark.parametrize("sign", ["faults", "disk", "gpu", "gpu memory", "compiler", "log"])
def test_any_one_sign_keeps_it_alive(sign: str) -> None:
    story = hung()
    compiler = Rank(700, None, ppid=101, name="cicc", does="spins")
    for second in range(60):
        if sign == "faults":
            story.ranks[0].more = {"minor": 500}
        elif sign == "disk":
            story.ranks[0].more = {"read": 1_000_000}
        elif sign == "gpu":
            story.gpus = ["works", "idle"]
        elif sign == "gpu memory":
            story.gpu_memory[0] += 50_000_000
        elif sign == "compiler":
            story.others = [compiler]
        elif second % 8 == 0:
            story.says("a line")
        story.runs(1)
    assert not set(story.states()) & RED


def test_stacks_that_move_hold_red_back() -> None:
    story = hung(does="spins")
    for i in range(15):
        story.runs(2)
        story.looks([*STACK[:2], ("barrier", 30 + i), *STACK[3:]])
    assert not set(story.states()) & RED
    for _ in range(12):
        story.runs(2)
        story.looks(STACK)
    assert story.launch.verdict.state == "spinning"


def test_heartbeats_are_no_life_but_are_said() -> None:
    story = hung()
    for _ in range(6):
        story.runs(5)
        story.tells(last_heartbeat=story.now, heartbeat_text="still waiting for the lock", last_text=story.now)
    assert story.launch.verdict.state == "stalled"
    log = next(evidence for evidence in story.launch.verdict.evidence if evidence.sign == "log")
    assert "still waiting" in log.text


def test_it_clears_at_the_first_sign_and_keeps_the_episode() -> None:
    story = hung()
    story.runs(25)
    story.says("it goes on")
    story.everybody("imports")
    verdict = story.runs(2)
    assert verdict.state == "starting"
    view = story.launch.snapshot(story.now)
    assert len(view.episodes) == 1
    assert view.episodes[0].state == "stalled"
    assert view.episodes[0].end is not None


def test_two_stalls_are_two_episodes() -> None:
    story = hung()
    story.runs(25)
    story.says("it goes on")
    story.runs(25)
    assert [episode.end is None for episode in story.launch.snapshot(story.now).episodes] == [False, True]


def test_evidence_lists_each_sign_with_its_age() -> None:
    story = hung()
    verdict = story.runs(25)
    ages = {evidence.sign: evidence.age for evidence in verdict.evidence}
    assert ages["host work"] == pytest.approx(25)
    assert ages["GPU work"] is None
    assert "not in the 34 s since we look" in next(e.text for e in verdict.evidence if e.sign == "GPU work")


def test_what_cannot_be_seen_is_named() -> None:
    story = Story(1, gpus=False, log=False)
    story.everybody("sleeps")
    verdict = story.runs(25)
    assert verdict.state == "stalled"
    assert {"GPU work", "log"} <= set(verdict.unseen)


def test_stacks_that_cannot_be_read_are_said_without_waiting_longer() -> None:
    story = hung()
    story.runs(12)
    story.looks()
    verdict = story.runs(9)
    assert verdict.state == "stalled"
    assert "stacks cannot be read" in verdict.headline


class TestPatienceWithoutSight:
    """Where less can be seen, patience is longer, and says so."""

    def test_without_the_hosts_counters(self) -> None:
        story = Story(1, host=False)
        story.runs(5)
        story.gpus = ["idle"]
        assert story.runs(50).state == "quiet"
        verdict = story.runs(20)
        assert verdict.state == "stalled"
        assert "host's counters cannot be read" in verdict.headline

    @pytest.mark.parametrize("log", [True, False])
    def test_with_at_most_the_log_only_the_clock_is_left(self, log: bool) -> None:
        story = Story(1, gpus=False, host=False, log=log)
        assert story.runs(170).state == "quiet"
        assert story.runs(20).state == "stalled"

    def test_a_bar_that_steps_slowly(self) -> None:
        story = Story(1, host=False)
        story.gpus = ["idle"]
        story.tells(phases=(PhaseView("weights", "running", count=4, total=170, rate=1 / 82),))
        assert story.runs(200).state == "quiet"
        assert story.runs(60).state == "stalled"

    def test_graph_capture_with_nothing_at_all_may_take_longer(self) -> None:
        story = Story(1, gpus=False, host=False, log=False)
        story.tells(phase="CUDA graphs")
        assert story.runs(290).state == "quiet"
        assert story.runs(20).state == "stalled"

    def test_a_busy_host_whose_gpus_cannot_be_read(self) -> None:
        story = Story(1, gpus=False)
        story.everybody("spins")
        assert story.runs(50).state == "quiet"
        assert story.runs(15).state == "spinning"

    def test_stacks_decide_where_the_gpu_cannot(self) -> None:
        story = Story(1, gpus=False)
        story.everybody("spins")
        for _ in range(11):
            story.runs(2)
            story.looks(STACK)
        assert story.launch.verdict.state == "spinning"

    def test_an_idle_tree_needs_no_longer_patience(self) -> None:
        story = Story(1, gpus=False)
        story.everybody("sleeps")
        for rank in (story.root, story.ranks[0]):
            fields = {"minor_faults": None, "read_bytes": None, "rchar": None, "write_bytes": None}
            kept = {name: getattr(rank.process, name) for name in rank.process.__struct_fields__}
            rank.process = type(rank.process)(**(kept | fields))
        assert story.runs(22).state == "stalled"

    def test_this_hosts_history_makes_it_longer(self) -> None:
        story = Story(1, gpus=False, host=False)
        story.apply(UsualTimes(at=START, phases={"kernel warm-up": 300.0}, launches=3))
        story.tells(phase="kernel warm-up", phase_running=True)
        assert story.runs(220).state == "quiet"
        assert story.runs(100).state == "stalled"


class TestWords:
    """The banner is for a reader at 3 a.m."""

    def test_between_phases(self) -> None:
        story = hung()
        story.tells(phase="CUDA graphs", phase_running=False)
        assert story.runs(25).headline.startswith("after “CUDA graphs”: nothing alive")

    def test_in_a_phase(self) -> None:
        story = hung()
        story.tells(phase="weights", phase_running=True)
        assert story.runs(25).headline.startswith("in “weights”: nothing alive")
        assert story.launch.verdict.phase == "weights"

    def test_the_milestone_that_comes_next_is_missing_in_a_stall(self) -> None:
        story = hung()
        story.tells(
            phases=(
                PhaseView("weights", "done"),
                PhaseView("draft model load", "expected"),
                PhaseView("ready", "expected"),
            )
        )
        assert story.launch.verdict.missing == ()
        assert [missing.milestone for missing in story.runs(25).missing] == ["draft model load"]

    def test_and_the_reason_why_it_was_expected_is_named(self) -> None:
        story = hung()
        because = "expected (speculative_algorithm=EAGLE3), not seen"
        story.tells(next_expected=Missing("draft model load", because))
        assert [missing.because for missing in story.runs(25).missing] == [because]

    def test_a_wait_that_the_server_allows_is_said(self) -> None:
        story = Story(1)
        story.tells(allowed_wait="DeepGEMM pre-compile, 10-20 min")
        assert "DeepGEMM pre-compile" in story.runs(20).headline
