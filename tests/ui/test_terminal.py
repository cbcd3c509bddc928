"""On a real pty: a terminal that stops reading, is resized, or vanishes, and signals."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "on_pty.py"


class Terminal:
    """A terminal that reads only when told to."""

    def __init__(self, beats: Path, program: Path = PROGRAM) -> None:
        self.beats = beats
        self.fd, slave = pty.openpty()
        self.resize(120, 40, slave)
        env = {**os.environ, "TERM": "xterm-256color", "TZ": "UTC"}
        self.child = subprocess.Popen(
            [sys.executable, str(program), str(beats)],
            stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def resize(self, width: int, height: int, fd: int | None = None) -> None:
        fcntl.ioctl(self.fd if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, until: str, seconds: float = 20.0) -> bool:
        """Read until these words come."""
        seen = b""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    seen += os.read(self.fd, 1 << 16)
                except OSError:
                    return False
                if until.encode() in seen:
                    return True
        return False

    def rest(self, seconds: float) -> str:
        """All that it writes until its end."""
        seen = b""
        with contextlib.suppress(OSError):
            while select.select([self.fd], [], [], seconds)[0] and (piece := os.read(self.fd, 1 << 16)):
                seen += piece
        return seen.decode("utf-8", "replace")

    def beat(self) -> int:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(self.beats.read_text())
        return 0

    def ended(self, seconds: float) -> int | None:
        """Its exit status; what it still writes is read."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.child.poll() is None:
            self.read("nothing says this", 0.1)
        return self.child.poll()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "beats")
    assert terminal.read("]2;✖ STALLED")  # the title of the terminal; it comes with the first view
    yield terminal
    if terminal.child.poll() is None:
        terminal.child.kill()
    terminal.child.wait()
    with contextlib.suppress(OSError):
        os.close(terminal.fd)


def stand_still(terminal: Terminal, seconds: float) -> None:
    """The other end does not read for so long; the collector goes on all the time, and so does the app afterwards."""
    before = terminal.beat()
    time.sleep(seconds)
    assert terminal.beat() - before > seconds * 10
    assert terminal.child.poll() is None
    assert terminal.read("SILENT STALL")
    os.write(terminal.fd, b"q")
    assert terminal.ended(10) == 0


def test_a_terminal_that_stops_reading_does_not_stop_the_collector(terminal: Terminal) -> None:
    stand_still(terminal, 3.0)


@pytest.mark.slow
def test_a_terminal_that_stops_reading_for_a_minute(terminal: Terminal) -> None:
    stand_still(terminal, 60.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_app_cleanly(terminal: Terminal, number: signal.Signals) -> None:
    terminal.child.send_signal(number)
    assert terminal.read("\x1b[?1049l")
    assert terminal.ended(8) == 0
    assert terminal.beats.with_suffix(".stopped").exists()


def test_a_signal_ends_the_app_even_while_the_terminal_does_not_read(terminal: Terminal) -> None:
    time.sleep(3.0)  # until the queue of writes is full and the loop stands still
    terminal.child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 8
    while terminal.child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert terminal.child.poll() == 128 + signal.SIGTERM
    assert terminal.beats.with_suffix(".stopped").exists()


def test_a_terminal_that_vanishes_ends_the_app(terminal: Terminal) -> None:
    os.close(terminal.fd)
    deadline = time.monotonic() + 10
    while terminal.child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert terminal.child.poll() is not None


def test_a_terminal_made_tiny_and_big_again(terminal: Terminal) -> None:
    terminal.resize(20, 5)
    assert terminal.read("✖ SILENT")
    terminal.resize(120, 40)
    assert terminal.read("GPUs")
    os.write(terminal.fd, b"q")
    assert terminal.ended(10) == 0


def test_the_first_frame_comes_before_the_collector_and_without_asyncssh() -> None:
    code = (
        "import sys; from tuimon.ui.app import TuimonApp; import tuimon.ui.stacks, tuimon.ui.listings; "
        "bad = [name for name in ('asyncssh', 'cryptography', 'watchfiles', 'pynvml') if name in sys.modules]; "
        "print(bad); sys.exit(bool(bad))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_error_of_our_own_is_one_sentence_and_shows_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    terminal = Terminal(tmp_path / "beats", PROGRAM.with_name("on_pty_failing.py"))
    seen = terminal.rest(20.0)
    assert terminal.child.wait() == 1
    os.close(terminal.fd)
    assert "the screen was ended by an error of its own (KeyError: 11)" in " ".join(seen.split())
    assert "the server is left alone" in " ".join(seen.split())
    assert "Traceback" not in seen
    (details,) = (tmp_path / "state" / "errors").iterdir()
    assert details.stat().st_mode & 0o777 == 0o600
    assert "on_pty_failing.py" in details.read_text()
    assert "sesame" not in seen + details.read_text().replace('passphrase = "open sesame"', "")
