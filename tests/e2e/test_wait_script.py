"""The shell script of docs/SCRIPTS.md, as it stands there, for another host and without its launch command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "SCRIPTS.md"
pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="the script of the docs uses jq")


def script(host: str, timeout: str) -> str:
    """The script; each replacement must hit."""
    found = re.search(r"```sh\n(#!/bin/sh\n.*?)```", DOCS.read_text(), re.DOTALL)
    assert found is not None
    text = found[1]
    changes = (
        (r"host=gpu-17", f"host={host}"),
        (r"ssh \"\$host\" .*", ":"),
        (r"--timeout 30m", f"--timeout {timeout}"),
    )
    for old, new in changes:
        text, hits = re.subn(old, new, text)
        assert hits == 1, old
    return text


def run(folder: Path, host: str, timeout: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script(host, timeout)], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": path, "TUIMON_STATE_DIR": str(folder / "state")},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("host", "timeout", "code", "said"),
    [
        ("127.0.0.1:1", "5s", 1, "no way to 127.0.0.1:1: 127.0.0.1:1 (port 1) refuses the connection"),
        ("demo:healthy@0.05", "60s", 0, "ready after "),
        ("demo:slow-compile@0.2", "4s", 1, "not ready in 30 minutes, last seen: starting"),
    ],
)
def test_it_tells_what_became_of_the_launch(tmp_path: Path, host: str, timeout: str, code: int, said: str) -> None:
    done = run(tmp_path, host, timeout)
    assert said in done.stdout, done
    assert done.returncode == code


@pytest.mark.slow
def test_it_keeps_the_stacks_of_a_stall(tmp_path: Path) -> None:
    done = run(tmp_path, "demo:silent-stall@0.2", "90s")
    assert "dead: host deadlock, suspects:\n  TP3: " in done.stdout
    assert done.returncode == 1
    assert sorted(path.suffix for path in tmp_path.glob("stacks-*")) == [".json", ".txt"]
