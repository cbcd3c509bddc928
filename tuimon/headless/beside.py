"""What runs beside a watching, with or without a screen: alerts and history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuimon.alerts.command import LIMIT
from tuimon.alerts.herald import Herald
from tuimon.history.remembering import Remembering
from tuimon.launch.events import Finding
from tuimon.watch.onlooker import Onlooker

if TYPE_CHECKING:
    from tuimon.config import Settings
    from tuimon.launch.view import LaunchView
    from tuimon.watch.live import LiveWatch


class Beside:
    """Starts and ends with the watching. `spec` is HOST as the user wrote it, `write` sends bytes to the terminal."""

    def __init__(
        self,
        watching: LiveWatch,
        spec: str,
        settings: Settings,
        write: Callable[[str], None] | None,
        trouble: Callable[[str], None] | None = None,
    ) -> None:
        """Raises BadCommand. `trouble` hears what is wrong with any of it; by default it becomes a finding."""

        def find(text: str) -> None:
            watching.post(Finding(source="tuimon", kind="alert", text=text, severity="warning"))

        said = trouble or find
        self._herald = Herald(settings, write, said)
        self._onlookers = [Onlooker(watching, self._herald.look, said, "alerts")]
        if settings.history:
            memory = Remembering(spec, watching.post)
            self._onlookers.append(Onlooker(watching, memory.look, said, "history"))

    def start(self) -> None:
        """Begin."""
        for onlooker in self._onlookers:
            onlooker.start()

    def stop(self, view: LaunchView | None = None, within: float = LIMIT) -> None:
        """A last look each, and at most `within` seconds for each. `view`: the last word, announced at once."""
        for onlooker in self._onlookers:
            onlooker.stop(within)
        self._herald.stop(view, within)
