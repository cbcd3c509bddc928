"""The app on a view made by hand, for eyes: `python tests/ui/preview.py stall [theme]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace

from tests.ui import launches
from tuimon.config import Settings
from tuimon.launch.view import LaunchView
from tuimon.ui.app import TuimonApp
from tuimon.watch.watching import Action


class Ticking:
    """A watching whose view only gets older."""

    def __init__(self, moment: str) -> None:
        self._base = launches.MOMENTS[moment]()
        self._view = self._base
        self._began = time.monotonic()
        self._asked = 0.0

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing to end."""

    @property
    def view(self) -> LaunchView:
        passed = int(time.monotonic() - self._began)
        if int(self._view.now - self._base.now) != passed:
            stacks = launches.stacks() if self._asked and time.monotonic() > self._asked + 1 else self._view.stacks
            self._view = replace(self._base, now=self._base.now + passed, stacks=stacks)
        return self._view

    def ask(self, action: Action) -> None:
        """Answer after a second."""
        self._asked = time.monotonic()

    @property
    def busy(self) -> Action | None:
        return "stacks" if self._asked and time.monotonic() < self._asked + 1 else None


if __name__ == "__main__":
    moment, theme = [*sys.argv[1:], "stall", "tuimon-dark"][:2] if len(sys.argv) < 3 else sys.argv[1:3]
    TuimonApp(Ticking(moment), Settings(theme="tuimon-dark" if theme == "stall" else theme)).run()
