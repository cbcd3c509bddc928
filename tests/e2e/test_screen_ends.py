"""However tuimon ends, it ends soon, and nothing of the demo is left; and a terminal that hangs is no end."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.bare import Terminal, bare
from tests.e2e.launched import below, wait_for_end

SOON = 3.0
"""Seconds."""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Terminal]:
    with bare("demo:slow-compile@0.1", TUIMON_STATE_DIR=str(tmp_path)) as terminal:
        terminal.read("scheduler", 20)
        yield terminal


@pytest.mark.parametrize("how", ["SIGTERM", "a closed window"])
def test_it_ends_soon_and_leaves_nothing(demo: Terminal, how: str) -> None:
    pids = below(demo.child.pid)
    assert len(pids) > 10
    if how == "a closed window":
        demo.vanish()
    else:
        demo.child.send_signal(signal.Signals[how])
    began = time.monotonic()
    status = demo.ended(SOON + 2, reads=demo.fd >= 0)
    assert time.monotonic() - began < SOON
    if how != "a closed window":
        assert status == 0
    wait_for_end(pids, 3)


def test_killed_hard_it_leaves_nothing_either(demo: Terminal) -> None:
    pids = below(demo.child.pid)
    demo.child.kill()
    wait_for_end(pids, 8)


def test_a_terminal_that_stops_reading_stops_neither_the_app_nor_the_watching(demo: Terminal) -> None:
    age = r"last line (\d+) s ago"
    before = int(demo.read(r"last line ([2-9]) s ago", 20)[1])
    began = time.monotonic()
    time.sleep(8)
    assert demo.child.poll() is None
    # What was drawn before it stood still comes first; then it goes on with what is now.
    now = int(re.findall(age, demo.drain(3))[-1])
    assert abs(now - before - (time.monotonic() - began)) < 3
    os.write(demo.fd, b"q")
    assert demo.ended(6) == 0


@pytest.mark.slow
def test_a_terminal_that_stops_reading_for_a_minute_does_not_stop_the_verdict(tmp_path: Path) -> None:
    with bare("demo:silent-stall@0.02", TUIMON_STATE_DIR=str(tmp_path)) as terminal:
        terminal.read(r"QUIET 1\d s", 30)
        hung = time.monotonic() - 10  # give or take the 5 s that a busy machine may be late
        time.sleep(60)
        assert terminal.child.poll() is None
        minutes, seconds = re.findall(r"SILENT STALL  (?:(\d+) m )?(\d+) s", terminal.drain(5))[-1]
        age = 60 * int(minutes or 0) + int(seconds)
        assert abs(age - (time.monotonic() - hung)) < 6
        os.write(terminal.fd, b"q")
        assert terminal.ended(6) == 0
