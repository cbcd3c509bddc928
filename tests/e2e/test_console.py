"""How a command ends: whatever the shell gave it as streams, one sentence at most and the exit code of the docs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TUIMON = f"{sys.executable} -m tuimon"
DEAD = "check 127.0.0.1:1 --for 2s"


def shell(state: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; t='{TUIMON}'; {script}"], cwd=state, text=True, capture_output=True,
        env={**os.environ, "TUIMON_STATE_DIR": str(state), "PYTHONUNBUFFERED": ""}, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A recording of a host that nobody reached."""
    shell(tmp_path, "$t wait 127.0.0.1:1 --timeout 2s")
    [path] = (tmp_path / "recordings").iterdir()
    return str(path)


@pytest.mark.parametrize("flags", ["", " --json"])
@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "| true"])
def test_a_stream_that_is_closed_takes_nothing_from_the_exit_code(tmp_path: Path, flags: str, streams: str) -> None:
    done = shell(tmp_path, f"$t {DEAD}{flags} {streams}")
    assert (done.returncode, done.stderr) == (6, "")


@pytest.mark.parametrize(
    "command", [DEAD, f"{DEAD} --json", "history", "history --json", "config show", "demo --list", "timeline /dev/null"]
)
def test_an_answer_that_cannot_be_written_is_a_problem_in_one_sentence(tmp_path: Path, command: str) -> None:
    done = shell(tmp_path, f"$t {command} > /dev/full")
    assert (done.returncode, done.stderr) == (1, "tuimon: The answer cannot be written: No space left on device\n")


@pytest.mark.parametrize("form", ["--json", "--csv", "--report"])
def test_an_export_whose_reader_has_enough_is_fine(tmp_path: Path, recording: str, form: str) -> None:
    done = shell(tmp_path, f"$t export {recording} {form} | head -1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    full = shell(tmp_path, f"$t export {recording} {form} > /dev/full")
    assert (full.returncode, full.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("command", ["localhost", "watch a b", "demo", "replay {recording}", "replay - < {recording}"])
def test_the_screen_says_that_it_needs_a_terminal(tmp_path: Path, recording: str, command: str) -> None:
    done = shell(tmp_path, f"$t {command.format(recording=recording)}" + ("" if "<" in command else " </dev/null"))
    assert done.returncode == 2
    assert done.stderr.startswith("tuimon: The screen needs a terminal, and standard ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("replay - <&-", "standard input is no recording"),
        ("export - <&-", "standard input is no recording"),
        ("export /dev/zero", "zero is no recording"),
        ("export <(true)", "is no recording"),
        ("export .", "cannot be read as a recording"),
        ("check localhost --for 99999999999999999h", "is longer than a year"),
        ("wait localhost --timeout 1e3", "is not a duration"),
        ("check ''", "No host was named"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, command: str, said: str) -> None:
    done = shell(tmp_path, f"$t {command}")
    assert done.returncode == 2, done
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_comes_through_a_pipe_of_the_shell(tmp_path: Path, recording: str) -> None:
    plain = shell(tmp_path, f"$t export {recording} --json")
    assert shell(tmp_path, f"$t export <(cat {recording}) --json").stdout == plain.stdout != ""


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 64}.example", "hôte-démo-日本"])
def test_a_name_that_no_name_server_takes_is_said_to_be_one(tmp_path: Path, host: str) -> None:
    done = shell(tmp_path, f"$t check '{host}' --for 8s")
    assert done.returncode == 6
    assert done.stdout.startswith(f"{host}: unreachable: The name {host} cannot be resolved")
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "Interrupted"), (signal.SIGTERM, "Terminated")])
def test_a_signal_ends_a_wait_in_order(tmp_path: Path, number: signal.Signals, said: str) -> None:
    """The demo's processes are gone, and the recording is whole."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tuimon", "wait", "demo:healthy", "--json"], text=True,
        env={**os.environ, "TUIMON_STATE_DIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("recordings/*sglang*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (128 + number, "")
    assert err.rstrip().endswith(f"tuimon: {said}")
    assert "Traceback" not in err
    [path] = tmp_path.glob("recordings/*")
    assert shell(tmp_path, f"$t export {path} --json").stderr == ""
