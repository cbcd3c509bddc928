"""The screen over a real sshd that dies and comes back, and over a log that is no text."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.launched import below
from tests.e2e.tmux import TUIMON, Pane, pane
from tests.ssh.conftest import Sshd, start_sshd

HOSTILE = (
    b"\x1b[2J\x1b[H\x1b]2;title of the log\x07\x1b[?1049l\x1b[?1003hescapes\n",
    bytes(range(256)) * 4 + b"\n",
    b"\0" * 5000 + b"behind NULs\n",
    "wide 漢字 \u202e right to left \u200b end\n".encode(),
    b"[bold red]markup[/] [@click=app.quit]click[/]\n",
    b"x" * 10_000_000 + b"\n",
    b"the last line\n",
)


class Watched(Struct):
    """A process that is watched as if it were a server, over an sshd of our own."""

    pane: Pane
    sshd: Sshd
    log: Path

    def writes(self, text: bytes) -> None:
        """The log grows."""
        with self.log.open("ab") as file:
            file.write(text)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    sshd = start_sshd(tmp_path)
    sshd.trust()
    log = tmp_path / "server.log"
    log.write_bytes(b"the first line\n")
    with subprocess.Popen(["sleep", "600"]) as server:
        argv = [*TUIMON, sshd.name, "--log", str(log), "--pid", str(server.pid)]
        env = {"HOME": str(sshd.home), "SSH_AUTH_SOCK": "", "TUIMON_STATE_DIR": str(tmp_path / "state")}
        with pane(argv, (120, 40), **env) as screen:
            screen.wait(lambda text: "the first line" in text and f"sleep {server.pid}" in text, 20)
            yield Watched(screen, sshd, log)
        server.kill()
    kill(sshd)


def kill(sshd: Sshd) -> None:
    """The daemon and what it serves, at once."""
    children = sshd.children()
    sshd.close()
    for pid in {deeper for child in children for deeper in below(child)}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_a_killed_sshd_is_said_nothing_is_judged_meanwhile_and_the_log_goes_on_at_its_byte(watched: Watched) -> None:
    kill(watched.sshd)
    lost = time.monotonic()
    text = watched.pane.wait("UNREACHABLE", 5)
    assert "link ✖" in text
    assert "next try in" in text
    watched.writes(b"written meanwhile\n")
    while time.monotonic() - lost < 8:
        assert "STALL" not in watched.pane.text()
        assert "QUIET" not in watched.pane.text()
        time.sleep(0.2)
    assert "next try in" in watched.pane.text()
    watched.sshd.start()
    watched.sshd.wait_until_up()
    text = watched.pane.wait("written meanwhile", 20)
    assert text.count("the first line") == 1
    watched.pane.wait(lambda text: "link ●" in text and "data ●" in text, 10)


def test_a_log_that_is_no_text_harms_neither_the_app_nor_the_terminal(watched: Watched) -> None:
    for piece in HOSTILE:
        watched.writes(piece)
    text = watched.pane.wait("the last line", 20)
    for words in ("escapes", "behind NULs", "wide 漢字", "[bold red]markup[/] [@click=app.quit]click[/]", "link ●"):
        assert words in text
    assert text.startswith(f" {watched.sshd.name} ")
    assert "title of the log" not in text + watched.pane.title
    watched.pane.resize(20, 5)
    watched.pane.wait(lambda text: len(text.splitlines()) <= 5 and "STARTING" in text, 5)
    watched.pane.resize(120, 40)
    watched.pane.wait("Signs of life", 5)
    assert not watched.pane.ended
