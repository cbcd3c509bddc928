"""What the screen and the scripts hold: a launch being watched, live or replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

from tuimon.launch.view import LaunchView

Action = Literal[
    "stacks", "diagnose", "collectives", "checkpoint", "flight_recorder", "native", "debug_server", "aim", "abort"
]
"""`aim` reads what SIGABRT would do to which rank; `abort` is only done after it."""


class Watching(Protocol):
    """Collects on its own thread; everything here returns at once and may be called from any thread."""

    def start(self) -> None:
        """Begin; returns before anything is connected."""

    def stop(self) -> None:
        """End the collector and close the link; waits at most 3 s."""

    @property
    def view(self) -> LaunchView:
        """The latest snapshot: the same object until something changed, replaced at least each second."""

    def ask(self, action: Action) -> None:
        """Ask for an action on the host; its result arrives in later views (`view.stacks`, `view.findings`)."""

    @property
    def busy(self) -> Action | None:
        """The action that is running now."""


@runtime_checkable
class Choosing(Protocol):
    """A watching that can see another launch of the same host."""

    def see(self, pid: int) -> None:
        """See this launch from now on; the one seen so far stays among the earlier ones."""


@runtime_checkable
class Calling(Protocol):
    """A watching that calls when there is a new view: nobody needs to look again and again."""

    def on_view(self, call: Callable[[], None]) -> None:
        """Call `call` after each new view, on the collector's thread; it must not raise."""


@runtime_checkable
class Asking(Protocol):
    """A watching that may want a secret of the user's: the passphrase of a key."""

    @property
    def secret_wanted(self) -> str | None:
        """What is wanted, in words; None = nothing."""

    def give_secret(self, secret: str | None) -> None:
        """The secret; None = the user would not."""
