"""`tuimon wait` as scripts call it: an exit code, one JSON document, stacks on disk, a row in the history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import Struct

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
SERVER = """
import sys, time
print("INFO 03-04 10:15:33 [api_server.py:1] vLLM API server version 0.11.0", flush=True)
for step in range(int(sys.argv[1])):
    time.sleep(1)
    print("INFO 03-04 10:15:34 [loader.py:1] step", step, flush=True)
if sys.argv[2] == "crash":
    raise RuntimeError("Engine core initialization failed. See root cause above.")
print("INFO 03-04 10:15:43 [launcher.py:99] Shutting down FastAPI HTTP server.", flush=True)
"""


class Done(Struct):
    """A `tuimon wait` that ended."""

    code: int
    document: dict[str, Any]
    said: str


class Waits:
    """Waits that run at the same time."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._servers: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "tuimon", "wait", *arguments, "--json"]
        self._running[name] = subprocess.Popen(
            command, env={**os.environ, "TUIMON_STATE_DIR": str(self.state)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def server(self, seconds: int, end: str) -> str:
        """A server of its own kind on this machine; its pid."""
        log = (self.state / f"server-{len(self._servers)}.log").open("wb")
        command = [sys.executable, "-c", SERVER, str(seconds), end, "vllm", "serve"]
        with log:
            self._servers.append(subprocess.Popen(command, stdout=log, stderr=log))
        return str(self._servers[-1].pid)

    def done(self, name: str) -> Done:
        process = self._running[name]
        out, err = process.communicate(timeout=120)
        return Done(process.returncode, json.loads(out), err)

    def close(self) -> None:
        running: list[subprocess.Popen[str] | subprocess.Popen[bytes]] = [*self._running.values(), *self._servers]
        for process in running:
            process.kill()
            process.wait()


@pytest.fixture
def waits(tmp_path: Path) -> Iterator[Waits]:
    """All at once: a stall takes half a minute to be one."""
    waits = Waits(tmp_path)
    waits.start("stall", "demo:silent-stall@0.2", "--timeout", "90s")
    waits.start("killed", "demo:rank-killed@0.2", "--on-stall", "report", "--timeout", "25s")
    waits.start("ready", "demo:healthy@0.2", "--timeout", "60s")
    waits.start("serving", "demo:healthy@0.2", "--until", "serving", "--timeout", "60s")
    waits.start("dead", "127.0.0.1:1", "--timeout", "8s")
    waits.start("nobody", "localhost", "--pid", "4194304", "--timeout", "8s")
    waits.start("crash", "localhost", "--pid", waits.server(14, "crash"), "--until", "exit", "--timeout", "60s")
    waits.start("end", "localhost", "--pid", waits.server(14, "end"), "--until", "exit", "--timeout", "60s")
    yield waits
    waits.close()


ENDS = {
    "ready": (0, "ready"), "serving": (0, "serving"), "end": (0, "exited"), "stall": (3, "stalled"),
    "crash": (4, "crashed"), "killed": (5, "timed_out"), "nobody": (5, "timed_out"), "dead": (6, "unreachable"),
}  # fmt: skip
REMEMBERED = [
    ("demo:healthy@0.2", "ready"), ("demo:healthy@0.2", "ready"), ("demo:rank-killed@0.2", "stalled"),
    ("demo:silent-stall@0.2", "stalled"), ("localhost", "crashed"), ("localhost", "finished"),
]  # fmt: skip


def test_each_end_has_its_code_and_all_launches_are_remembered(waits: Waits) -> None:
    """One test: workers that share it out would each start all of them, and look at rows that are still to come."""
    done = {name: waits.done(name) for name in ENDS}
    assert {name: (one.code, one.document["outcome"]) for name, one in done.items()} == ENDS, done
    for one in done.values():
        jsonschema.validate(one.document, json.loads((SCHEMAS / "wait.json").read_text()))
        assert "\x1b" not in one.said
    for name in ("stall", "killed"):
        text, document, *_ = map(Path, done[name].document["saved"])
        assert str(text) in done[name].said
        assert "ODD ONE OUT" in text.read_text() or name == "killed"
        assert json.loads(document.read_text())["schema"] == "tuimon.stacks/1"
    history = remembered(waits.state)
    assert sorted((launch["host"], launch["outcome"]) for launch in history) == REMEMBERED
    healthy = next(launch for launch in history if launch["outcome"] == "ready")
    assert healthy["ready_s"] > 3
    assert {"weights", "CUDA graphs"} <= {phase["name"] for phase in healthy["phases"]}


def remembered(state: Path) -> list[dict[str, Any]]:
    """The launches of `tuimon history`."""
    done = subprocess.run(
        [sys.executable, "-m", "tuimon", "history", "--json"],
        env={**os.environ, "TUIMON_STATE_DIR": str(state)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "history.json").read_text()))
    launches: list[dict[str, Any]] = document["launches"]
    return launches


def test_what_cannot_be_written_is_said_once_and_disturbs_nothing(tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("in the way")
    (tmp_path / "history.sqlite").mkdir()
    command = [sys.executable, "-m", "tuimon", "wait", "demo:healthy", "--timeout", "6s"]
    done = subprocess.run(
        command, env={**os.environ, "TUIMON_STATE_DIR": str(tmp_path)}, text=True, capture_output=True, check=False
    )
    assert done.returncode == 5
    assert done.stderr.count("This watch is not being recorded: ") == 1
    assert done.stderr.count("history.sqlite cannot be used: ") == 1
    assert done.stdout.startswith("demo:healthy: starting")


def test_a_corrupted_history_is_moved_aside_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").write_bytes(b"no database" * 1000)
    command = [sys.executable, "-m", "tuimon", "wait", "demo:healthy", "--timeout", "6s"]
    done = subprocess.run(
        command, env={**os.environ, "TUIMON_STATE_DIR": str(tmp_path)}, text=True, capture_output=True, check=False
    )
    assert done.stderr.count("The history was corrupted; it was moved to ") == 1
    assert [launch["outcome"] for launch in remembered(tmp_path)] == ["unfinished"]
