"""Bytes of a log as text that is safe to show."""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def tamed(text: bytes) -> str:
    """Valid, one line, no control or direction characters."""
    return _CONTROLS.sub("", text.decode("utf-8", "replace").replace("\t", "    "))
