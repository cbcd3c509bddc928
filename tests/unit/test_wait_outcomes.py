"""What `tuimon wait` waits for, when it ends, what it saves and says: with a watching cranked by hand."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tuimon.headless import wait as waiting
from tuimon.headless.progress import ERASE, Progress, words
from tuimon.headless.wait import Answer, Outcome, Until, Wish, exit_code, outcome
from tuimon.launch.events import RankStack, Report, Stacks
from tuimon.launch.state import Launch
from tuimon.launch.view import (
    LaunchView,
    LinkView,
    PhaseView,
    ProcessView,
    ServerView,
    ServingView,
    SignView,
    State,
    Verdict,
)  # fmt: skip

BEGAN = 1_000_000.0
LOOK = Stacks(ranks=(RankStack(7, "TP0", ()),), saved="/stacks.txt", asked=True)
PROCESS = ProcessView("scheduler TP0", (7,), "S", None, None, None, None)


def view(state: State = "starting", *, now: float = BEGAN, link: str = "up") -> LaunchView:
    """A launch in this state, its processes alive."""
    return replace(
        Launch("gpu-17").snapshot(now),
        link=LinkView(state=link, since=BEGAN, reason=None if link == "up" else "it is dark there"),  # type: ignore[arg-type]
        signs=(),
        processes=(PROCESS,),
        verdict=Verdict(state=state, since=BEGAN, headline="after “weights”, nothing alive"),
    )


def served() -> SignView:
    return SignView(name="answers", last=BEGAN, visible=True, text="")


class Cranked:
    """A watching that shows these views, one after the other, then the last for ever."""

    def __init__(self, views: list[LaunchView], look: Stacks | None = None) -> None:
        self.views = views
        self.look = look
        self.asked: list[str] = []

    @property
    def view(self) -> LaunchView:
        return self.views[0]

    def ask(self, action: str) -> None:
        self.asked.append(action)
        if self.look is not None and action == "diagnose":
            report = Report(of="diagnose", text="", saved=("/r.md",))
            self.views = [replace(each, reports=(report,)) for each in self.views]
        elif self.look is not None:
            look = replace(self.look, at=float(len(self.asked)))
            self.views = [replace(each, stacks=look) for each in self.views]

    def wait_for(self, predicate: Callable[[LaunchView], bool], timeout: float) -> LaunchView:
        looks_at_stacks = timeout > 1.0
        while len(self.views) > 1 and not looks_at_stacks and not predicate(self.views[0]):
            self.views.pop(0)
        return self.views[0]


class Clock:
    """Each look at it costs a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


def wait(views: list[LaunchView], wish: Wish, look: Stacks | None = None) -> tuple[Answer, Cranked, str]:
    stream = io.StringIO()
    cranked = Cranked(views, look)
    return waiting.wait(cranked, wish, Progress(stream)), cranked, stream.getvalue()  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "time", Clock())


@pytest.mark.parametrize(
    ("until", "state", "wanted"),
    [
        ("ready", "waiting", None), ("ready", "starting", None), ("ready", "quiet", None),
        ("ready", "ready", "ready"), ("ready", "serving", "ready"),
        ("serving", "ready", None), ("exit", "ready", None), ("exit", "serving", None),
        ("ready", "failing", "stalled"), ("ready", "stalled", "stalled"), ("serving", "spinning", "stalled"),
        ("exit", "frozen", "stalled"), ("exit", "crashed", "crashed"), ("ready", "crashed", "crashed"),
        ("ready", "finished", "exited"), ("exit", "finished", None),
    ],
)  # fmt: skip
def test_each_state_answers_what_it_can(until: Until, state: State, wanted: Outcome | None) -> None:
    assert outcome(view(state), until) == wanted


def test_serving_means_that_tokens_flowed() -> None:
    assert outcome(view("serving"), "serving") is None
    assert outcome(replace(view("serving"), signs=(served(),)), "serving") == "serving"
    assert outcome(replace(view("ready"), signs=(served(),)), "serving") == "serving"
    spoke = ServingView(running=1, queued=0, tokens_per_second=12.0, accept_length=None, at=BEGAN)
    assert outcome(replace(view("serving"), serving=spoke), "serving") == "serving"


def test_a_server_has_exited_when_its_processes_are_gone_or_cannot_be_seen() -> None:
    assert outcome(replace(view("finished"), processes=()), "exit") == "exited"
    assert outcome(replace(view("finished"), processes=None), "exit") == "exited"


def test_a_lost_link_is_no_answer_but_a_refusal_is() -> None:
    assert outcome(view("ready", link="lost"), "ready") is None
    assert outcome(view("stalled", link="connecting"), "ready") is None
    assert outcome(view("ready", link="refused"), "ready") == "unreachable"


@pytest.mark.parametrize(
    ("found", "until", "code"),
    [
        ("ready", "ready", 0), ("serving", "serving", 0), ("exited", "exit", 0), ("exited", "ready", 4),
        ("stalled", "ready", 3), ("crashed", "exit", 4), ("timed_out", "ready", 5), ("unreachable", "ready", 6),
    ],
)  # fmt: skip
def test_exit_codes(found: Outcome, until: Until, code: int) -> None:
    assert exit_code(Answer(found, view(), 1.0, ()), until) == code


def test_our_own_error_is_code_1() -> None:
    assert exit_code(Answer("timed_out", replace(view(), broken="no grammar"), 1.0, ()), "ready") == 1


def test_time_runs_out_as_timed_out_while_the_host_is_there_and_as_unreachable_while_it_is_not() -> None:
    assert wait([view("waiting")], Wish(timeout=5))[0].outcome == "timed_out"
    assert wait([view("starting", link="lost")], Wish(timeout=5))[0].outcome == "unreachable"


def test_at_a_stall_stacks_and_diagnosis_are_saved_before_it_returns(tmp_path: Path) -> None:
    text = tmp_path / "stacks-1.txt"
    text.with_suffix(".json").touch()
    look = Stacks(ranks=(RankStack(7, "TP0", ()),), saved=str(text), asked=True)
    answer, watching, said = wait([view("starting"), view("stalled")], Wish(), look)
    assert (answer.outcome, watching.asked) == ("stalled", ["stacks", "diagnose"])
    assert answer.saved == (str(text), str(text.with_suffix(".json")), "/r.md")
    assert f"stacks of 1 processes saved: {text}" in said


def test_stacks_that_cannot_be_had_are_said_and_do_not_hold_up_the_answer() -> None:
    answer, watching, said = wait([view("stalled")], Wish())
    assert (answer.outcome, answer.saved) == ("stalled", ())
    assert "no stacks were saved" in said
    assert watching.asked == ["stacks", "diagnose"]
    nobody = replace(view("stalled"), processes=None)
    answer, watching, said = wait([nobody], Wish())
    assert (answer.outcome, watching.asked) == ("stalled", [])


def test_the_report_of_the_diagnosis_is_among_what_was_saved() -> None:
    stalled = replace(view("stalled"), processes=None, reports=(Report(of="diagnose", text="", saved=("/r.md",)),))
    assert wait([stalled], Wish())[0].saved == ("/r.md",)


def test_report_tells_a_stall_once_and_waits_on() -> None:
    views = [view("stalled"), view("stalled", now=BEGAN + 1), view("starting"), view("stalled"), view("ready")]
    answer, watching, said = wait(views, Wish(on_stall="report"), LOOK)
    assert answer.outcome == "ready"
    assert watching.asked == ["stacks", "diagnose", "stacks", "diagnose"]
    assert said.splitlines().count("gpu-17: stalled: after “weights”, nothing alive") == 2


def test_a_link_that_breaks_during_a_stall_does_not_make_it_new() -> None:
    views = [view("stalled"), view("unreachable", link="lost"), view("stalled"), view("ready")]
    assert wait(views, Wish(on_stall="report"), LOOK)[1].asked == ["stacks", "diagnose"]


def test_a_crash_ends_the_waiting_also_where_stalls_are_only_reported() -> None:
    assert wait([view("crashed")], Wish(on_stall="report"))[0].outcome == "crashed"


def test_the_last_lines_may_come_after_the_processes_are_gone() -> None:
    gone = replace(view("crashed"), processes=())
    ended = replace(view("finished"), processes=())
    assert wait([gone, gone, ended], Wish(until="exit"))[0].outcome == "exited"
    assert wait([gone], Wish(until="exit"))[0].waited >= waiting.SETTLES
    assert wait([gone], Wish(until="exit", timeout=1.5))[0].outcome == "crashed"


def launched(shown: LaunchView, number: int, started: float) -> LaunchView:
    """The view of this launch on the host."""
    server = ServerView(
        pid=number, engine="sglang", version=None, model=None, log=None, log_note=None, address=None, port=None,
        started=started, shape=None, ranks=(), launch=number,
    )  # fmt: skip
    return replace(shown, server=server)


@pytest.mark.parametrize(("ran", "wanted"), [(300.0, "crashed"), (3.0, "ready")])
def test_a_crash_is_one_also_where_the_server_is_started_again_at_once(ran: float, wanted: Outcome) -> None:
    """`--restart always` takes 0.1 s; what ran for a moment only was a trial of whoever starts it."""
    started = BEGAN - ran
    views = [launched(view(), 1, started), launched(view("crashed"), 1, started)]
    views += [launched(view(), 2, BEGAN), launched(view("ready"), 2, BEGAN)]
    answer, *_ = wait(views, Wish())
    assert answer.outcome == wanted
    assert answer.view.server is not None
    assert answer.view.server.launch == (1 if wanted == "crashed" else 2)


def test_without_a_terminal_there_is_a_line_for_each_change_only() -> None:
    def loading(count: float, now: float) -> LaunchView:
        return replace(view(now=now), phases=(PhaseView("weights", "running", count=count, total=64, eta=9.0 - count),))

    said = wait([loading(1, BEGAN), loading(2, BEGAN + 1), loading(7, BEGAN + 2), view("ready")], Wish())[2]
    assert said.splitlines() == [
        "[1 s] gpu-17: starting: weights 2 % (1/64), ETA 8 s",
        "[3 s] gpu-17: starting: weights 11 % (7/64), ETA 2 s",
        "[4 s] gpu-17: ready: after “weights”, nothing alive",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_one_line_that_is_redrawn_and_erased() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.show(view(), 1)
    progress.show(view(), 1)
    progress.show(view(), 2)
    progress.close()
    assert stream.getvalue().count(ERASE) == 3
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith(ERASE)


def test_nothing_from_outside_reaches_the_terminal_as_escape_code() -> None:
    bad = replace(view("quiet"), verdict=Verdict(state="quiet", since=BEGAN, headline="\x1b]0;x\a\u202e\x9b31m\r\n"))
    stream = Terminal()
    Progress(stream).show(bad, 1)
    Progress(stream).tell(words(bad))
    written = stream.getvalue().replace(ERASE, "")
    assert not set(written) & set("\x1b\a\u202e\x9b\r")
