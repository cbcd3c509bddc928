"""A replay believes what the watch believed: at any speed, after any jump, through the recorder and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from msgspec import structs

from tuimon.config import Patience, Settings
from tuimon.launch.events import AnyEvent, LogText, Sample, ServerFound, Unlinked
from tuimon.launch.view import LaunchView, Verdict
from tuimon.recording import folder, form, trial
from tuimon.recording.form import Judged
from tuimon.recording.player import Player
from tuimon.recording.recorder import Recorder
from tuimon.recording.shelf import Limits
from tuimon.recording.source import ListSource, Source, open_source
from tuimon.recording.survey import Mark, Survey
from tuimon.watch.live import LiveWatch
from tuimon.watch.recorded import record
from tuimon.watch.replay import ReplayWatch

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "recordings"
COPIES = trial.recordings([ROOT / "tests" / "data" / "recordings"])
ALL = [*COPIES, *(trial.recordings([SHARED]) if SHARED.is_dir() else ())]
STALL = ROOT / "tests" / "data" / "recordings" / "vllm-shard-is-a-fifo"
WITHIN = 0.51
"""Seconds that a replayed verdict may come later than a judgement after each event: it judges twice a second."""


def through_the_recorder(events: list[AnyEvent], where: Path) -> Source:
    """Record these events, and open what was written."""
    said: list[AnyEvent] = []
    recorder = Recorder(where, "gpu-17", Limits(10**9, 30), say=said.append)
    recorder.start()
    for event in events:
        recorder.take(event)
    recorder.stop()
    assert said == []
    (path,) = where.glob("*.tuimon")
    return open_source(str(path))


def all_of(source: Source) -> list[AnyEvent]:
    """Its events, without the verdicts of the time."""
    pieces = (source.read(piece) for piece in range(len(source.firsts)))
    return [event for piece in pieces for event in piece if not isinstance(event, Judged)]


def verdicts(source: Source) -> list[Mark]:
    """Changes of the verdict, found by playing it at full speed."""
    survey = Survey(source, Patience())
    survey.run()
    return [mark for mark in survey.marks if mark.kind == "verdict"]


def changes(live: list[tuple[float, Verdict]]) -> list[tuple[float, Verdict]]:
    """The first of each stretch of one state."""
    return [live[0], *(after for before, after in pairwise(live) if before[1].state != after[1].state)]


def plain(view: LaunchView) -> LaunchView:
    """A view without its lines, which are compared by what they hold."""
    return structs.replace(view, lines=tuple(view.lines.slice(0, 10**6)))


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_recorded_and_read_again_everything_is_judged_the_same(path: Path, tmp_path: Path) -> None:
    events = list(folder.events(path))
    again = all_of(through_the_recorder(events, tmp_path))
    # As a line tells them: NaN, which a driver may answer, becomes unknown.
    kept = [event for event in again if not isinstance(event, LogText)]
    same = kept == [form.parse(form.line(event)) for event in events if not isinstance(event, LogText)]
    assert same  # comparing there would print megabytes
    live = [(moment.t, moment.verdict) for moment in trial.moments(events, ended=False)]
    for moment, (t, verdict) in zip(trial.moments(again, ended=False), live, strict=True):
        assert (moment.t, moment.verdict) == (t, verdict)


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_a_replay_changes_its_verdict_when_the_watch_did(path: Path, tmp_path: Path) -> None:
    events = list(folder.events(path))
    live = [(moment.t + folder.EPOCH, moment.verdict) for moment in trial.moments(events, ended=False)]
    lasting = [v.state for (t, v), (until, _) in pairwise(changes(live)) if until - t > 2 * WITHIN]
    replayed = verdicts(through_the_recorder(events, tmp_path))
    seen = iter(mark.state for mark in replayed)
    assert all(state in seen for state in lasting), (lasting, replayed)  # in this order
    for mark, after in pairwise([*replayed, structs.replace(replayed[-1], at=live[-1][0])]):
        if after.at - mark.at < 2 * WITHIN:
            continue  # shorter than what lies between two judgements of the watch
        near = {v.state for t, v in live if mark.at - 2 * WITHIN <= t <= mark.at + WITHIN}
        assert mark.state in near, mark


def test_any_jump_shows_the_same_as_playing_there() -> None:
    source = ListSource("gpu-17", list(folder.events(STALL)))
    jumping = Player(source, Patience())
    jumping.survey.run()
    for seconds in (50.0, 10.0, 35.5, 44.0, 43.5, 55.0, 0.0, 60.0):
        playing = Player(source, Patience())
        for _ in range(int(seconds / 0.25)):
            playing.advance(0.25)
        playing.advance(0.0)
        jumping.seek(jumping.begin + seconds)
        same = plain(jumping.view()) == plain(playing.view())
        assert same, seconds  # comparing there would print megabytes


def test_a_jump_goes_on_from_a_checkpoint_and_reads_little() -> None:
    events = long_launch(3600)
    source = Counting("gpu-17", events)
    player = Player(source, Patience())
    player.survey.run()
    source.pieces = 0
    player.seek(player.begin + 3000)
    player.seek(player.begin + 500)
    assert source.pieces <= 8
    assert player.view().now == player.begin + 500


class Counting(ListSource):
    """Counts the pieces that are read."""

    pieces = 0

    def read(self, piece: int) -> Sequence[form.Recorded]:
        self.pieces += 1
        return super().read(piece)


def long_launch(seconds: int) -> list[AnyEvent]:
    """Samples only."""
    start = 1_800_000_000.0
    events: list[AnyEvent] = [ServerFound(at=start, pid=7, engine="sglang")]
    events += [Sample(at=start + second, mono=float(second), processes=()) for second in range(seconds)]
    return events


def test_a_hole_of_a_week_is_stepped_over() -> None:
    start = 1_800_000_000.0
    events: list[AnyEvent] = [
        ServerFound(at=start, pid=7),
        Unlinked(at=start + 1, reason="laptop closed"),
        Sample(at=start + 7 * 86_400, mono=7.0, processes=()),
    ]
    began = time.process_time()
    Survey(ListSource("gpu-17", events), Patience()).run()
    assert time.process_time() - began < 2.0


# The watch.


class Hand:
    """A clock in the test's hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Turned:
    """A ReplayWatch without its thread: the test turns it."""

    def __init__(self, source: Source, *, surveyed: bool = True) -> None:
        self.clock = Hand()
        self.watch = ReplayWatch(source, Settings(), clock=self.clock)
        self.player = Player(source, Patience())
        if surveyed:
            self.player.survey.run()

    def turns(self, seconds: float = 0.1, count: int = 1) -> float:
        """Seconds from the start of the recording after so many turns."""
        for _ in range(count):
            self.clock.now += seconds
            self.watch.turn(self.player, seconds)
        return round(self.watch.where.at - self.player.begin, 3)


@pytest.fixture
def turned() -> Turned:
    return Turned(ListSource("gpu-17", list(folder.events(STALL))))


def test_it_plays_at_the_speed_that_is_wished(turned: Turned) -> None:
    assert turned.turns(count=10) == 1.0
    turned.watch.faster(2)
    assert turned.turns(count=10) == 6.0
    turned.watch.faster(-1)
    assert turned.turns(count=10) == 8.0
    turned.watch.faster(100)
    assert turned.turns() == 18.0
    assert turned.watch.view.now == turned.player.begin + 18.0


def test_it_pauses_steps_and_goes_on(turned: Turned) -> None:
    turned.watch.toggle()
    assert turned.turns(count=5) == 0.0
    turned.watch.move(1.0)
    assert turned.turns(count=5) == 1.0
    turned.watch.move(50.0)
    assert turned.turns() == 51.0
    turned.watch.move(-10.0)
    assert turned.turns() == 41.0
    turned.watch.move(-1000.0)
    assert turned.turns() == 0.0
    turned.watch.toggle()
    assert turned.turns() == 0.1


def test_it_stops_at_the_end_and_begins_anew_when_played_again(turned: Turned) -> None:
    turned.watch.go(end=True)
    assert turned.turns(count=3) == 60.0
    assert not turned.watch.where.playing
    turned.watch.toggle()
    turned.turns()
    assert turned.turns() < 1.0
    assert turned.watch.where.playing


def test_it_jumps_between_verdicts_and_milestones(turned: Turned) -> None:
    turned.watch.toggle()
    states, places = [], []
    for _ in range(3):
        turned.watch.jump("verdict", back=False)
        places.append(turned.turns())
        states.append(turned.watch.view.verdict.state)
    assert states == ["starting", "quiet", "stalled"]
    turned.watch.jump("verdict", back=True)
    assert turned.turns() == places[1]
    turned.watch.jump("milestone", back=True)
    assert 20 < turned.turns() < places[1]
    turned.watch.go(end=True)
    turned.turns()
    turned.watch.jump("verdict", back=False)
    turned.turns()
    assert turned.watch.where.said == "no later change of the verdict"


def test_a_search_ahead_of_what_is_read_waits_and_says_so() -> None:
    turned = Turned(ListSource("gpu-17", list(folder.events(STALL))), surveyed=False)
    turned.watch.toggle()
    turned.watch.jump("verdict", back=False)
    assert turned.turns() == 0.0
    assert turned.watch.where.said == "reading ahead: 0%"
    turned.player.survey.run()
    assert turned.turns() > 0.0


def test_a_view_that_does_not_change_is_given_anew_each_second(turned: Turned) -> None:
    turned.watch.toggle()
    turned.turns()
    first = turned.watch.view
    turned.turns(count=2)
    assert turned.watch.view is first
    turned.turns(count=10)
    assert turned.watch.view is not first
    assert turned.watch.view == first


def test_nothing_can_be_asked_of_a_recording(turned: Turned) -> None:
    turned.watch.ask("stacks")
    turned.turns()
    assert "this is a recording" in turned.watch.where.said
    assert turned.watch.busy is None


def test_the_verdict_of_the_time_is_told_beside_todays() -> None:
    events: list[AnyEvent | Judged] = list(folder.events(STALL))
    events.insert(20, Judged(at=events[20].at, state="spinning"))
    turned = Turned(ListSource("gpu-17", events))
    turned.watch.go(end=True)
    turned.turns()
    assert turned.watch.where.then == "spinning"
    assert turned.watch.view.verdict.state == "stalled"


def test_an_empty_recording_can_be_shown() -> None:
    turned = Turned(ListSource("gpu-17", []))
    turned.watch.jump("verdict", back=False)
    turned.turns(count=3)
    assert turned.watch.view.verdict.state == "unreachable"


def test_its_own_thread_plays_it() -> None:
    watch = ReplayWatch(ListSource("gpu-17", list(folder.events(STALL))), Settings(), speed=100)
    threads = threading.active_count()
    watch.start()
    until(lambda: watch.view.verdict.state == "stalled")
    watch.stop()
    until(lambda: threading.active_count() <= threads)


def until(true: Callable[[], object], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


# A live demo.


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[tuple[float, LaunchView]], Path]]:
    """A silent stall, watched and recorded: each view, and the recording."""
    state = tmp_path_factory.mktemp("state")
    patch = pytest.MonkeyPatch()
    patch.setenv("TUIMON_STATE_DIR", str(state))
    settings = Settings(patience=Patience(quiet=4.0, stalled=8.0))
    watch = LiveWatch("demo:silent-stall@0.2", settings)
    recorder = record(watch, "demo:silent-stall@0.2", settings)
    assert recorder is not None
    watch.start()
    views: list[tuple[float, LaunchView]] = []
    end = time.monotonic() + 60
    while time.monotonic() < end and (not views or views[-1][1].verdict.state != "stalled"):
        view = watch.view
        if not views or views[-1][1] is not view:
            views.append((view.now, view))
        time.sleep(0.05)
    watch.stop()
    recorder.stop()
    (path,) = (state / "recordings").glob("*.tuimon")
    yield views, path
    patch.undo()


def test_a_recorded_demo_is_judged_as_it_was_live(demo: tuple[list[tuple[float, LaunchView]], Path]) -> None:
    views, path = demo
    player = Player(open_source(str(path)), Patience(quiet=4.0, stalled=8.0))
    player.survey.run()
    first = next(now for now, view in views if view.data_age is not None)
    for now, view in views:
        if now - first < 1.5:
            continue  # all that was there before comes at once: phases pass faster than anything is judged
        again = [judged(player, now + shift) for shift in (-1.0, -0.5, 0.0, 0.5)]
        assert any(alike(verdict, view.verdict) for verdict in again), (now, view.verdict, again)
    steady = ["starting", "quiet", "stalled"]
    assert [v.state for _, v in changes([(now, view.verdict) for now, view in views]) if v.state in steady] == steady
    marks = [mark.state for mark in player.survey.marks if mark.kind == "verdict"]
    assert [state for state in marks if state in steady] == steady


def judged(player: Player, at: float) -> Verdict:
    """The verdict of the first judgement at or after this instant."""
    player.seek(at)
    return player.view().verdict


def alike(one: Verdict, other: Verdict) -> bool:
    """The same judgement: what, since when, and whose fault."""
    same = (one.state, one.kind, one.phase) == (other.state, other.kind, other.phase)
    return (
        same
        and abs(one.since - other.since) < 0.5
        and {s.rank for s in one.suspects} == {s.rank for s in other.suspects}
    )


def test_a_recorded_demo_has_the_timeline_that_was_live(demo: tuple[list[tuple[float, LaunchView]], Path]) -> None:
    views, path = demo
    now, live = views[-1]
    player = Player(open_source(str(path)), Patience(quiet=4.0, stalled=8.0))
    player.seek(now)
    again = player.view()
    assert again.phases == live.phases
    assert again.server == live.server
    assert again.episodes == live.episodes or len(again.episodes) == len(live.episodes)
    assert [line.text for line in again.lines.slice(0, 10**6)] == [line.text for line in live.lines.slice(0, 10**6)]


def test_played_at_twenty_times_its_speed_the_screen_is_given_the_same(
    demo: tuple[list[tuple[float, LaunchView]], Path],
) -> None:
    views, path = demo
    watch = ReplayWatch(open_source(str(path)), Settings(patience=Patience(quiet=4.0, stalled=8.0)), speed=20)
    watch.start()
    shown: list[LaunchView] = []
    end = time.monotonic() + 30
    while time.monotonic() < end and (watch.where.playing or not shown or watch.where.at < watch.where.end):
        if not shown or shown[-1] is not watch.view:
            shown.append(watch.view)
        time.sleep(0.01)
    watch.stop()
    last = watch.view  # the last step's view may have come after the last look of the loop
    shown.append(last)
    steady = ["starting", "quiet", "stalled"]
    states = [state for state, _ in groupby(view.verdict.state for view in shown) if state in steady]
    assert states == steady
    assert last.phases == views[-1][1].phases
    assert last.verdict.suspects == views[-1][1].verdict.suspects
