"""A watching with alerts and history beside it, for the screen: they begin when its link is on its way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tuimon.config import Settings
    from tuimon.headless.beside import Beside

_STOP_WITHIN = 1.0
"""Seconds for the last word of each, when somebody has pressed q."""


class Attended(LiveWatch):
    """LiveWatch; `terminal` takes bells and notifications once there is a screen to send them through."""

    def __init__(self, spec: str, settings: Settings) -> None:
        """Raises HostError, BadCommand."""
        super().__init__(spec, settings)
        self.asks = True
        self.terminal: Callable[[str], None] | None = None
        self._spec = spec
        self._wanted = settings
        self._beside: Beside | None = None
        self._begun = threading.Lock()
        """Held while what is beside it begins."""
        self._ended = False
        if settings.on_change:
            from tuimon.alerts.command import split  # noqa: PLC0415  only where there is a command

            split(settings.on_change)

    def stop(self) -> None:
        """End what is beside it, then the watching."""
        with self._begun:
            self._ended = True
            beside, self._beside = self._beside, None
        if beside is not None:
            beside.stop(within=_STOP_WITHIN)
        super().stop()

    def _make(self) -> None:
        super()._make()
        from tuimon.headless.beside import Beside  # noqa: PLC0415  sqlite3 costs 10 ms that a first frame need not wait

        with self._begun:
            if not self._ended:
                self._beside = Beside(self, self._spec, self._wanted, self._send)
                self._beside.start()

    def _send(self, sequence: str) -> None:
        if self.terminal is not None:
            self.terminal(sequence)
