"""A whole watch of a server in a tmux pane: its lines, the next launch in the same pane, no line twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh.faults import until
from tuimon.config import Settings
from tuimon.launch.events import AnyEvent, LogText, ServerFound
from tuimon.watch.live import LiveWatch

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
SERVER = """
import sys, time
for number in range(5):
    print("[2026-11-30 15:46:0%d] launch %s says %d" % (number, sys.argv[-1], number), flush=True)
time.sleep(600)
"""


class Pane:
    """A pane with a shell in it."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux"
        module = folder / "lib" / "sglang" / "launch_server.py"
        module.parent.mkdir(parents=True)
        module.write_text(SERVER)
        self._command = f"PYTHONPATH={folder}/lib {sys.executable} -m sglang.launch_server --port 1 --x"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "20", "exec env PS1= sh")
        self.shell = int(self.tmux("display-message", "-p", "#{pane_pid}"))

    def tmux(self, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        argv = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    def launch(self, name: str) -> None:
        self.tmux("send-keys", f"{self._command} {name}", "Enter")

    def interrupt(self) -> None:
        self.tmux("send-keys", "C-c")


@pytest.fixture
def pane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pane]:
    pane = Pane(tmp_path)
    monkeypatch.setenv("TUIMON_WITHIN", str(pane.shell))
    yield pane
    pane.tmux("kill-server")


def test_what_a_pane_shows_is_the_log_of_one_launch_after_the_other(pane: Pane) -> None:
    pane.launch("one")
    events: list[AnyEvent] = []
    watch = LiveWatch("localhost", Settings(history=False))
    watch.on_event(events.append)
    watch.start()

    def text(launch: int) -> bytes:
        """What was told to a launch: some of the next one's was read before its process was found, and comes again."""
        found = [at for at, event in enumerate(list(events)) if isinstance(event, ServerFound)]
        told = events[found[launch] : found[launch + 1] if launch + 1 < len(found) else None]
        return b"".join(event.text for event in told if isinstance(event, LogText))

    def servers() -> list[ServerFound]:
        return [event for event in list(events) if isinstance(event, ServerFound)]

    try:
        until(lambda: len(servers()) == 1 and b"launch one says 4" in text(0))
        assert (servers()[0].log_note or "").startswith("what tmux pane %")
        pane.interrupt()
        until(lambda: watch.view.server is None or watch.view.verdict.state in {"crashed", "finished"})
        pane.launch("two")
        until(lambda: len(servers()) == 2 and b"launch two says 4" in text(1))
        assert [text(0).count(b"launch one says %d" % number) for number in range(5)] == [1] * 5
        assert [text(1).count(b"launch two says %d" % number) for number in range(5)] == [1] * 5
        assert b"launch one says" not in text(1)
    finally:
        watch.stop()
