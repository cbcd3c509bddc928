"""What the tests of faults have in common: a log that grows, a watch of it, a Python on the host that is made odd."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tuimon.config import Settings
from tuimon.hosts.host import Host
from tuimon.launch.events import AnyEvent, Finding, Gap, LogReset, LogText, Sample, ServerFound, Unlinked
from tuimon.watch.live import LiveWatch


class Writer:
    """A server's log: a numbered line each 10 ms, appended to whatever lies at the path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.quiet = threading.Lock()
        """Whoever holds it keeps the log silent."""
        self._written = bytearray()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._ending.wait(0.01):
            with self.quiet, self.path.open("ab") as file:
                line = b"line %d\n" % number
                file.write(line)
                self._written += line
            number += 1

    def written(self) -> bytes:
        """Everything that was ever written, wherever it lies now."""
        return bytes(self._written)

    def stop(self) -> bytes:
        self._ending.set()
        self._thread.join()
        return self.written()


class Watched:
    """A watch of a log that grows, with what it heard."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.log = Writer(folder / "growing.log")
        self.events: list[AnyEvent] = []
        self.watch = LiveWatch(host, Settings(log=str(self.log.path), pid=os.getpid(), history=False))
        self.watch.on_event(self.events.append)
        self.watch.start()
        until(lambda: self.count(Sample) > 0 and self.count(ServerFound) > 0 and len(self.text()) > 50)

    def count(self, kind: type[AnyEvent]) -> int:
        return sum(isinstance(event, kind) for event in list(self.events))

    def text(self) -> bytes:
        events = list(self.events)
        found = next((at for at, event in enumerate(events) if isinstance(event, ServerFound)), len(events))
        return b"".join(event.text for event in events[found:] if isinstance(event, LogText))

    def reasons(self) -> list[str]:
        return [event.reason for event in list(self.events) if isinstance(event, Unlinked)]

    def resets(self) -> list[str]:
        return [event.why for event in list(self.events) if isinstance(event, LogReset)]

    def gaps(self) -> list[str]:
        return [event.of for event in list(self.events) if isinstance(event, Gap)]

    def findings(self) -> list[Finding]:
        # Other launches of this machine are the probe's to tell and none of a test's business.
        return [event for event in list(self.events) if isinstance(event, Finding) and event.kind != "other_launch"]

    def recovers(self, what: str, shown: str = "") -> float:
        """Wait for fresh samples and text; the seconds that took."""
        began, samples, text = time.monotonic(), self.count(Sample), len(self.text())
        until(lambda: self.count(Sample) > samples and len(self.text()) > text, 60)
        took = time.monotonic() - began
        say(f"{what:34} | {shown or (self.reasons() or ['no word: it held'])[0]:44} | {took:5.1f} s")
        return took

    def whole(self) -> None:
        """Everything that was written has come, once."""
        written = self.log.stop()
        until(lambda: self.text() == written)

    def close(self) -> None:
        self.log.stop()
        self.watch.stop()


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def odd_python(folder: Path, oddness: str) -> None:
    """A python3 there that first does something odd and then what it was told; the folder belongs on the PATH."""
    path = folder / "python3"
    path.write_text(f"#!{sys.executable} -I\nimport errno, os, sys, time\n{oddness}\nexec(sys.argv[-1], {{}})\n")
    path.chmod(0o755)


def ours(parents: list[int]) -> list[int]:
    """Pids of our programs below these."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    below, grew = set(parents), True
    while grew:
        more = {int(row[0]) for row in rows if int(row[1]) in below} - below
        below |= more
        grew = bool(more)
    return [int(row[0]) for row in rows if int(row[0]) in below and len(row) > 2 and "tuimon-probe" in row[2]]


def threads(pid: int) -> int:
    """How many it has; 0 once it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def say(words: str) -> None:
    """A line of the table."""
    sys.stdout.write(words + "\n")
