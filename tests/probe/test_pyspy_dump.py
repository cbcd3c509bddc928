"""Real py-spy on real hung processes: right stacks or the right reason, the target unharmed, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.probe.hung import NOBODY, AsUser, Hung, as_user, standin, start_ticks, state_of, until
from tuimon.diagnose import binary, sent, stacks
from tuimon.diagnose.groups import group, moved
from tuimon.diagnose.targets import Target
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import Stacks

needs_root = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="becoming nobody needs root and setpriv"
)
SYSTEM_PYTHON = "/usr/bin/python3"
BARE_PYTHON = SYSTEM_PYTHON if Path(SYSTEM_PYTHON).exists() else sys.executable
needs_system_python = pytest.mark.skipif(
    not Path(SYSTEM_PYTHON).exists() or Path("/usr/bin/py-spy").exists(),
    reason="needs a system Python without py-spy beside it",
)


@pytest.fixture
def anywhere() -> Iterator[Path]:
    """A folder that other users can reach; tmp_path is private to us."""
    with tempfile.TemporaryDirectory(prefix="tuimon-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def hung(anywhere: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    monkeypatch.setenv("HOME", str(anywhere))  # what is cached goes with the folder
    made = Hung(anywhere)
    yield made
    made.end()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with an empty home, and without py-spy on its PATH."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


def look(host: LocalHost, *processes: subprocess.Popen[bytes]) -> Stacks:
    return asyncio.run(
        stacks.dump(host, [Target(process.pid, f"TP{number}") for number, process in enumerate(processes)])
    )


def test_the_rank_in_a_lock_stands_out_from_those_that_wait_for_it(hung: Hung) -> None:
    ranks = [hung.start(step) for step in ("all_reduce", "load_weights", "all_reduce")]
    hung.settle("S", "S", "S")

    found = look(LocalHost(), *ranks)

    suspect, others = group(found)
    assert not found.unread
    assert found.cost is not None
    assert (suspect.label, suspect.odd, suspect.waits_in) == ("TP1", True, "for a lock (futex)")
    assert (others.label, others.odd, others.waits_in) == ("TP[0,2]", False, "in a collective: all_reduce")
    assert [frame.name for frame in suspect.frames] == ["load_weights", "forward", "<module>"]


def test_two_looks_at_a_hang_show_no_motion(hung: Hung) -> None:
    still = hung.start("all_reduce")
    hung.settle("S")

    first, second = look(LocalHost(), still), look(LocalHost(), still)

    assert moved(first, second) is False


def test_every_kind_of_hang_tells_what_it_waits_in(hung: Hung) -> None:
    steps = ("open_shard", "spin", "hold_gil", "uninterruptible")
    ranks = [hung.start(step) for step in steps]
    hung.settle("S", "R", "S", "D")

    found = look(LocalHost(), *ranks)

    assert not found.unread
    groups = {item.frames[0].name: item for item in group(found)}
    assert groups["open_shard"].waits_in == "for the other end of a FIFO"
    assert groups["spin"].waits_in is None
    assert groups["hold_gil"].gil_held
    assert groups["uninterruptible"].states == "D"


def test_a_stopped_rank_is_read_without_waking_it_and_goes_on_when_released(hung: Hung) -> None:
    ranks = [hung.start("all_reduce"), hung.start("all_reduce")]
    os.kill(ranks[1].pid, signal.SIGSTOP)
    hung.settle("S", "T")

    found = look(LocalHost(), *ranks)

    suspect = group(found)[0]
    assert (suspect.label, suspect.odd, suspect.waits_in) == ("TP1", True, "stopped by a signal")
    assert state_of(ranks[1].pid) == "T"
    os.kill(ranks[1].pid, signal.SIGCONT)
    hung.settle("S", "S")


def test_processes_that_cannot_be_read_say_why(hung: Hung) -> None:
    zombie = subprocess.Popen([sys.executable, "-c", "pass"])
    sleeper = subprocess.Popen(["sleep", "600"])
    rank = hung.start("all_reduce")
    until(lambda: state_of(zombie.pid) == "Z")
    gone = subprocess.Popen(["true"])
    gone.wait()
    try:
        targets = [Target(zombie.pid, "TP0"), Target(sleeper.pid, "TP1"), Target(gone.pid, "TP2")]
        reused = Target(rank.pid, "TP3", started=start_ticks(rank.pid) - 1)
        found = asyncio.run(stacks.dump(LocalHost(), [*targets, reused]))
    finally:
        zombie.wait()
        sleeper.kill()
        sleeper.wait()

    reasons = {item.rank: item.reason for item in found.unread}
    assert reasons["TP0"].startswith("a zombie: it has exited and its parent has not collected it")
    assert reasons["TP1"].startswith("not a Python process")
    assert "/proc shows: state S (asleep), sleeps in " in reasons["TP1"]
    assert reasons["TP2"] == "the process is gone"
    assert reasons["TP3"].startswith("the process is gone")


@needs_system_python
def test_a_host_without_py_spy_gets_ours_once_and_keeps_it(hung: Hung, home: Path) -> None:
    rank = hung.start("all_reduce", SYSTEM_PYTHON)

    first = look(LocalHost(), rank)
    kept = list((home / ".cache" / "tuimon").iterdir())
    before = kept[0].stat()
    second = look(LocalHost(), rank)

    assert len(first.ranks) == len(second.ranks) == 1
    assert [path.name for path in kept] == [binary.own().name]
    assert before.st_mode & 0o777 == 0o700
    assert kept[0].stat().st_mtime_ns == before.st_mtime_ns


@needs_system_python
def test_a_fake_py_spy_in_the_cache_is_never_run_and_replaced(hung: Hung, home: Path) -> None:
    rank = hung.start("all_reduce", SYSTEM_PYTHON)
    cached = home / ".cache" / "tuimon" / binary.own().name
    cached.parent.mkdir(parents=True)
    cached.write_text(f"#!/bin/sh\ntouch {home}/trapped\n")
    cached.chmod(0o755)

    found = look(LocalHost(), rank)

    assert len(found.ranks) == 1
    assert cached.stat().st_size > 1_000_000
    assert not (home / "trapped").exists()


@needs_system_python
def test_where_nothing_can_be_written_py_spy_runs_from_memory(
    hung: Hung, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = hung.start("all_reduce", SYSTEM_PYTHON)
    monkeypatch.setenv("HOME", "/proc")

    found = look(LocalHost(), rank)

    assert len(found.ranks) == 1
    assert list(home.iterdir()) == []


def test_a_py_spy_that_does_not_know_this_python_is_passed_over(
    hung: Hung, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = hung.start("all_reduce", BARE_PYTHON)
    old = standin(home, "py-spy", 'echo "Error: Unsupported version of Python: 3.14.0" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")

    found = look(LocalHost(), rank)

    assert [item.pid for item in found.ranks] == [rank.pid]


def test_a_py_spy_that_hangs_is_ended_and_named(hung: Hung, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = hung.start("all_reduce", BARE_PYTHON)
    slow = standin(home, "py-spy", f"echo $$ > {home}/pid; exec sleep 600")
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    monkeypatch.setattr(stacks, "PATIENCE", 0.3)

    found = look(LocalHost(), rank)

    assert found.unread[0].reason.startswith("py-spy did not end in time")
    assert not Path(f"/proc/{(home / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize("how", ["reader goes away", "killed"])
def test_nothing_is_left_on_the_host_when_the_link_ends(
    how: str, hung: Hung, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = hung.start("all_reduce", BARE_PYTHON)
    slow = standin(home, "py-spy", f"echo $$ > {home}/pid.part; mv {home}/pid.part {home}/pid; exec sleep 600")
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    command = [sys.executable, "-I", "-u", "-c", sent.BOOTSTRAP]
    dumper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert dumper.stdin is not None
    assert dumper.stdout is not None
    with dumper.stdin, dumper.stdout:
        dumper.stdin.write(stacks.program() + stacks.options([Target(rank.pid)], native=False, packed=0))
        dumper.stdin.flush()
        until((home / "pid").exists)
        if how == "killed":
            dumper.kill()
    assert dumper.wait(10) is not None
    child = Path(f"/proc/{(home / 'pid').read_text().strip()}")
    until(lambda: not child.exists())


@needs_root
def test_an_ordinary_user_reads_their_own_ranks_and_is_told_why_not_others(hung: Hung, anywhere: Path) -> None:
    mine = hung.start("all_reduce", SYSTEM_PYTHON, as_user(NOBODY))
    roots = hung.start("all_reduce", SYSTEM_PYTHON)
    hung.settle("S", "S")

    found = look(AsUser(NOBODY, anywhere), mine, roots)

    assert [item.pid for item in found.ranks] == [mine.pid]
    assert found.unread[0].reason.startswith(
        "no right to read it: it belongs to uid 0, we are uid 65534 (log in as root or as that user, or allow sudo -n"
    )
    assert "/proc shows: state S (asleep)" in found.unread[0].reason


@needs_root
@pytest.mark.parametrize("allowed", [True, False])
def test_sudo_is_used_where_rights_are_missing_but_a_refusal_is_asked_for_once(
    allowed: bool, hung: Hung, anywhere: Path
) -> None:
    roots = [hung.start("all_reduce", SYSTEM_PYTHON), hung.start("all_reduce", SYSTEM_PYTHON)]
    host = AsUser(NOBODY, anywhere)
    calls = anywhere / "calls"
    calls.touch()
    calls.chmod(0o666)
    refuse = 'echo "sudo: a password is required" >&2; exit 1'
    answer = 'echo \'[{"thread_name": "MainThread", "frames": [{"name": "as_root"}]}]\''
    sudo = standin(anywhere, "sudo", f"echo x >> {calls}; {answer if allowed else refuse}")
    host.prefix[2] = f"PATH={sudo.parent}:/usr/bin:/bin"

    found = look(host, *roots)

    assert len(found.ranks) == (2 if allowed else 0)
    assert len(calls.read_text().split()) == (3 if allowed else 1)  # may we? then once for each rank
    assert all("belongs to uid 0" in item.reason for item in found.unread)


@needs_root
@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o755), (0, 0o775), (0, 0o757)])
def test_as_root_a_py_spy_that_someone_else_could_have_written_is_not_run(
    hung: Hung, home: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int
) -> None:
    rank = hung.start("all_reduce", SYSTEM_PYTHON)
    trap = standin(home, "py-spy", f"touch {home}/trapped; exit 1")
    os.chown(trap, owner, NOBODY)
    trap.chmod(mode)
    monkeypatch.setenv("PATH", f"{trap.parent}:/usr/bin:/bin")

    found = look(LocalHost(), rank)

    assert len(found.ranks) == 1
    assert not (home / "trapped").exists()


def test_a_host_without_python_uses_the_interpreter_of_the_server(hung: Hung) -> None:
    host = LocalHost()
    host.python = "no-such-python"
    rank = hung.start("all_reduce")

    found = look(host, rank)

    assert len(found.ranks) == 1


def test_eight_ranks_are_read_within_half_a_second_of_work(hung: Hung) -> None:
    ranks = [hung.start("all_reduce") for _ in range(8)]

    found = look(LocalHost(), *ranks)

    assert [item.label for item in group(found)] == ["TP[0-7]"]
    assert found.cost is not None
    assert found.cost < 5.0  # 0.09–0.25 s alone; the machine of the tests is shared
