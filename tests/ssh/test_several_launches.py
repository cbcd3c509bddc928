"""A whole watch of a host on which two launches run: the other one is chosen, and stays chosen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh.faults import ours, threads, until
from tuimon.config import Settings
from tuimon.launch.events import AnyEvent, ServerFound
from tuimon.watch.live import LiveWatch

SERVER = """
import sys, time
print("launch %s speaks" % sys.argv[-1], flush=True)
time.sleep(600)
"""


class Host:
    """Two servers, each with a log of its own."""

    def __init__(self, folder: Path) -> None:
        module = folder / "lib" / "sglang" / "launch_server.py"
        module.parent.mkdir(parents=True)
        module.write_text(SERVER)
        self.servers = []
        for name in ("old", "new"):
            with (folder / f"{name}.log").open("w") as log:
                argv = [sys.executable, "-m", "sglang.launch_server", "--port", "1", "--served-model-name", name]
                environment = {**os.environ, "PYTHONPATH": str(folder / "lib")}
                self.servers.append(subprocess.Popen(argv, stdout=log, stderr=log, env=environment))
            time.sleep(0.05)  # start times count in 10 ms

    def close(self) -> None:
        for server in self.servers:
            server.kill()
            server.wait()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("TUIMON_WITHIN", str(os.getpid()))
    host = Host(tmp_path)
    yield host
    host.close()


def test_the_other_launch_is_seen_with_its_log_and_stays_chosen_when_the_probe_is_killed(host: Host) -> None:
    old, new = host.servers
    events: list[AnyEvent] = []
    watch = LiveWatch("localhost", Settings(history=False))
    watch.on_event(events.append)
    watch.start()

    def seen(pid: int, words: str) -> bool:
        view = watch.view
        lines = [line.text for line in view.lines.slice(view.lines.first, view.lines.end)]
        return view.server is not None and view.server.pid == pid and lines[-1:] == [words]

    try:
        until(lambda: seen(new.pid, "launch new speaks") and len(watch.view.launches) == 2)
        assert [(one.pid, one.watched) for one in watch.view.launches] == [(new.pid, True), (old.pid, False)]
        watch.see(old.pid)
        until(lambda: seen(old.pid, "launch old speaks"))
        assert [one.watched for one in watch.view.launches] == [False, True]
        assert [one.pid for one in watch.view.earlier] == [new.pid]
        found = sum(isinstance(event, ServerFound) for event in events)
        os.kill(next(pid for pid in ours([os.getpid()]) if threads(pid) >= 4), signal.SIGKILL)
        until(lambda: sum(isinstance(event, ServerFound) for event in events) > found)
        assert watch.view.server
        assert watch.view.server.pid == old.pid
        watch.see(new.pid)
        until(lambda: seen(new.pid, "launch new speaks"))
        old.kill()
        old.wait()
        until(lambda: watch.view.launches == ())
    finally:
        watch.stop()
