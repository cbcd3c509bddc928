"""The demo's launch without tuimon's own SSH server in between: real processes for other ways of reaching them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

SERVE = "import sys; from tuimon.demo.serve import serve; sys.exit(serve(*sys.argv[1:]))"


class Launched(Struct, frozen=True):
    """A launch that runs by itself."""

    pids: tuple[int, ...]
    """Launcher, ranks in order, detokenizer."""
    log: Path
    trouble_at_s: float
    began: float
    """On this process's monotonic clock, at most 0.5 s late."""

    @property
    def within(self) -> int:
        """The keeper, which all of the launch is below."""
        return parent(self.pids[0])

    @property
    def environ(self) -> dict[str, str]:
        """What a probe on this machine needs to see this launch alone, with its GPUs."""
        return {"TUIMON_WITHIN": str(self.within), "TUIMON_PYNVML": str(self.log.with_name("pynvml.py"))}

    @property
    def left(self) -> list[int]:
        """Which of its processes live."""
        return [pid for pid in self.pids if alive(pid)]


@contextmanager
def launched(scenario: str, pace: str) -> Iterator[Launched]:
    """A launch; at the end nothing of it is left."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", SERVE, scenario, pace], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        yield msgspec.convert({**told, "log": Path(told["log"]), "began": began}, Launched)
    finally:
        process.stdout.close()
        process.terminate()
        process.wait(10)


def parent(pid: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def alive(pid: int) -> bool:
    """False for a zombie too."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def below(pid: int) -> list[int]:
    """All processes below this one, itself included, as far as they live."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                children.setdefault(parent(int(entry.name)), []).append(int(entry.name))
            except OSError:
                continue
    found = [pid] if alive(pid) else []
    for one in found:
        found += children.get(one, [])
    return found


def wait_for_end(pids: list[int], seconds: float) -> None:
    """Wait until none of these processes lives."""
    end = time.monotonic() + seconds
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < end, f"left after {seconds:g} s: {[_named(pid) for pid in left]}"
        time.sleep(0.02)


def _named(pid: int) -> str:
    try:
        return f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()[:80]!r}"
    except OSError:
        return str(pid)
