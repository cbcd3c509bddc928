"""LiveWatch: whatever fails becomes words, and the thread lives."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

import pytest

from tests.watch.scripted import SAMPLE, SERVER, Believer, Watched, settle
from tuimon.config import Settings
from tuimon.hosts.errors import ChannelRefused, HostError
from tuimon.hosts.host import Completed, LogPiece
from tuimon.hosts.ssh import SshHost
from tuimon.launch.events import (
    Finding,
    Gap,
    Linked,
    LogText,
    Sample,
)  # fmt: skip
from tuimon.watch.live import LiveWatch


def test_garbage_from_the_probe_is_said_once_and_harms_nothing(watched: Watched) -> None:
    watched.start()
    watched.says(SAMPLE)
    for _ in range(5):
        watched.says_bytes(b"motd \x1b[2J\xff\n{}\n")
    watched.says(SAMPLE)
    assert len(watched.findings()) == 1
    assert "make no sense" in watched.findings()[0]
    assert "\x1b" not in watched.findings()[0]
    assert len(watched.seen(Sample)) == 2


def test_what_a_login_shell_prints_at_its_start_is_no_news(watched: Watched) -> None:
    watched.start()
    watched.says_bytes(b"Welcome to GPU-17!\nLast login: \x1b[1mMon\n\n")
    watched.says(SAMPLE)
    assert watched.findings() == []
    assert len(watched.seen(Sample)) == 1


def test_the_probe_is_told_that_we_are_still_there(watched: Watched) -> None:
    watched.start()
    watched.says(SAMPLE)
    channel = watched.host.channels[0]
    before = len(channel.heard)
    watched.passes(10.5)
    assert channel.heard[before:] == b"\n\n"


def test_a_probe_that_ended_because_tuimon_stood_still_is_only_started_again(watched: Watched) -> None:
    watched.start()
    watched.says(SAMPLE)
    watched.host.channels[0].status = 75
    watched.says_bytes(b"")
    watched.passes(1)
    assert len(watched.host.channels) == 2
    assert watched.findings() == []
    assert [gap.of for gap in watched.seen(Gap)] == ["samples"]


def test_a_silent_probe_is_started_anew_after_fifteen_seconds_and_its_successor_is_waited_for(watched: Watched) -> None:
    watched.start()
    watched.says(SAMPLE)
    watched.passes(14.5)
    assert len(watched.host.channels) == 1
    watched.passes(2)
    assert len(watched.host.channels) == 2
    assert watched.host.channels[0].ended
    assert [gap.of for gap in watched.seen(Gap)] == ["samples"]
    watched.passes(200)
    assert len(watched.host.channels) == 2
    assert [text for text in watched.findings() if "says nothing" in text] == ["The probe on gpu-17 says nothing"]
    watched.says(SAMPLE)
    watched.passes(10)
    assert len(watched.seen(Sample)) == 2
    watched.passes(20)
    assert len(watched.host.channels) == 3


def test_a_probe_that_ends_says_its_last_word_and_is_started_again(watched: Watched) -> None:
    watched.start()
    watched.host.channels[0].stderr = "Traceback ...\nMemoryError: \x1b[31mno memory\n"
    watched.host.channels[0].status = 1
    watched.says_bytes(b"")
    watched.passes(2)
    assert watched.findings() == ["The probe on gpu-17 ended (exit 1): MemoryError: [31mno memory"]
    assert len(watched.host.channels) == 2


def test_without_python3_another_interpreter_is_found(watched: Watched) -> None:
    def answers(argv: Sequence[str]) -> Completed:
        if argv[0] == "sh":
            return Completed(0, b"/opt/bad/bin/python3\n; rm -rf /\n/opt/conda/bin/python3.11\n", b"")
        return Completed(0 if argv[0] == "/opt/conda/bin/python3.11" else 1, b"1\n", b"")

    watched.host.answers = answers
    watched.start()
    watched.host.channels[0].status = 127
    watched.says_bytes(b"")
    watched.passes(2)
    assert watched.host.python == "/opt/conda/bin/python3.11"
    assert len(watched.host.channels) == 2
    assert watched.findings() == []


def test_without_any_python_it_says_what_cannot_be_seen_and_what_to_do(watched: Watched) -> None:
    watched.start()
    watched.host.channels[0].status = 127
    watched.says_bytes(b"")
    (finding,) = watched.seen(Finding)
    assert "gpu-17 has no python3" in finding.text
    assert finding.fix
    assert "Python 3.6" in finding.fix


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (lambda w: w.logs(KeyError("tail")), "log: KeyError: 'tail'"),
        (lambda w: w.logs(HostError("The tail ended")), "The tail ended"),
        (lambda w: w.says_bytes(KeyError("probe")), "probe: KeyError: 'probe'"),
        (lambda w: setattr(w.believer, "fails_at", Sample), "judging: ValueError: cannot believe it"),
        (lambda w: setattr(w.host.channels[-1], "write", None), "watching: TypeError"),
        (lambda w: w.do(_stray()), "collecting: KeyError: 'stray'"),
    ],
)
def test_a_failure_in_any_task_becomes_words_and_the_watching_goes_on(
    watched: Watched, break_it: Callable[[Watched], None], expected: str
) -> None:
    watched.start()
    watched.says(SERVER)
    watched.believer.state = "quiet"
    break_it(watched)
    watched.says(SAMPLE)
    watched.passes(5)
    assert any(expected in text for text in watched.findings()), watched.findings()
    watched.believer.fails_at = None
    watched.says(SAMPLE)
    watched.logs(LogPiece("text", 0, b"still here"))
    watched.passes(1)
    assert watched.seen(Sample)
    assert watched.seen(LogText)
    assert watched.watch._thread.is_alive()


def test_an_unexpected_failure_to_connect_is_said_and_tried_again(watched: Watched) -> None:
    watched.host.connects = [ZeroDivisionError("bug"), None]
    watched.start()
    watched.passes(5)
    assert watched.findings() == ["tuimon's own error while connecting: ZeroDivisionError: bug"]
    assert len(watched.seen(Linked)) == 1


def test_a_host_without_free_sessions_is_said_and_asked_again(watched: Watched) -> None:
    watched.host.starts = [ChannelRefused("opens no further session", "Raise MaxSessions")]
    watched.start()
    watched.passes(3)
    assert watched.findings() == ["opens no further session"]
    assert len(watched.host.channels) == 1


def test_standing_still_is_a_gap(watched: Watched) -> None:
    watched.start()
    watched.clock._time += 100
    watched.passes(1)
    assert [(gap.of, gap.since) for gap in watched.seen(Gap)] == [("tuimon", 1000.0)]


def test_it_stops_in_time_also_when_the_host_never_answers(watched: Watched) -> None:
    watched.host.hangs_at_close = True
    watched.start()
    stopping = threading.Thread(target=watched.watch.stop)
    stopping.start()
    stopping.join(3.5)
    assert not stopping.is_alive()
    assert not watched.watch._thread.is_alive()
    assert watched.host.channels[0].ended
    watched.watch.stop()
    watched.watch.ask("stacks")


def test_it_stops_in_time_also_when_the_name_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = threading.Event(), threading.Event()

    def look_up(*_: object) -> None:
        asked.set()
        answer.wait(30)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    watch = LiveWatch(SshHost("gpu-17", config=None), Settings(), launch=Believer())
    watch.start()
    assert asked.wait(10)
    watch.stop()
    assert not watch._thread.is_alive()
    answer.set()


def test_it_can_be_stopped_before_it_was_started() -> None:
    Watched(Settings()).watch.stop()


async def _stray() -> None:
    asyncio.get_running_loop().call_soon(_raise)
    await settle()


def _raise() -> None:
    raise KeyError("stray")
