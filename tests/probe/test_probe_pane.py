"""A server in a tmux pane: its output is captured from the pane, nothing comes twice, tmux is only looked at."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.probe.test_probe_stream import RunningStream
from tuimon.launch.events import ServerFound
from tuimon.probe.program.pane import KNOWN, Pane, digest, place

NOBODY = 65534
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


class Terminal:
    """A tmux server of this test's own, with one pane in which a shell reads a FIFO and runs what comes."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "tmux"
        self.folder = folder
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "20", "exec env PS1= sh")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.pane = self.tmux("display-message", "-p", "#{pane_id}")
        self.tty = self.tmux("display-message", "-p", "#{pane_tty}")
        self.name = f"tmux:{self.pane}:{self.tty}:{self.socket}"

    def tmux(self, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), *words], capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout.strip()

    def prints(self, text: str) -> None:
        """Write to the pane's terminal, as a program in it does."""
        with open(self.tty, "w") as terminal:
            terminal.write(text)

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


@pytest.fixture
def stream() -> Iterator[Callable[..., RunningStream]]:
    running: list[RunningStream] = []

    def start(name: str, offset: int = -1, mark: str | None = None) -> RunningStream:
        running.append(RunningStream(name, offset, mark, os.environ["PATH"]))
        return running[-1]

    yield start
    for started in running:
        started.close()


def said(stream: RunningStream, last: bytes) -> tuple[bytes, str]:
    """The text up to `last`, and the mark behind it."""
    content, mark = b"", ""
    while not content.endswith(last):
        header, piece = stream.frame()
        assert header["kind"] == "text", header
        content, mark = content + piece, header["mark"]
    return content, mark


def test_what_a_pane_shows_is_told_once_and_goes_on_after_a_loss(
    terminal: Terminal, stream: Callable[..., RunningStream]
) -> None:
    lines = [f"[2026-11-30 15:46:{number:02}] line {number}" for number in range(50)]
    terminal.prints("".join(f"{line}\n" for line in lines[:30]))
    following = stream(terminal.name)
    content, mark = said(following, b"line 29\n")
    assert content.decode().splitlines()[-30:] == lines[:30]  # also what the pane no longer shows
    terminal.prints("".join(f"{line}\n" for line in lines[30:40]))
    content, mark = said(following, b"line 39\n")
    assert content.decode().splitlines() == lines[30:40]
    terminal.prints("".join(f"{line}\n" for line in lines[40:]))
    again, _ = said(stream(terminal.name, 0, mark), b"line 49\n")
    assert again.decode().replace("\r", "").splitlines() == lines[40:]


def test_what_a_pane_showed_before_we_came_tells_its_age(
    terminal: Terminal, stream: Callable[..., RunningStream]
) -> None:
    terminal.prints("line 0\n")
    while time.time() - int(terminal.tmux("display-message", "-p", "#{window_activity}")) < 2:
        time.sleep(0.05)  # tmux counts whole seconds, by its own clock
    following = stream(terminal.name)
    header, _ = following.frame()
    assert 1.0 <= header["age"] <= 10.0
    terminal.prints("line 1\n")
    header, _ = following.frame()
    assert "age" not in header


def test_a_bar_is_redrawn_and_a_line_longer_than_the_pane_is_one(
    terminal: Terminal, stream: Callable[..., RunningStream]
) -> None:
    terminal.prints("before\nLoading  10%")
    following = stream(terminal.name)
    content, _ = said(following, b"Loading  10%")
    terminal.prints("\rLoading  60%")
    content, _ = said(following, b"Loading  60%")
    assert content == b"\rLoading  60%"
    terminal.prints("\rLoading 100%\n" + "x" * 200 + "\n")
    content, _ = said(following, b"x\n")
    assert content == b"\rLoading 100%\n" + b"x" * 200 + b"\n"


def test_a_cleared_pane_is_a_gap_and_nothing_comes_twice(
    terminal: Terminal, stream: Callable[..., RunningStream]
) -> None:
    terminal.prints("".join(f"line {number}\n" for number in range(10)))
    following = stream(terminal.name)
    said(following, b"line 9\n")
    terminal.tmux("set-option", "-w", "scroll-on-clear", "off")  # else it scrolls into the history, and nothing is lost
    terminal.prints("\x1b[2J\x1b[Hline 10\nline 11\n")
    header, _ = following.frame()
    assert header["kind"] == "skipped"
    terminal.prints("line 12\n")
    content, _ = said(following, b"line 12\n")
    assert content.replace(b"\r", b"") == b"line 12\n"


def test_a_pane_that_is_gone_or_another_says_so(terminal: Terminal, stream: Callable[..., RunningStream]) -> None:
    other = stream(terminal.name.replace(terminal.tty, "/dev/pts/99999"))
    assert "is another terminal by now" in other.word("missing")["reason"]
    assert "tmux: " in stream(f"tmux:%77:{terminal.tty}:{terminal.socket}").word("missing")["reason"]
    assert "tmux: " in stream(f"tmux:%1:/dev/pts/1:{terminal.folder}/nobody").word("missing")["reason"]


@pytest.mark.parametrize("name", ["%1", "1:/dev/pts/1:/s", "%1:/dev/pts/1:s", "%1;x:/dev/pts/1:/s", "-t:/dev/x:/s"])
def test_what_is_no_pane_is_never_run(name: str) -> None:
    with pytest.raises(SystemExit):
        Pane(name)


@pytest.fixture
def theirs(terminal: Terminal) -> Iterator[Path]:
    """A folder of somebody else's."""
    if os.geteuid() != 0:
        pytest.skip("only root can be trapped so, and only root can make somebody else's terminal")
    folder = Path(tempfile.mkdtemp(prefix="tuimon-theirs-", dir="/tmp"))  # tmp_path is closed to others
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("way", ["theirs", "link", "their folder"])
def test_root_never_connects_to_a_socket_that_somebody_else_could_have_put_there(
    terminal: Terminal, theirs: Path, way: str
) -> None:
    """A tmux client runs what its server tells it to: with MSG_SHELL, any program."""
    path = theirs / "tmux"
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(path))
        trap.listen()
        trap.settimeout(0)
        if way != "their folder":
            os.chown(path, NOBODY, NOBODY)
        if way == "link":
            (theirs / "link").symlink_to(path)
            path = theirs / "link"
        with pytest.raises(ValueError, match="is not certain"):
            Pane(f"{terminal.pane}:{terminal.tty}:{path}").news(None)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_the_pane_of_another_user_is_read_with_that_users_rights_and_no_others(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux = shutil.which("tmux")
    start = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", str(tmux), "-S", f"{theirs}/tmux"]
    session = ["-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_id}:#{pane_tty}", "echo said; exec sleep 60"]
    name = subprocess.run([*start, *session], capture_output=True, text=True, check=True, cwd="/").stdout.strip()
    program = theirs / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n(id -u; id -G) > {theirs}/who\nexec {tmux} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    try:
        pane = Pane(f"{name}:{theirs}/tmux")
        deadline = time.monotonic() + 10
        while pane.capture(10)[0] != [b"said"] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert pane.capture(10)[0] == [b"said"]
        assert (theirs / "who").read_text().split() == [str(NOBODY), str(NOBODY)]
    finally:
        subprocess.run([*start, "kill-server"], check=True)


def test_the_place_is_found_from_the_end() -> None:
    lines = [b"%d" % (number // 2) for number in range(200)]
    assert place(lines, digest(lines[100:150])) == 150
    assert place(lines, digest([b"x"])) is None
    assert place(lines, None) == place(lines, "@1700000000.0") == 0
    assert place([b"a"] * 100, digest([b"a"] * KNOWN)) == 100


SERVER = "import time; print('The server is fired up and ready to roll!', flush=True); time.sleep(600)"


def test_a_server_in_a_pane_is_found_and_what_the_pane_shows_is_its_log(
    probe: Callable[..., Any], terminal: Terminal, stream: Callable[..., RunningStream], tmp_path: Path
) -> None:
    module = tmp_path / "lib" / "sglang" / "launch_server.py"
    module.parent.mkdir(parents=True)
    module.write_text(SERVER)
    command = f"PYTHONPATH={tmp_path}/lib exec {sys.executable} -m sglang.launch_server --port 1"
    terminal.tmux("send-keys", "-t", terminal.pane, command, "Enter")
    pid = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
    found = probe(pid=pid, within=None).until(ServerFound, lambda found: found.engine == "sglang")
    assert found.log == terminal.name
    assert found.log_note.startswith(f"what tmux pane {terminal.pane} shows")
    content, _ = said(stream(found.log), b"ready to roll!\n")
    assert content.count(b"ready to roll!\n") == 1
    modes = terminal.tmux("list-panes", "-F", "#{pane_in_mode} #{pane_pipe} #{pane_dead}")
    assert modes == "0 0 0"  # nothing was typed, piped or entered


def test_a_process_title_leaves_the_pane_to_be_told_by_whoever_started_it(
    probe: Callable[..., Any], terminal: Terminal, launch: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", f"{terminal.socket},1,0")
    monkeypatch.setenv("TMUX_PANE", "%\x1b[2J")  # what a liar puts there is no pane
    with open(terminal.tty, "w") as tty:
        started = launch(SERVER, module="sglang.launch_server", stdout=tty, stderr=tty)
        found = probe(pid=started.pid).until(ServerFound)
    assert found.log is None
    assert found.log_note.startswith("its output goes to a terminal")
