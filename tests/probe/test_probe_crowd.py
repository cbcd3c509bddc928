"""A host with 10,000 processes, 1,500 of them the server's: the probe stays bounded in time, bytes and CPU."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tuimon.launch.events import Finding, Sample, ServerFound
from tuimon.probe.program.tree import Entry, Members

TREE, OTHERS = 1500, 8500
# One process that forks them all, in a session of its own; a short-lived one forks the others, which are init's then.
CROWD = """
import os, signal, sys
tree, others = int(sys.argv[1]), int(sys.argv[2])
told, tell = os.pipe()
def fork(number, alone):
    for _ in range(number):
        if os.fork() == 0:
            if alone:
                os.setsid()
            signal.pause()
fork(tree - 1, False)
if os.fork() == 0:
    os.setsid()
    fork(others, True)
    os.write(tell, b"1")
    os._exit(0)
os.read(told, 1)
os.wait()
print("complete", flush=True)
signal.pause()
"""


@pytest.fixture
def crowd() -> Iterator[int]:
    root = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", CROWD, str(TREE), str(OTHERS)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert root.stdout is not None
    assert root.stdout.readline() == b"complete\n"
    yield root.pid
    mine = Path(f"/proc/{root.pid}/cmdline").read_bytes()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == mine:
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue
    root.wait()
    root.stdout.close()


@pytest.mark.slow  # 10,000 forks take some 20 s, and slow every other test of /proc beside it
def test_ten_thousand_processes_are_borne(probe: Callable[..., Any], crowd: int) -> None:
    began = time.monotonic()
    watching = probe(pid=crowd, interval=1.0)
    found = watching.until(ServerFound)
    found_after = time.monotonic() - began
    said = watching.until(Finding, lambda finding: finding.kind == "crowd")
    samples = [watching.until(Sample, lambda sample: len(sample.processes or ()) > 500) for _ in range(12)]
    took = [sample.cost.sample for sample in samples]
    cpu = 100 * (samples[-1].cost.cpu - samples[2].cost.cpu) / (samples[-1].mono - samples[2].mono)
    size = max(len(msgspec.json.encode(sample)) for sample in samples)
    sys.stdout.write(
        f"found after {found_after:.1f} s; a sample takes {1000 * max(took[2:]):.0f} ms and {size >> 10} KiB; "
        f"{cpu:.1f} % of a core; {samples[-1].cost.pss or 0} bytes\n"
    )
    assert found.pid == crowd
    assert "1500 processes; the 1000 oldest" in said.text
    assert all(len(sample.processes) == 1000 for sample in samples)
    assert crowd in {process.pid for process in samples[-1].processes}
    assert found_after < 10
    assert max(took[2:]) < 1.0
    assert size < 1 << 20
    assert cpu < 20  # in its first minute, in which command lines are read again


class _Table:
    def __init__(self, entries: dict[int, Entry]) -> None:
        self.entries = entries


def test_of_a_crowd_the_root_and_the_oldest_are_chosen() -> None:
    line = b"%d (x) S %d 7 7 " + b"0 " * 15 + b"%d " + b"0 " * 30
    from tuimon.probe.program.procfs import Stat  # noqa: PLC0415  untyped

    stats = {pid: Stat(line % (pid, 1 if pid == 7 else 7, 1000 - pid if pid > 7 else 900)) for pid in (7, 20, 30, 40)}
    table = _Table({pid: Entry(pid, stat, 0.0) for pid, stat in stats.items()})
    members = Members(table, 7)
    members.pids = {7: 900, 20: 980, 30: 970, 40: 960}
    assert members.oldest(4) == [7, 20, 30, 40]
    assert members.oldest(2) == [7, 40]  # the child that started first
