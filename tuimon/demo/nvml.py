"""The source of the stand-in `pynvml`: the only part of the demo that is not real."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

PROGRAM = Path(__file__).parent / "program"


def source(folder: Path) -> bytes:
    """A pynvml module that reads what the demo's ranks write into `folder`."""
    readings = json.dumps(tomllib.loads((Path(__file__).parent / "readings.toml").read_text("utf-8")))
    text = (PROGRAM / "pynvml.py").read_text("utf-8")
    # The folder goes in as a literal: a temporary folder's name may hold quotes.
    return text.replace('"@FOLDER@"', repr(str(folder))).replace("@READINGS@", readings).encode()
