"""An error of our own that no handler caught: one sentence on the terminal, and the details in a file.

Textual prints a traceback with the values of all variables, among which a passphrase may be.
"""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

from tuimon.config import state_dir
from tuimon.ui.rows import clean

KEPT = 5
"""Files; older ones go."""
LONGEST = 64 * 1024
"""Characters of the details: an error's own words may hold anything."""


def sentence(error: BaseException | None) -> str:
    """What is printed; writes the details down, without the values of variables."""
    if error is None:
        return "tuimon: the screen was ended by an error of its own; the server is left alone"
    what = clean(f"{type(error).__name__}: {error}".splitlines()[0][:300])
    path = _written(error)
    where = f"; please report it with {path}" if path else ""
    return f"tuimon: the screen was ended by an error of its own ({what}); the server is left alone{where}"


def _written(error: BaseException) -> Path | None:
    folder = state_dir() / "errors"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in sorted(folder.glob("*.txt"))[: -KEPT + 1]:
            old.unlink()
        path = folder / f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{os.getpid()}.txt"
        details = "".join(traceback.format_exception(error))[:LONGEST]
        # It will be looked at with `cat`: an error may quote a host's words.
        path.write_text("\n".join(map(clean, details.splitlines())) + "\n", encoding="utf-8", errors="replace")
        path.chmod(0o600)
    except OSError:
        return None
    return path
