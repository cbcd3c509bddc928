"""Which changes of a verdict make a noise, and what the noise is made of."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tuimon.alerts.changes import Change, Changes
from tuimon.alerts.command import OnChange, run, split
from tuimon.alerts.errors import BadCommand
from tuimon.alerts.herald import Herald
from tuimon.alerts.terminal import BELL, notification
from tuimon.config import Settings
from tuimon.launch.state import Launch
from tuimon.launch.view import LaunchView, LinkView, State, Verdict

BEGAN = 1_000_000.0


def view(state: State, at: float = 0.0, headline: str = "nothing alive") -> LaunchView:
    """`unreachable` stands for a lost link."""
    link = LinkView(state="lost" if state == "unreachable" else "up", since=BEGAN, reason="the cable")
    verdict = Verdict(state=state, since=BEGAN, headline=headline)
    return replace(Launch("gpu-17").snapshot(BEGAN), now=BEGAN + at, link=link, verdict=verdict)


def play(*steps: tuple[State, float], every: float = 0.5) -> list[tuple[float, Change]]:
    """Each state for so many seconds; the changes that were announced, and when."""
    changes, said, now = Changes(), [], 0.0
    for state, seconds in steps:
        for _ in range(round(seconds / every)):
            change = changes.see(view(state, now))
            if change is not None:
                said.append((now, change))
            now += every
    return said


def test_a_change_is_announced_when_it_has_lasted_a_second() -> None:
    said = play(("starting", 20), ("stalled", 20))
    assert [(at, change.before, change.now, change.urgent) for at, change in said] == [
        (1.0, None, "starting", False),
        (21.0, "starting", "stalled", True),
    ]


def test_what_only_a_banner_tells_apart_is_no_change() -> None:
    assert len(play(("starting", 5), ("quiet", 10), ("starting", 5))) == 1
    assert len(play(("stalled", 5), ("spinning", 10), ("frozen", 5))) == 1


def test_good_news_is_urgent_after_bad_and_when_something_is_done() -> None:
    said = play(("starting", 5), ("stalled", 30), ("starting", 30), ("ready", 30), ("finished", 5))
    assert [(change.now, change.urgent) for _, change in said] == [
        ("starting", False), ("stalled", True), ("starting", True), ("ready", True), ("finished", True),
    ]  # fmt: skip


def test_who_comes_to_a_server_that_is_well_hears_nothing() -> None:
    assert [change.urgent for _, change in play(("ready", 60), ("serving", 60))] == [False]


def test_a_link_that_comes_back_at_once_is_no_news() -> None:
    assert len(play(("starting", 5), ("unreachable", 5), ("starting", 60))) == 1
    said = play(("starting", 5), ("unreachable", 15), ("starting", 60))
    assert [change.now for _, change in said] == ["starting", "unreachable", "starting"]


def test_a_flapping_verdict_does_not_flood() -> None:
    flaps: list[tuple[State, float]] = [("stalled", 5), ("starting", 5)]
    said = play(*flaps * 60)  # ten minutes
    assert len(said) <= 4
    assert said[0][0] == 1.0


def test_after_flapping_the_last_word_is_still_said_with_what_was_held_back() -> None:
    flaps: list[tuple[State, float]] = [("stalled", 5), ("starting", 5)]
    said = play(*flaps * 10, ("stalled", 120))
    assert said[-1][1].now == "stalled"
    assert said[-1][1].held_back > 5


def test_the_last_view_need_not_last() -> None:
    changes = Changes()
    changes.see(view("starting", 0))
    changes.see(view("starting", 5))
    assert changes.see(view("crashed", 6)) is None
    change = changes.see(view("crashed", 6), last=True)
    assert change is not None
    assert change.now == "crashed"


def test_nothing_is_announced_before_anything_is_known() -> None:
    connecting = replace(view("unreachable"), link=LinkView(state="connecting", since=BEGAN))
    changes = Changes()
    assert changes.see(connecting) is None
    assert changes.see(replace(connecting, now=BEGAN + 60)) is None
    assert changes.see(replace(view("stalled", 61), broken="own error")) is None


# The terminal


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]9;tuimon: gpu-17 STALLED\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;tuimon;gpu-17 STALLED\x1b\\"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7006"}, "\x1b]777;notify;tuimon;gpu-17 STALLED\x1b\\"),
        ({"TERM": "tmux-256color", "TMUX": "x"}, "\x1bPtmux;\x1b\x1b]9;tuimon: gpu-17 STALLED\x1b\x1b\\\x1b\\"),
        ({"TERM": "linux"}, ""),
        ({}, ""),
    ],
)
def test_the_terminal_is_told_in_the_way_that_it_knows(environ: dict[str, str], wanted: str) -> None:
    assert notification("tuimon", "gpu-17 STALLED", "auto", environ) == wanted


@pytest.mark.parametrize("way", ["osc9", "osc777"])
def test_nothing_from_outside_can_end_the_sequence_or_begin_another(way: str) -> None:
    evil = "4;3\x07\x1b\\\x1b]52;c;cm0=\x1b\\\x9c\x9d0;x\r\n\u202e" + "x" * 5000
    sequence = notification("tuimon", evil, way, {"TERM": "xterm"})  # type: ignore[arg-type]
    inside = sequence.removeprefix("\x1b]").removesuffix("\x1b\\")
    assert inside.isprintable()
    assert len(sequence) < 400
    assert inside.startswith(("9;tuimon: ", "777;notify;tuimon;"))
    assert inside.count(";") == (3 if way == "osc777" else inside.count(";"))


def herald(settings: Settings) -> tuple[Herald, list[str], list[str]]:
    written: list[str] = []
    troubles: list[str] = []
    return Herald(settings, written.append, troubles.append), written, troubles


def test_bell_and_notification_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TMUX", raising=False)
    for bell, way, wanted in (
        (True, "off", [BELL]),
        (False, "osc9", ["\x1b]9;tuimon: gpu-17 STALLED: nothing alive\x1b\\"]),
        (False, "off", []),
    ):
        told, written, _ = herald(Settings(bell=bell, notify=way))  # type: ignore[arg-type]
        told.look(view("stalled", 0))
        told.look(view("stalled", 2))
        assert written == wanted


# The command


def writes_to(path: Path) -> str:
    return f"{sys.executable} -c 'import sys; open(sys.argv[1], \"a\").write(sys.stdin.read())' {path}"


def test_the_command_gets_the_evidence_as_json_on_stdin(tmp_path: Path) -> None:
    told, _, troubles = herald(Settings(on_change=writes_to(tmp_path / "got")))
    told.look(view("starting", 0))
    told.look(view("starting", 2))
    told.stop(view("stalled", 3, headline="$(touch /tmp/never); `id` \x1b[31m"))
    documents = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]
    assert [(each["change"]["from"], each["change"]["to"]) for each in documents] == [
        (None, "starting"),
        ("starting", "stalled"),
    ]
    assert documents[1]["verdict"]["state"] == "stalled"
    assert troubles == []


def test_there_is_no_shell(tmp_path: Path) -> None:
    assert split("echo '$HOME; x' && y")[1:] == ["$HOME; x", "&&", "y"]
    assert run(["touch", str(tmp_path / "a; touch b")], b"", 5.0) is None
    assert [path.name for path in tmp_path.iterdir()] == ["a; touch b"]


@pytest.mark.parametrize("command", ["echo 'open", "", "   ", "no-such-program-anywhere -x"])
def test_a_command_that_cannot_be_run_is_refused_before_the_watch_begins(command: str) -> None:
    with pytest.raises(BadCommand):
        split(command)


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    began = time.monotonic()
    words = run(["sh", "-c", f"sleep 1000 & echo $! > {pidfile}; wait"], b"", 0.5)
    assert time.monotonic() - began < 5
    assert words is not None
    assert "was killed" in words
    child = int(pidfile.read_text())
    deadline = time.monotonic() + 5
    while _lives(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_a_command_that_fails_is_said(tmp_path: Path) -> None:
    assert run(["false"], b"", 5.0) == "false ended with 1"
    assert run([str(tmp_path)], b"", 5.0) is not None
    assert run(["true"], b"x" * 10_000_000, 5.0) is None  # it does not read its stdin


def test_a_slow_command_does_not_hold_up_the_looking_nor_the_end(tmp_path: Path) -> None:
    troubles: list[str] = []
    pids = tmp_path / "pids"
    command = OnChange(f"sh -c 'echo $$ >> {pids}; exec sleep 1000'", troubles.append, limit=100)
    began = time.monotonic()
    for _ in range(20):
        command.tell({})
    assert time.monotonic() - began < 0.2
    assert any("one was dropped" in words for words in troubles)
    while not pids.exists():
        assert time.monotonic() - began < 5
    command.stop(within=0.1)
    assert time.monotonic() - began < 5
    [pid] = pids.read_text().split()
    assert not _lives(int(pid))
