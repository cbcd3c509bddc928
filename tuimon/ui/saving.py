"""Saving what a pane shows, or the log that is held, under the state folder on this machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from tuimon.config import state_dir
from tuimon.launch.view import LaunchView, Lines
from tuimon.ui.log import Log
from tuimon.ui.loglines import full_text
from tuimon.ui.pane import Pane

STEP = 5_000


def save(view: LaunchView, pane: Pane) -> Path:
    """Write it; returns where. Raises OSError."""
    folder = state_dir() / "saved"
    folder.mkdir(parents=True, exist_ok=True)
    host = re.sub(r"[^\w.-]+", "_", view.host)
    path = folder / f"{pane.id}-{host}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(view.now))}.txt"
    with path.open("w", encoding="utf-8", errors="replace") as file:
        if isinstance(pane, Log):
            file.writelines(_lines(pane.reader.lines or view.lines))
        else:
            file.write(pane.chosen() + "\n")
    return path


def _lines(lines: Lines) -> Iterator[str]:
    for start in range(lines.first, lines.end, STEP):
        for line in lines.slice(start, start + STEP):
            yield full_text(line) + "\n"
