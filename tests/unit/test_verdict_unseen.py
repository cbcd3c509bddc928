"""What could not be seen: before we came, once the log is lost, and how a launch ended that no log tells of."""

from __future__ import annotations

import pytest

from tests.judging import Rank, Story, hung
from tuimon.launch.events import HostLoad, LogReset, LogStat, LogText, LogUnreadable, Sample
from tuimon.launch.told import LogError
from tuimon.launch.view import RED, Missing, PhaseView
from tuimon.ui.pressing import pressing


def _lost(story: Story) -> None:
    story.apply(LogUnreadable(at=story.now, path="server.log", reason="permission denied"))


class TestComingLate:
    """What happened before we looked proves nothing about now."""

    @staticmethod
    def _late(does: str, silent: float) -> Story:
        story = Story(2, log=False)
        story.everybody(does, "idle")
        story.log_stat = LogStat(path="server.log", inode=1, size=8, mtime=story.now + 1 - silent)
        story.apply(LogText(at=story.now, offset=0, text=b"loading\n"))
        return story

    def test_a_log_that_was_silent_for_minutes_is_said_at_once_and_nothing_is_promised(self) -> None:
        story = self._late("sleeps", 300)
        for _ in range(9):
            verdict = story.runs(1)
            assert verdict.state == "quiet"
            assert verdict.headline == "looking: the log was already silent when we came"
            assert story.now - verdict.since == pytest.approx(300, abs=10)
            assert "it works" not in pressing(verdict.advice)
        assert story.runs(12).state == "stalled"

    def test_a_sign_of_life_since_we_look_may_be_called_work(self) -> None:
        verdict = self._late("imports", 300).runs(3)
        assert (verdict.state, pressing(verdict.advice)) == ("quiet", "Wait: it works.")
        assert "alive" in verdict.headline

    def test_output_that_is_no_file_tells_its_age_itself(self) -> None:
        """A container's log has no mtime: a launch that hung for minutes looked as if it had written just now."""
        story = Story(2, log=False)
        story.everybody("sleeps", "idle")
        story.apply(LogText(at=story.now, offset=0, text=b"loading\n", age=300.0))
        verdict = story.runs(3)
        assert verdict.headline == "looking: the log was already silent when we came"
        assert story.now - verdict.since == pytest.approx(300, abs=10)
        assert story.runs(18).state == "stalled"

    def test_a_line_of_a_moment_ago_is_no_silence(self) -> None:
        verdict = self._late("sleeps", 3).runs(2)
        assert verdict.state == "starting"
        assert "it works" not in pressing(verdict.advice)


class TestStandingStill:
    """Where a phase stands in a silence, and which milestone is late then."""

    PHASES = (
        PhaseView("weights", "done"),
        PhaseView("CUDA graphs", "running", count=20, total=23, rate=1.0, eta=1.0),
        PhaseView("draft model load", "expected"),
    )

    def _in_the_graphs(self) -> Story:
        story = hung()
        story.tells(phases=self.PHASES, phase="CUDA graphs", phase_running=True)
        return story

    def test_a_bar_that_stands_promises_nothing(self) -> None:
        story = self._in_the_graphs()
        story.runs(5)
        assert story.launch.snapshot(story.now).phases[1].eta == 1.0
        story.runs(6)
        for _ in range(2):
            phase = story.launch.snapshot(story.now).phases[1]
            assert (phase.eta, phase.rate, phase.note) == (None, None, "stands at 20/23")
            story.runs(15)
        assert story.launch.verdict.state == "stalled"

    def test_the_phase_after_a_running_one_is_not_late(self) -> None:
        story = self._in_the_graphs()
        assert story.runs(25).missing == ()
        overtaken = Missing("KV cache", "expected, not seen")
        story.tells(missing=(overtaken,))
        assert story.runs(1).missing == (overtaken,)

    def test_but_it_is_where_the_running_ones_bar_is_full(self) -> None:
        story = self._in_the_graphs()
        full = PhaseView("CUDA graphs", "running", count=23, total=23)
        story.tells(phases=(self.PHASES[0], full, self.PHASES[2]))
        assert [missing.milestone for missing in story.runs(25).missing] == ["draft model load"]


class TestALostLog:
    """Rights lost, rotated away: its silence says nothing any more."""

    def test_it_becomes_unseen_and_does_not_age(self) -> None:
        story = hung(does="imports")
        story.runs(3)
        _lost(story)
        verdict = story.runs(60)
        log = next(evidence for evidence in verdict.evidence if evidence.sign == "log")
        assert (log.age, log.text) == (None, "cannot be read any more: permission denied")
        assert "log" in verdict.unseen
        assert verdict.state == "starting"
        assert "the log is silent" not in verdict.headline

    def test_where_it_was_the_only_sign_patience_is_longer_and_says_so(self) -> None:
        story = hung()
        for _ in range(6):
            story.runs(5)
            story.says("a line")
        story.runs(2)
        _lost(story)
        assert story.runs(55).state == "quiet"
        verdict = story.runs(10)
        assert verdict.state == "stalled"
        assert "the log, its only sign of life, cannot be read any more" in verdict.headline

    def test_and_it_begins_anew_when_the_log_is_lost(self) -> None:
        story = hung()
        story.runs(20)
        story.says("a line")
        story.runs(8)
        _lost(story)
        assert story.runs(58).state == "quiet"
        assert story.runs(4).state == "stalled"

    def test_beside_other_signs_patience_falls_back_to_those(self) -> None:
        story = hung(does="imports")
        story.runs(3)
        _lost(story)
        story.runs(3)
        story.everybody("sleeps")
        assert story.runs(18).state == "quiet"
        assert story.runs(4).state == "stalled"

    def test_losing_it_does_not_clear_a_stall(self) -> None:
        story = hung()
        story.runs(25)
        _lost(story)
        assert story.runs(2).state == "stalled"

    def test_what_was_read_in_the_moment_before_makes_it_no_readable_log(self) -> None:
        story = Story(2, log=False)
        story.apply(LogText(at=story.now, offset=0, text=b"loading\n"))
        _lost(story)
        assert "log" in story.runs(3).unseen

    def test_it_counts_again_once_it_is_back(self) -> None:
        story = hung(does="imports")
        _lost(story)
        story.runs(5)
        story.apply(LogReset(at=story.now, why="rotated", offset=0))
        story.apply(LogText(at=story.now, offset=0, text=b"it goes on\n"))
        verdict = story.runs(1)
        log = next(evidence for evidence in verdict.evidence if evidence.sign == "log")
        assert log.age == pytest.approx(1)


class TestAnEndThatNoLogTellsOf:
    """Without a log a shutdown and a death look alike: that is said, not guessed."""

    @staticmethod
    def _ready(*, log: bool) -> Story:
        story = Story(2, log=log)
        story.everybody("imports", "idle")
        story.runs(5)
        story.everybody("sleeps", "idle")
        story.asks(200)
        story.runs(5)
        assert story.launch.verdict.state == "ready"
        return story

    @staticmethod
    def _gone(story: Story) -> None:
        story.now += 1
        story.apply(Sample(at=story.now, mono=story.mono + 1, processes=()))
        story.launch.settle(story.now)

    def test_ranks_that_end_one_by_one_in_a_shutdown_are_no_certain_deaths(self) -> None:
        story = self._ready(log=False)
        story.ranks = story.ranks[:1]
        story.runs(3)
        story.ranks = []
        verdict = story.runs(3)
        assert not set(story.states()) & RED
        assert "the log that would tell cannot be read" in verdict.headline
        assert "it works" not in pressing(verdict.advice)
        self._gone(story)
        verdict = story.launch.verdict
        assert (verdict.state, verdict.kind, verdict.certain) == ("crashed", "gone", False)
        assert "how is not known" in verdict.headline

    def test_a_rank_that_is_missed_for_longer_was_no_shutdown(self) -> None:
        story = self._ready(log=False)
        story.ranks = story.ranks[:1]
        assert story.runs(15).state in RED

    def test_a_rank_that_was_stopped_before_was_no_shutdown(self) -> None:
        story = self._ready(log=False)
        story.ranks[1].does = "stops"
        story.runs(3)
        story.verdicts.clear()
        story.ranks = story.ranks[:1]
        story.runs(3)
        assert set(story.states()) <= RED

    def test_an_oom_kill_is_evidence_enough(self) -> None:
        story = self._ready(log=False)
        story.host_load = HostLoad(oom_kills=1)
        story.ranks = story.ranks[:1]
        assert story.runs(2).kind == "out of memory"
        self._gone(story)
        verdict = story.launch.verdict
        assert (verdict.state, verdict.kind, verdict.certain) == ("crashed", "out of memory", True)

    def test_with_a_log_that_said_nothing_it_is_a_certain_death_at_once(self) -> None:
        story = self._ready(log=True)
        story.ranks = story.ranks[:1]
        verdict = story.runs(2)
        assert verdict.state in RED
        assert verdict.certain

    def test_before_ready_nobody_shuts_a_rank_down(self) -> None:
        story = Story(2, log=False)
        story.everybody("imports")
        story.runs(5)
        story.ranks = story.ranks[:1]
        assert story.runs(2).certain

    def test_an_error_that_the_log_told_before_it_was_lost_is_still_the_reason(self) -> None:
        story = self._ready(log=True)
        error = LogError(line=3, text="ValueError: bad", kind="traceback", at=story.now, fatal=True)
        story.tells(error=error, fatal=error, ready=None)
        _lost(story)
        self._gone(story)
        assert "ValueError: bad" in story.launch.verdict.headline


@pytest.mark.parametrize("end", ["zombie", "vanishes"])
def test_without_names_a_child_that_ends_is_no_rank(end: str) -> None:
    """A compiler needs as much memory as a rank and is spawned beside others of its kind."""
    story = Story(2)
    for rank in story.ranks:
        rank.process = type(rank.process)(pid=rank.pid, ppid=100, state="S", cpu=1.0, minor_faults=0, rss=2 * 10**9)
    story.others = [Rank(700 + i, None, ppid=101, does="spins") for i in range(3)]
    for other in story.others:
        other.process = type(other.process)(pid=other.pid, ppid=101, state="R", cpu=1.0, rss=300_000_000)
    story.runs(5)
    for _ in range(3):
        if end == "zombie":
            story.others[-1].does = "zombie"
            story.runs(3)
        story.others = story.others[:-1]
        story.runs(3)
    assert not set(story.states()) & RED


@pytest.mark.parametrize("who", ["a rank", "everybody", "the launcher"])
@pytest.mark.parametrize("end", ["zombie", "vanishes"])
@pytest.mark.parametrize("ready", [True, False])
def test_what_was_stopped_and_is_killed_is_never_well_in_between(who: str, end: str, ready: bool) -> None:
    story = Story(2)
    story.everybody("imports")
    story.runs(5)
    if ready:
        story.tells(ready=story.now)
        story.runs(3)
    stopped = {"a rank": story.ranks[:1], "everybody": [story.root, *story.ranks], "the launcher": [story.root]}[who]
    for rank in stopped:
        rank.does = "stops"
    story.runs(5)
    assert story.launch.verdict.state == "frozen"
    story.verdicts.clear()
    if end == "zombie":
        for rank in stopped:
            rank.does = "zombie"
    else:
        story.ranks = [rank for rank in story.ranks if rank not in stopped]
        if story.root in stopped:
            story.root = Rank(99, None, ppid=1, title="tee", does="sleeps")
    story.runs(5)
    assert set(story.states()) <= RED
