"""tuimon itself stands still (a laptop asleep, Ctrl-Z): the gap is marked, and the log goes on at the byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from tests.ssh.faults import Writer, say, until
from tuimon.launch.events import AnyEvent, Gap, LogText, ServerFound, Unlinked

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ssh.conftest import Sshd

CLIENT = """
import sys, threading, msgspec
from tuimon.config import Settings
from tuimon.watch.live import LiveWatch
watch = LiveWatch(sys.argv[1], Settings(log=sys.argv[2], pid=int(sys.argv[3]), history=False))
out = open(sys.argv[4], "ab", buffering=0)
watch.on_event(lambda event: out.write(msgspec.json.encode(event) + b"\\n"))
watch.start()
threading.Event().wait(120)
"""


def told(path: Path) -> list[AnyEvent]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [msgspec.json.decode(line, type=AnyEvent) for line in lines if line.endswith(b"\n")]


def text(path: Path) -> bytes:
    events = told(path)
    found = next((at for at, event in enumerate(events) if isinstance(event, ServerFound)), len(events))
    return b"".join(event.text for event in events[found:] if isinstance(event, LogText))


def test_a_tuimon_that_stood_still_marks_the_gap(sshd: Sshd, tmp_path: Path) -> None:
    sshd.trust()
    log, heard = Writer(tmp_path / "growing.log"), tmp_path / "heard"
    arguments = [sshd.name, str(log.path), str(os.getpid()), str(heard)]
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments])
    try:
        until(lambda: len(text(heard)) > 50)
        client.send_signal(signal.SIGSTOP)
        time.sleep(6.5)
        client.send_signal(signal.SIGCONT)
        began, before = time.monotonic(), len(text(heard))
        until(lambda: any(isinstance(event, Gap) and event.of == "tuimon" for event in told(heard)))
        until(lambda: len(text(heard)) > before)
        took = time.monotonic() - began
        say(f"{'tuimon stopped for 6.5 s':34} | {'a gap: tuimon stood still for 6 s':44} | {took:5.1f} s")
        written = log.stop()
        until(lambda: text(heard) == written)
        assert not [event for event in told(heard) if isinstance(event, Unlinked)]
    finally:
        log.stop()
        client.kill()
        client.wait()
