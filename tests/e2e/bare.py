"""A terminal without a reader of its own: it reads when it is told to, and can stop, or vanish."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

# As a shell starts it: this terminal is the program's own, so that its end is a SIGHUP.
TUIMON = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from tuimon.cli import main; main()"


class Terminal:
    """tuimon on a pty of 120×40."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        self.fd, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.child = subprocess.Popen(
            [sys.executable, "-c", TUIMON, *argv],
            stdin=other, stdout=other, stderr=other, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **env},
        )  # fmt: skip
        os.close(other)

    def read(self, wanted: str, seconds: float) -> re.Match[str]:
        """Read until this pattern comes; what was drawn with escape codes in between does not match."""
        seen = b""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                with suppress(OSError):
                    seen += os.read(self.fd, 1 << 16)
                if found := re.search(wanted, seen.decode(errors="replace")):
                    return found
        raise AssertionError(f"not within {seconds:g} s: {wanted}; last was {seen[-2000:]!r}")

    def drain(self, seconds: float) -> str:
        """All that comes for so long."""
        seen = b""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                seen += os.read(self.fd, 1 << 16)
        return seen.decode(errors="replace")

    def ended(self, seconds: float, *, reads: bool = True) -> int | None:
        """The exit status, None where it still runs after so long."""
        end = time.monotonic() + seconds
        while self.child.poll() is None and time.monotonic() < end:
            if reads and select.select([self.fd], [], [], 0.05)[0]:
                with suppress(OSError):
                    os.read(self.fd, 1 << 16)
            elif not reads:
                time.sleep(0.05)
        return self.child.poll()

    def vanish(self) -> None:
        """Close the other end, as a closed window does."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        """End what is left."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        if self.fd >= 0:
            os.close(self.fd)


@contextmanager
def bare(*argv: str, **env: str) -> Iterator[Terminal]:
    """tuimon on a pty."""
    terminal = Terminal(argv, env)
    try:
        yield terminal
    finally:
        terminal.close()
