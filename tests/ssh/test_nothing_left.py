"""Again and again, with either side killed: no process and no file there, flat memory and descriptors here."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd

CLIENT = """
import sys, time
from tuimon.config import Settings
from tuimon.watch.live import LiveWatch
watch = LiveWatch(sys.argv[1], Settings(log=sys.argv[2], pid=int(sys.argv[3]), history=False))
watch.start()
watch.wait_for(lambda view: view.data_age is not None, 20)
print("sampling", flush=True)
time.sleep(60)
"""


async def _one_after_the_other(sshd: Sshd, rounds: int) -> tuple[int, int]:
    """Growth of descriptors and of memory (KB) here, over connects of which every other link is killed there."""
    host = sshd.host()
    (sshd.folder / "log").write_bytes(b"x" * 1000)
    before = (0, 0)
    for number in range(rounds + 5):
        await host.connect()
        channel = await host.start(["cat"])
        pieces = host.follow(str(sshd.folder / "log"), 0)
        assert len((await anext(pieces)).text) == 1000
        assert (await host.run(["true"])).exit == 0
        if number % 2:
            for pid in sshd.children():
                os.kill(pid, signal.SIGKILL)
            await host.lost()
        channel.end_input()
        await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise
        await host.close()
        if number == 4:
            before = _used()
    after = _used()
    return after[0] - before[0], after[1] - before[1]


def _used() -> tuple[int, int]:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return len(os.listdir("/proc/self/fd")), int(memory.split()[1])


@pytest.mark.parametrize("rounds", [8, pytest.param(200, marks=pytest.mark.slow)])
async def test_links_killed_there_cost_nothing_here(sshd: Sshd, rounds: int) -> None:
    sshd.trust()
    descriptors, memory = await _one_after_the_other(sshd, rounds)
    sys.stdout.write(f"{rounds} links: {descriptors:+d} descriptors, {memory:+d} KB\n")
    assert descriptors <= 0
    assert memory < 2000 + 30 * rounds
    _until_gone(_below(sshd.children()))


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_tuimon_killed_here_leaves_nothing_there(sshd: Sshd, rounds: int) -> None:
    sshd.trust()
    home = sshd.folder / "remote"
    home.mkdir()
    (sshd.folder / "log").write_bytes(b"x")
    links: set[tuple[int, str]] = set()
    for _ in range(rounds):
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, sshd.name, str(sshd.folder / "log"), str(os.getpid())],
            stdout=subprocess.PIPE,
        )
        assert client.stdout
        assert client.stdout.readline() == b"sampling\n"
        links |= _below(sshd.children())
        client.kill()
        client.wait()
        client.stdout.close()
    assert links
    _until_gone(links)
    files = [*home.iterdir(), *sshd.home.glob(".cache/tuimon/*")]
    sys.stdout.write(f"{rounds} clients killed: {len(links)} processes there seen, 0 left, {len(files)} files\n")
    assert files == []


def _below(pids: Iterable[int]) -> set[tuple[int, str]]:
    """These and all their descendants, each with its start: among so many processes a pid comes again."""
    found = set()
    for pid in pids:
        try:
            found.add((pid, _started(pid)))
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        found |= _below(map(int, children))
    return found


def _started(pid: int) -> str:
    """Clock ticks since the boot."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _lives(pid: int, started: str) -> bool:
    try:
        return _started(pid) == started
    except OSError:
        return False


def _until_gone(processes: Iterable[tuple[int, str]], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    left = list(processes)
    while left := [process for process in left if _lives(*process)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)
