"""`tuimon doctor`: the checks, on real hosts and on what a probe may have seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tuimon.config import Settings
from tuimon.diagnose import checkup
from tuimon.diagnose.checkup import Check, Seen
from tuimon.headless import doctor
from tuimon.hosts.host import Completed
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import Gpu, Health, Process, Sample, ServerFound
from tuimon.probe.send import ProbeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema" / "doctor.json").read_text())
SERVER = ServerFound(pid=1, port=30000, log="/l")


def examined(capsys: pytest.CaptureFixture[str], spec: str, *, clean: bool = False) -> tuple[int, dict[str, Any]]:
    status = doctor.run(spec, Settings(), as_json=True, clean=clean)
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert [check["id"] for check in document["checks"]] == list(checkup.IDS)
    return status, {check["id"]: check for check in document["checks"]}


def test_a_launch_with_everything_to_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    status, checks = examined(capsys, "demo:healthy")
    assert status == 0
    assert {name for name, check in checks.items() if check["state"] == "ok"} >= {
        "ssh", "python", "nvml", "proc", "pyspy", "ptrace", "log",
    }  # fmt: skip
    assert checks["nvml"]["found"].startswith("8 × ")


def test_a_host_that_cannot_be_reached(capsys: pytest.CaptureFixture[str]) -> None:
    status, checks = examined(capsys, "127.0.0.1:1")
    assert status == 6
    assert checks["ssh"]["state"] == "missing"
    assert "sshd" in checks["ssh"]["fix"]


async def test_what_is_cached_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cache = tmp_path / ".cache" / "tuimon"
    cache.mkdir(parents=True)
    (cache / "py-spy-0.4.1-abc").touch()
    (cache / "mine").touch()
    assert await checkup.clean(LocalHost()) == (str(cache / "py-spy-0.4.1-abc"),)
    assert [path.name for path in cache.iterdir()] == ["mine"]
    (cache / "mine").unlink()
    assert await checkup.clean(LocalHost()) == ()
    assert not cache.exists()


class NoPython(LocalHost):
    """This machine without an interpreter."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        return Completed(127, b"", b"sh: 1: python3: not found\n")


async def test_a_host_without_python_says_what_that_costs() -> None:
    checks = await checkup.look(NoPython(), ProbeOptions())
    assert [check.state for check in checks] == ["ok", "missing"] + ["unknown"] * 7
    assert doctor.exit_code(checks) == 1


def test_what_a_probe_saw_in_words() -> None:
    rows = (Process(pid=1, ppid=0, state="S", read_bytes=None), Process(pid=2, ppid=1, state="Z"))
    limited = checkup.proc(Seen(server=SERVER, sample=Sample(mono=1.0, processes=rows)))
    assert limited.state == "limited"
    assert "of 1 the I/O counters cannot be read" in limited.found
    gpus = (Gpu(index=0, name="H200"), Gpu(index=1, name="H200", error="GPU is lost"))
    assert checkup.nvml(Seen(sample=Sample(mono=1.0, gpus=gpus))).found == "2 × H200; GPU 1: GPU is lost"
    assert checkup.nvml(Seen(sample=Sample(mono=1.0, gpus=()))).state == "missing"
    assert checkup.nvml(Seen(sample=Sample(mono=1.0, gpu_note="driver mismatch"))).found == "driver mismatch"
    assert checkup.health(Seen(server=SERVER, health=Health(address="h:1", path="/x", status=401))).state == "limited"
    assert checkup.health(Seen(server=SERVER, health=Health(address="h:1", path="/x", status=200))).state == "ok"
    assert checkup.health(Seen()).state == "unknown"


def test_words_for_a_reader_hold_nothing_of_the_hosts_that_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.say_all("gpu-17", [Check("log", "missing", "\x1b[2Jgone", "give \x07 --log")], ("/a\x1b[1m",), clean=True)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "→ give · --log" in out


@pytest.mark.parametrize("module", ["asyncssh", "textual"])
def test_the_command_line_alone_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, tuimon.cli, tuimon.headless.doctor; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
