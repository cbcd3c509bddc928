"""Exit codes, everywhere the same; scripts rely on them."""

from __future__ import annotations

from tuimon.launch.view import State

FINE = 0
PROBLEM = 1
"""A problem was found, or our own error."""
USAGE = 2
"""Wrong usage or unreadable input."""
STALLED = 3
"""Stalled, spinning, frozen or failing."""
CRASHED = 4
TIMED_OUT = 5
UNREACHABLE = 6


def of_state(state: State) -> int:
    """The exit code that a verdict's state means for `check`."""
    match state:
        case "stalled" | "spinning" | "frozen" | "failing":
            return STALLED
        case "crashed":
            return CRASHED
        case "unreachable":
            return UNREACHABLE
        case _:
            return FINE
