"""A program of its own, run on a pty by test_terminal.py: an app with an error of our own, near a secret."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.ui.on_pty import Beating
from tuimon.config import Settings
from tuimon.ui.app import TuimonApp


def failing(app: TuimonApp) -> None:
    """Fails where nothing catches it."""
    passphrase = "open sesame"
    raise KeyError(len(passphrase))


if __name__ == "__main__":
    TuimonApp.on_mount = failing  # type: ignore[assignment, method-assign]  # the error
    app = TuimonApp(Beating(Path(sys.argv[1])), Settings())
    app.run()
    sys.exit(app.return_code)
