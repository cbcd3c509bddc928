"""A fresh machine: the README's first command in an empty home, then what it installed, without its source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.launched import below, wait_for_end
from tests.e2e.tmux import pane

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env", "-C", "/")
BARE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "", "VIRTUAL_ENV": ""}


def first_command() -> str:
    """What the README tells to type on a fresh machine."""
    found = re.search(r"<!-- demo -->\n```\n(.+)\n```", (ROOT / "README.md").read_text())
    assert found
    return found[1]


@pytest.fixture(scope="module")
def venv() -> Iterator[Path]:
    """The environment that the first command made, after it has shown the demo; its source is gone."""
    # Not below pytest's folders, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="tuimon-fresh-"))
    folder.chmod(0o755)
    (folder / "home").mkdir()
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder / "tuimon", filter="data")
    try:
        with pane(
            ["env", "-C", str(folder / "tuimon"), "sh", "-c", first_command()], (120, 40),
            **BARE, HOME=str(folder / "home"), TUIMON_STATE_DIR=str(folder / "state"),
        ) as screen:  # fmt: skip
            text = screen.wait("weights", 300)
            assert "demo:silent-stall" in text
            pids = below(screen.pid)
            screen.press("q")
            wait_for_end(pids, 6)
        (folder / "tuimon" / ".venv").rename(folder / "tuimon" / "kept")
        for path in (folder / "tuimon").iterdir():
            if path.name != "kept":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / "tuimon" / "kept").rename(folder / "tuimon" / ".venv")
        yield folder / "tuimon" / ".venv"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_first_command_shows_the_demo_and_installs_all_it_needs(venv: Path) -> None:
    (package,) = venv.glob("lib/python3*/site-packages/tuimon")
    for pattern in ("themes/*.toml", "demo/readings.toml", "demo/program/*.py", "engines/*.toml", "ui/*.tcss"):
        assert list(package.glob(pattern)), pattern
    assert not list(package.rglob("*.pyc.*"))


def test_what_was_installed_judges_the_demo_without_its_source(venv: Path) -> None:
    done = subprocess.run(
        [venv / "bin" / "tuimon", "check", "demo:silent-stall@0.02", "--for", "60s", "--json"],
        cwd="/", env={**BARE, "HOME": str(venv.parents[1] / "home")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 3}, done.stderr
    assert '"engine": "SGLang"' in done.stdout


def test_an_ordinary_user_sees_the_stall_and_the_stacks(venv: Path) -> None:
    home = venv.parents[1] / "ordinary"
    home.mkdir()
    try:
        os.chown(home, NOBODY, NOBODY)
        subprocess.run([*AS_NOBODY, venv / "bin" / "tuimon", "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot run as another user here: {error}")
    env = {**BARE, "HOME": str(home), "USER": "nobody"}
    with pane([*AS_NOBODY, str(venv / "bin" / "tuimon"), "demo"], (120, 40), **env) as screen:
        text = screen.wait("SILENT STALL", 75)
        assert time.monotonic() - screen.began < 31.5 + 30
        assert "draft model load: expected (speculative_algorithm=EAGLE3), not seen" in text
        screen.press("s")
        text = screen.wait("2 groups", 15)
        assert re.search(r"TP3 .*the odd one out", text)
        assert "DefaultModelLoader.load_weights" in text
        pids = below(screen.pid)
        screen.press("Escape")
        screen.wait("Signs of life", 5)  # Esc and q at once are Alt+q
        screen.press("q")
        wait_for_end(pids, 6)
