"""`tuimon check` answers as soon as watching longer cannot change the answer."""

from __future__ import annotations

from msgspec.structs import replace

from tuimon.headless import exit_codes
from tuimon.headless.check import final_state, report, settled, words
from tuimon.launch.state import Launch
from tuimon.launch.view import Evidence, LaunchView, LinkView, Missing, SignView, State, Suspect, Verdict

BEGAN = 1_000_000.0


def view(state: State = "starting", *, now: float = BEGAN + 3, data_age: float | None = 0.5) -> LaunchView:
    empty = Launch("gpu-17").snapshot(now)
    return replace(
        empty,
        now=now,
        link=LinkView(state="up", since=BEGAN),
        data_age=data_age,
        signs=(),
        verdict=Verdict(state=state, since=BEGAN - 60, headline="after “weights”, nothing alive"),
    )


def test_a_red_verdict_settles_at_once() -> None:
    assert settled(view("stalled"), BEGAN)


def test_the_end_of_a_container_that_nobody_ever_sampled_settles_too() -> None:
    assert settled(view("crashed", data_age=None), BEGAN)
    assert not settled(view("starting", data_age=None), BEGAN)


def test_silence_without_a_verdict_goes_on() -> None:
    old = SignView(name="log", last=BEGAN - 5, visible=True, text="")
    assert not settled(replace(view("quiet"), signs=(old,)), BEGAN)


def test_a_sign_of_life_since_we_look_settles() -> None:
    new = SignView(name="log", last=BEGAN + 1, visible=True, text="")
    assert settled(replace(view("starting"), signs=(new,)), BEGAN)


def test_no_server_must_hold_for_two_scans() -> None:
    assert not settled(view("waiting", now=BEGAN + 1), BEGAN)
    assert settled(view("waiting", now=BEGAN + 5), BEGAN)


def test_a_link_that_is_down_may_come_back_unless_refused() -> None:
    lost = LinkView(state="lost", since=BEGAN, reason="connection refused")
    assert not settled(replace(view(), link=lost), BEGAN)
    assert settled(replace(view(), link=replace(lost, state="refused")), BEGAN)


def test_without_a_link_there_is_no_other_state() -> None:
    lost = replace(view("ready"), link=LinkView(state="lost", since=BEGAN, reason="timed out"))
    assert final_state(lost) == "unreachable"
    assert exit_codes.of_state(final_state(lost)) == 6
    assert "timed out" in words(lost)


def test_an_error_of_our_own_is_no_verdict_and_is_said_at_once() -> None:
    broken = replace(view("ready"), broken="ImportError: bug")
    assert settled(broken, BEGAN)
    assert final_state(broken) == "unreachable"
    assert report(broken, BEGAN)["error"] == "tuimon's own error: ImportError: bug"
    assert "ImportError: bug" in words(broken)


def test_a_link_was_lost_only_where_it_has_stood() -> None:
    lost = LinkView(state="lost", since=BEGAN, reason="refused")
    assert report(replace(view(), link=lost), BEGAN)["link"] == "lost"
    assert report(replace(view(data_age=None), link=lost), BEGAN)["link"] == "never"
    connecting = replace(view(data_age=None), link=LinkView(state="connecting", since=BEGAN, reason="connecting"))
    assert words(connecting) == "gpu-17: unreachable: the host has not answered yet"
    assert (report(connecting, BEGAN)["link"], report(connecting, BEGAN)["error"]) == (
        "never",
        "the host has not answered yet",
    )


def test_a_reader_is_told_how_old_each_sign_of_life_is() -> None:
    signs = (
        Evidence(sign="log", age=146.2, text="Load weight begin"),
        Evidence(sign="compilers", age=None, text="none"),
    )
    said = words(replace(view(), verdict=replace(view().verdict, evidence=signs)))
    assert "  log, 2 m 26 s ago: Load weight begin\n" in said
    assert said.endswith("  compilers: none")


def test_nothing_from_outside_reaches_the_terminal_as_escape_code() -> None:
    bad = Verdict(state="quiet", since=BEGAN, headline="\x1b]0;x\a", evidence=(Evidence("log", 1.0, "a\rb\x9b1m"),))
    assert "".join(words(replace(view(), verdict=bad)).splitlines()).isprintable()


def test_exit_codes_follow_the_state() -> None:
    fine: list[State] = ["waiting", "starting", "quiet", "ready", "serving", "finished"]
    assert {exit_codes.of_state(state) for state in fine} == {0}
    stalled: list[State] = ["stalled", "spinning", "frozen", "failing"]
    assert {exit_codes.of_state(state) for state in stalled} == {3}
    assert exit_codes.of_state("crashed") == 4


def test_the_document_has_the_agreed_fields_and_null_for_unknown() -> None:
    stalled = replace(
        view("stalled"),
        verdict=Verdict(
            state="stalled",
            since=BEGAN - 60,
            headline="nothing alive",
            kind="host deadlock",
            suspects=(Suspect(rank="TP3", pid=7, reason="behind"),),
            evidence=(Evidence(sign="log", age=None, text="never"),),
            missing=(Missing(milestone="draft model load", because="expected"),),
            unseen=("network",),
        ),
    )
    document = report(stalled, BEGAN)
    assert document["schema"] == "tuimon.check/1"
    assert document["at"] == "1970-01-12T13:46:43Z"
    assert document["observed_s"] == 3.0
    assert (document["link"], document["launch"], document["error"]) == ("up", None, None)
    assert document["verdict"]["since_s"] == 63.0
    assert document["verdict"]["suspects"] == [{"rank": "TP3", "pid": 7, "reason": "behind"}]
    assert document["verdict"]["evidence"] == [{"sign": "log", "age_s": None, "text": "never"}]
    assert document["verdict"]["missing"] == [{"milestone": "draft model load", "because": "expected"}]
    assert document["verdict"]["unseen"] == ["network"]
