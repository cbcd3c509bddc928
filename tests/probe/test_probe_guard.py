"""A look at the host that never comes back must not silence the probe."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tuimon.probe.program import collector as collecting
from tuimon.probe.program import guard, procfs


class Listener:
    """Takes what the probe says."""

    def __init__(self) -> None:
        self.said: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()

    def say(self, event: str, **fields: Any) -> None:  # noqa: ANN401  (any event's fields)
        self.said.put((event, fields))

    def until(self, kind: str) -> dict[str, Any]:
        while True:
            event, fields = self.said.get(timeout=10)
            if event == kind:
                return fields


class NoGpus:
    pid = None
    driver = 0

    def request(self, pcie: bool) -> None:
        pass

    def reading(self) -> tuple[None, str]:
        return None, "no GPU"


class NoHealth:
    metrics = False

    def aim(self, target: object, pids: object) -> None:
        pass


def test_a_log_on_dead_storage_is_set_aside_until_it_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(collecting, "LATE", 0.3)
    answers = threading.Event()
    asked: list[float] = []
    log = str(tmp_path / "server.log")
    Path(log).write_text("x")
    real = os.stat

    def stat(path: str) -> os.stat_result:
        if path == log:
            asked.append(time.monotonic())
            if not answers.wait(20):
                pytest.fail("never released")
        return real(path)

    listener = Listener()
    collector = collecting.Collector({"interval": 0.1, "log": log}, listener, NoGpus(), NoHealth())
    monkeypatch.setattr(collector.guard, "stat", lambda path: collector.guard._look(path, stat, path))
    collector.start()
    end = time.monotonic() + 10
    while collector.hung == 0 and time.monotonic() < end:
        time.sleep(0.05)
        collector.watch()
    finding = listener.until("Finding")
    assert (finding["kind"], log in finding["text"]) == ("host_blocked", True)
    assert listener.until("Sample")["log"] is None  # the next thread goes on without it
    assert listener.until("Sample")["log"] is None
    assert len(asked) == 1
    answers.set()
    while listener.until("Sample")["log"] is None:
        assert time.monotonic() < end + 10
    collector.guard.owner = None  # ends the thread at its next look


def test_a_thread_that_was_replaced_ends_at_its_next_look() -> None:
    looks = guard.Guard()
    looks.own()
    looks.owner = -1
    with pytest.raises(guard.Abandoned):
        looks.read("/proc/uptime")


def test_reads_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 100_000)
    assert len(procfs.read(str(tmp_path / "big"), 1000)) == 1000
    assert len(procfs.read(str(tmp_path / "big"), 70_000, whole=True)) == 70_000
