"""What holds for every test."""

from __future__ import annotations

import os

for name in ("COLUMNS", "LINES"):
    # pytest-xdist sets them for its workers, and a program in a test's terminal would believe them, not its terminal.
    os.environ.pop(name, None)
