"""A program of its own, run on a pty by test_terminal.py: the app, and a collector that beats into a file."""

from __future__ import annotations

import fcntl
import sys
import termios
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace

from tests.ui import launches
from tuimon.config import Settings
from tuimon.launch.view import LaunchView
from tuimon.ui.app import TuimonApp
from tuimon.watch.watching import Action


class Beating:
    """Its thread makes a new view and a new beat twenty times a second, whatever the screen does."""

    busy: Action | None = None

    def __init__(self, file: Path) -> None:
        self.view: LaunchView = launches.stall()
        self._file = file

    def start(self) -> None:
        threading.Thread(target=self._beat, daemon=True).start()

    def stop(self) -> None:
        self._file.with_suffix(".stopped").touch()

    def ask(self, action: Action) -> None:
        """Nothing to ask."""

    def _beat(self) -> None:
        beats = 0
        while True:
            beats += 1
            self.view = replace(self.view, now=self.view.now + 0.9)  # every frame differs
            self._file.write_text(str(beats))
            time.sleep(0.05)


if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that the end of this terminal is a SIGHUP to us
    watching = Beating(Path(sys.argv[1]))
    TuimonApp(watching, Settings()).run()
    watching.stop()
