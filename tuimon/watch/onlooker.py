"""Someone who looks at the views beside the screen: alerts and history, each on a thread of its own.

Neither the collector nor the screen may wait for a slow disk or a user's command.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from tuimon.launch.view import LaunchView

EVERY = 1.0
"""Seconds between looks; views are replaced at least once a second, and waking for nothing costs 0.02 % of a core."""


class Viewed(Protocol):
    """What has views to look at."""

    @property
    def view(self) -> LaunchView:
        """The latest."""


class Onlooker:
    """Calls `look` with each new view; its errors are told to `trouble`, once each."""

    def __init__(
        self, watching: Viewed, look: Callable[[LaunchView], None], trouble: Callable[[str], None], name: str
    ) -> None:
        self._watching = watching
        self._look = look
        self._trouble = trouble
        self._name = name
        self._said: set[str] = set()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"tuimon-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, within: float) -> None:
        """One last look, then end; waits at most `within` seconds."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(within)

    def _main(self) -> None:
        seen: LaunchView | None = None
        ended = False
        while not ended:
            ended = self._ending.wait(EVERY)
            view = self._watching.view
            if view is not seen:
                seen = view
                self._once(view)

    def _once(self, view: LaunchView) -> None:
        try:
            self._look(view)
        except Exception as error:  # noqa: BLE001  whatever is wrong beside the screen must not end the watching
            text = f"{self._name}: {type(error).__name__}: {error}"[:300]
            if text not in self._said and len(self._said) < 20:
                self._said.add(text)
                self._trouble(text)
