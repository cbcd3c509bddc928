"""A jump into what has not been read yet is answered at once, and with the whole truth as soon as that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tuimon.config import Patience, Settings
from tuimon.launch.events import AnyEvent, Linked, LogReset, LogStat, LogText, Process, Sample, ServerFound
from tuimon.launch.view import RED, LaunchView
from tuimon.recording import folder, form, glimpse, trial
from tuimon.recording.opening import Opening
from tuimon.recording.player import Player
from tuimon.recording.source import ListSource
from tuimon.watch.replay import ReplayWatch

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "recordings"
START = 1_800_000_000.0
MINUTE = 60
STALLS = 40 * MINUTE
END = 70 * MINUTE
LOADED = "[2027-01-15 08:00:20 TP0] Load weight end. elapsed=15.02 s, type=LlamaForCausalLM, mem usage=20.1 GB\n"


class Counting(ListSource):
    """Counts the pieces that are read."""

    pieces = 0

    def read(self, piece: int) -> Sequence[form.Recorded]:
        self.pieces += 1
        return super().read(piece)


def long_watch() -> Iterator[AnyEvent]:
    """It serves, and after forty minutes nothing is alive any more."""
    yield Linked(at=START, host="gpu-17")
    yield ServerFound(at=START, pid=7, argv=("python3", "-m", "sglang.launch_server"), engine="sglang", started=1.0)
    size = 0
    for second in range(END):
        at = START + second
        alive = second < STALLS
        text = LOADED if second == 20 else f"[{second}] Decode batch. #running-req: 3\n" if second % 5 == 0 else ""
        if text and alive:
            yield LogText(at=at, offset=size, text=text.encode())
            size += len(text)
        work = min(second, STALLS)
        process = Process(pid=7, ppid=1, state="S", name="python3", started=1.0, cpu=work * 0.9, voluntary=work * 30)
        stat = LogStat("/data/server.log", size, START + min(second, STALLS), 7)
        yield Sample(at=at, host_time=at, mono=float(second), processes=(process,), log=stat)


@pytest.fixture(scope="module")
def events() -> list[AnyEvent]:
    return list(long_watch())


@pytest.fixture
def source(events: list[AnyEvent]) -> Counting:
    return Counting("gpu-17", events)


@pytest.fixture(scope="module")
def read(events: list[AnyEvent]) -> Player:
    """One that has read all of it."""
    player = Player(ListSource("gpu-17", events), Patience())
    player.survey.run()
    return player


def shown(view: LaunchView) -> tuple[object, ...]:
    """What the eye falls on."""
    verdict = view.verdict
    return verdict.state, verdict.kind, verdict.phase, view.server and view.server.pid, view.link.state


def test_what_a_log_held_before_it_was_replaced_is_not_said_to_be_left_out() -> None:
    opening = Opening()
    opening.remember(ServerFound(at=START, pid=7, argv=("vllm",), started=1.0))
    opening.remember(LogText(at=START, offset=0, text=b"x" * 5000))
    opening.remember(LogReset(at=START, why="rotated", offset=0))
    assert [type(event) for event in opening.told(START + 1)] == [ServerFound]


@pytest.mark.parametrize("second", [25 * MINUTE, STALLS - 30, STALLS + 15, STALLS + 900, END - 1])
def test_a_glimpse_shows_what_the_whole_recording_would(source: Counting, read: Player, second: int) -> None:
    cold = Player(source, Patience())
    cold.seek(START + second)
    assert cold.glimpsed
    assert source.pieces <= 20  # of 70
    read.seek(START + second)
    assert shown(cold.view()) == shown(read.view())
    assert [phase.name for phase in cold.view().phases] == [phase.name for phase in read.view().phases]


def test_a_silence_is_as_old_as_the_log_says_and_not_as_the_glimpse(source: Counting) -> None:
    player = Player(source, Patience())
    player.seek(START + STALLS + 20 * MINUTE)
    verdict = player.view().verdict
    assert verdict.state in RED
    assert verdict.since == pytest.approx(START + STALLS, abs=6)


def test_the_log_says_what_a_glimpse_left_out(source: Counting) -> None:
    player = Player(source, Patience())
    player.seek(START + 25 * MINUTE)
    lines = player.view().lines
    (gap,) = [line for line in lines.slice(lines.first, lines.end) if line.gap]
    assert "not seen" in gap.text


def test_what_was_glimpsed_becomes_the_whole_truth_when_the_survey_has_come_by(source: Counting) -> None:
    watch = ReplayWatch(source, Settings())
    player = Player(source, Patience())
    watch.toggle()
    watch.go(end=True)
    watch.turn(player, 0.1)
    first, where = watch.view, watch.where
    player.survey.run()
    watch.turn(player, 0.1)
    assert (where.glimpsed, watch.where.glimpsed) == (True, False)
    assert where.at == watch.where.at == player.end
    assert watch.view.lines.end > first.lines.end
    assert not any(line.gap for line in watch.view.lines.slice(0, 10**6))


def test_it_plays_on_from_a_glimpse(source: Counting) -> None:
    player = Player(source, Patience())
    player.seek(START + STALLS)
    assert player.view().verdict.state not in RED
    player.advance(30.0)
    assert player.glimpsed
    assert player.view().verdict.state in RED


def test_a_small_step_ahead_is_read_and_not_glimpsed(source: Counting) -> None:
    player = Player(source, Patience())
    for minute in range(1, 8):
        player.seek(START + 60.0 * minute)
        assert not player.glimpsed


def test_from_a_glimpse_back_into_what_is_known_nothing_is_guessed(source: Counting) -> None:
    player = Player(source, Patience())
    player.seek(START + 25 * MINUTE)
    player.seek(START + 100)
    assert not player.glimpsed
    assert player.view().lines.end > 0


def test_a_glimpse_of_a_real_launch_is_never_a_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    if not SHARED.is_dir():
        pytest.skip("shared/recordings is not here")
    # They are short: with less to judge from a glimpse is harder, and begins within them.
    monkeypatch.setattr(glimpse, "WARM", 30.0)
    compared = 0
    for path in trial.recordings([SHARED]):
        source = ListSource(path.name, list(folder.events(path)))
        whole = Player(source, Patience())
        whole.survey.run()
        cold = glimpse.Glimpses(source, Patience())
        for at in range(int(whole.begin) + 90, int(whole.end), 11):
            course, piece, _ = cold.at(at)
            for event in (each for index in range(piece, len(source.firsts)) for each in source.read(index)):
                if event.at <= at:
                    course.take(event)
            course.reach(at, None)
            whole.seek(at)
            assert course.launch.snapshot(at).verdict.state == whole.view().verdict.state, (path.name, at)
            compared += 1
    assert compared > 20
