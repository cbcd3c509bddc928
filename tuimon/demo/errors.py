"""What can go wrong with the demo."""

from __future__ import annotations

from collections.abc import Iterable

from tuimon.errors import TuimonError


class DemoError(TuimonError):
    """The root of this package's errors."""


class UnknownScenario(DemoError):
    """No scenario has this name; the advice lists those that exist."""

    exit_code = 2

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"There is no demo scenario “{name}”", f"Scenarios: {', '.join(known)}")


class UnknownPace(DemoError):
    """The pace is neither `brisk`, `real` nor a positive number."""

    exit_code = 2

    def __init__(self, pace: str) -> None:
        super().__init__(f"There is no demo pace “{pace}”", "Paces: brisk, real, or a factor such as 0.5")


class DemoFailed(DemoError):
    """The demo's launch could not be started on this machine."""
