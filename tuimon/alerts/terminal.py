"""A bell and a notification through the terminal: works over SSH, where a desktop's own way does not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from tuimon.headless.plain import plain

BELL = "\a"
Way = Literal["auto", "osc9", "osc777", "off"]
_LONGEST = 200


def notification(title: str, body: str, way: Way, environ: Mapping[str, str] | None = None) -> str:
    """The escape sequence, "" where there is none to send. Nothing from outside can end or extend it."""
    environ = os.environ if environ is None else environ
    kind = _kind(environ) if way == "auto" else way
    if kind == "off":
        return ""
    title, body = plain(title, 60), plain(body, _LONGEST)
    # A text that begins with a digit would be another command of OSC 9 (ConEmu's progress bar is 9;4).
    words = (
        f"777;notify;{title.replace(';', ',')};{body.replace(';', ',')}" if kind == "osc777" else f"9;{title}: {body}"
    )
    return _through(f"\x1b]{words}\x1b\\", environ)


def _kind(environ: Mapping[str, str]) -> Way:
    term = environ.get("TERM", "")
    if term in {"", "dumb", "linux"}:
        return "off"
    if "VTE_VERSION" in environ or term.startswith(("foot", "rxvt")):
        return "osc777"
    return "osc9"


def _through(sequence: str, environ: Mapping[str, str]) -> str:
    """tmux passes on what is wrapped (with `allow-passthrough on`) and drops the rest."""
    if "TMUX" not in environ:
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
