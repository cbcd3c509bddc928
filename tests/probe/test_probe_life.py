from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuimon.launch.events import Finding, Sample
from tuimon.probe import send

STANDIN = (Path(__file__).parent / "standin_pynvml.py").read_bytes()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pids: list[int], within: float = 3.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not [pid for pid in pids if running(pid)]:
            return True
        time.sleep(0.02)
    return False


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_ends_with_its_stdin(probe: Callable[..., Any]) -> None:
    running_probe = probe(nvml=STANDIN)
    running_probe.until(Sample, lambda sample: bool(sample.gpus))
    child = children(running_probe.pid)
    assert len(child) == 1
    assert running_probe.end() == 0
    assert gone(child)


def test_ends_with_its_stdin_while_nvml_hangs(probe: Callable[..., Any]) -> None:
    running_probe = probe(nvml=STANDIN + b"\nHANG_AT = 3\n")
    running_probe.until(Sample, lambda sample: "answers late" in (sample.gpu_note or ""))
    child = children(running_probe.pid)
    began = time.monotonic()
    assert running_probe.end() == 0
    assert time.monotonic() - began < 2.0
    assert gone(child)


def test_ends_with_its_stdin_while_nobody_reads_its_stdout() -> None:
    read, write = os.pipe()
    program = subprocess.Popen(send.command(sys.executable), stdin=subprocess.PIPE, stdout=write)
    os.close(write)
    assert program.stdin is not None
    program.stdin.write(send.payload(send.ProbeOptions(interval=0.1), STANDIN))
    program.stdin.flush()
    end = time.monotonic() + 30
    blocked = False
    while not blocked and time.monotonic() < end:  # until it sits in write(2) on the full pipe
        time.sleep(0.1)
        tasks = Path(f"/proc/{program.pid}/task").iterdir()
        blocked = any("pipe_write" in (task / "wchan").read_text() for task in tasks)
    assert blocked
    child = children(program.pid)
    program.stdin.close()
    assert program.wait(3) == 0
    assert gone(child)
    os.close(read)


def test_ends_when_its_stdin_ends_in_the_middle_of_the_payload() -> None:
    payload = send.payload(send.ProbeOptions(), STANDIN)
    for length in (0, 3, 500, len(payload) - 10):
        program = subprocess.run(
            send.command(sys.executable), input=payload[:length], capture_output=True, timeout=10, check=False
        )
        assert program.stdout == b""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_takes_its_child_along_when_it_is_killed(probe: Callable[..., Any], number: int) -> None:
    running_probe = probe(nvml=STANDIN + b"\nHANG_AT = 0\n")
    running_probe.until(Sample, lambda sample: "answers late" in (sample.gpu_note or ""))
    child = children(running_probe.pid)
    os.kill(running_probe.pid, number)
    running_probe.program.wait(5)
    assert gone(child)


def test_ends_on_sighup_where_its_parent_ignored_it(probe: Callable[..., Any]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running_probe = probe()
    finally:
        signal.signal(signal.SIGHUP, before)
    running_probe.until(Sample)
    os.kill(running_probe.pid, signal.SIGHUP)
    assert running_probe.program.wait(5) == -signal.SIGHUP


def test_runs_under_any_python(probe: Callable[..., Any], any_python: str) -> None:
    running_probe = probe(python=any_python, nvml=STANDIN)
    sample = running_probe.until(Sample, lambda sample: bool(sample.gpus))
    assert len(sample.gpus) == 8
    assert not [event for event in running_probe.events if isinstance(event, Finding)]
    assert running_probe.end() == 0


def test_runs_under_any_python_with_the_real_pynvml(any_python: str) -> None:
    program = subprocess.Popen(send.command(any_python), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(send.payload(send.ProbeOptions(interval=0.2)))
    program.stdin.flush()
    for line in program.stdout:
        assert b"nvml_crashed" not in line
        if b'"gpu_note":"NVML is starting"' not in line and b'"Sample"' in line:
            break
    program.stdin.close()
    assert program.wait(5) == 0
    program.stdout.close()


def test_ignores_requests_that_it_does_not_know(probe: Callable[..., Any]) -> None:
    running_probe = probe()
    running_probe.write(b'{"do":"dance"}\nnot json\n[1]\n\xff\xfe\n{"do":"port","port":"x"}\n' + b"x" * 200_000 + b"\n")
    running_probe.until(Sample)
    mark = len(running_probe.events)
    running_probe.until(Sample)
    running_probe.until(Sample)
    assert not [event for event in running_probe.events[mark:] if isinstance(event, Finding)]


def test_says_what_it_costs(probe: Callable[..., Any]) -> None:
    sample = probe(nvml=STANDIN).until(Sample, lambda sample: sample.cost is not None and sample.cost.pss is not None)
    assert sample.cost.pss < 30 << 20
    assert 0 < sample.cost.cpu < 5
    assert 0 < sample.cost.sample < 1


def test_writes_no_file(probe: Callable[..., Any], tmp_path: Path) -> None:
    running_probe = probe(wrapper=("env", "-C", str(tmp_path), f"HOME={tmp_path}", f"TMPDIR={tmp_path}"))
    running_probe.until(Sample)
    running_probe.end()
    assert list(tmp_path.iterdir()) == []


def test_ends_by_itself_when_it_is_told_nothing_any_more(probe: Callable[..., Any]) -> None:
    running_probe = probe(nvml=STANDIN, patience=1.0)
    running_probe.until(Sample, lambda sample: bool(sample.gpus))
    child = children(running_probe.pid)
    for _beat in range(4):
        time.sleep(0.5)
        running_probe.write(b"\n")
    assert running_probe.program.poll() is None
    assert running_probe.program.wait(5) == 75
    assert gone(child)


def test_a_tail_ends_by_itself_too_also_while_nobody_takes_its_text(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"x" * 1_000_000)
    program = subprocess.Popen(send.tail_command(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(send.tail_payload(str(log), 0, patience=1.0))
    program.stdin.flush()
    assert program.wait(5) == 75
    program.stdin.close()
    program.stdout.close()
