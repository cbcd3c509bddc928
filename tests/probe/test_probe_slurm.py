"""A server in a Slurm step: its file where srun writes it, else a sentence that names the way to it."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.probe.conftest import end_session
from tuimon.probe.program.guard import Guard
from tuimon.probe.program.output import Output, Outputs
from tuimon.probe.program.tree import Table

STEP = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"
DAEMON = """
import subprocess, sys
task = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
print(task.pid, flush=True)
task.stdout.read()
"""


class InAJob(Guard):
    """A host on which the named processes are in a job's cgroup."""

    def __init__(self, *outside: int) -> None:
        super().__init__()
        self._outside = outside
        self.own()

    def read(self, path: str, limit: int = 65536, whole: bool = False) -> bytes:
        if path.endswith("/cgroup") and int(path.split("/")[2]) not in self._outside:
            return STEP.encode()
        content: bytes = super().read(path, limit, whole)
        return content


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program under a name: the kernel calls a script by its file."""
    running: list[subprocess.Popen[str]] = []

    def start(name: str, program: str, **options: object) -> subprocess.Popen[str]:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\n{program}")
        path.chmod(0o755)
        running.append(subprocess.Popen([str(path)], text=True, start_new_session=True, **options))  # type: ignore[call-overload]  # any of its options
        return running[-1]

    yield start
    for started in running:
        end_session(started)  # type: ignore[arg-type]  # text or bytes, it is ended


def look(pid: int, guard: InAJob) -> Output:
    table = Table(guard)
    table.look(time.monotonic())
    found: Output = Outputs(guard, table).of(pid, "sglang")
    return found


def task_of(daemon: subprocess.Popen[str]) -> int:
    assert daemon.stdout is not None
    return int(daemon.stdout.readline())


def test_the_file_of_the_srun_that_started_the_step_is_the_log(
    named: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    task = task_of(named("slurmstepd", DAEMON, stdout=subprocess.PIPE))
    with (tmp_path / "slurm-4711.out").open("w") as file:
        srun = named("srun", "import time\ntime.sleep(600)", stdout=file, stderr=file)
    until_called(srun.pid, "srun")
    found = look(task, InAJob())
    assert found.path == str(tmp_path / "slurm-4711.out")
    assert "srun" in found.note
    assert look(task, InAJob(srun.pid)).path is None  # another job's


def test_without_an_srun_here_the_way_to_the_file_is_named(named: Callable[..., subprocess.Popen[str]]) -> None:
    found = look(task_of(named("slurmstepd", DAEMON, stdout=subprocess.PIPE)), InAJob())
    assert found.path is None
    assert "`scontrol show job 4711`" in found.note
    assert "srun --output=FILE" in found.note


def test_a_batch_scripts_file_is_a_file_like_any(tmp_path: Path) -> None:
    with (tmp_path / "slurm-4711.out").open("w") as file:
        task = subprocess.Popen(["sleep", "600"], stdout=file, stderr=file)
    try:
        assert look(task.pid, InAJob()).path == str(tmp_path / "slurm-4711.out")
    finally:
        task.kill()
        task.wait()


def until_called(pid: int, name: str) -> None:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/comm").read_text().strip() != name:
        assert time.monotonic() < deadline
        time.sleep(0.01)
