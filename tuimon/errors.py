"""The root of every error that tuimon raises on purpose.

Each package keeps its own in `errors.py`; each is one sentence for the user, and `advice` says what to do next.
"""

from __future__ import annotations


class TuimonError(Exception):
    """Something went wrong that the user can understand; never shown as a traceback."""

    exit_code = 1
    """What the process ends with where this reaches the user: 1, or 2 for wrong usage and unreadable input."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice
        """What to do next, one sentence; empty when there is nothing to do."""

    def sentence(self) -> str:
        """The message and the advice in one line."""
        return f"{self}. {self.advice}" if self.advice else str(self)
