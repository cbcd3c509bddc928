"""Announces the changes of one watching by every way that the settings ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tuimon.alerts.changes import Change, Changes
from tuimon.alerts.command import LIMIT, OnChange
from tuimon.alerts.terminal import BELL, notification
from tuimon.config import Settings
from tuimon.headless.check import report
from tuimon.launch.view import LaunchView

SCHEMA = "tuimon.change/1"


class Herald:
    """`look` is called with each view. `write` sends bytes to the terminal, None where there is none."""

    def __init__(
        self,
        settings: Settings,
        write: Callable[[str], None] | None,
        trouble: Callable[[str], None],
        more: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        """Raises BadCommand. `more`: what else the document says."""
        self._settings = settings
        self._write = write
        self._more = more
        self._changes = Changes()
        self._command = OnChange(settings.on_change, trouble) if settings.on_change else None
        self._began: float | None = None
        self._last: LaunchView | None = None

    def look(self, view: LaunchView) -> None:
        """Announce what has changed, if it has lasted."""
        self._began = view.now if self._began is None else self._began
        self._last = view
        self._announce(self._changes.see(view), view)

    def stop(self, view: LaunchView | None = None, within: float = LIMIT) -> None:
        """Announce what the last view says, and wait for the command."""
        view = view or self._last
        if view is not None:
            self._announce(self._changes.see(view, last=True), view)
        if self._command is not None:
            self._command.stop(within)

    def _announce(self, change: Change | None, view: LaunchView) -> None:
        if change is None:
            return
        if change.urgent and self._write is not None:
            bell = BELL if self._settings.bell else ""
            sequence = bell + notification("tuimon", words(view, change), self._settings.notify)
            if sequence:
                self._write(sequence)
        if self._command is not None:
            self._command.tell({**document(view, change, self._began or view.now), **self._more()})


def words(view: LaunchView, change: Change) -> str:
    """`gpu-17 STALLED: after “weights”, nothing alive`."""
    said = view.link.reason if change.now == "unreachable" else view.verdict.headline
    more = f" ({change.held_back} more changes)" if change.held_back else ""
    return f"{view.host} {change.now.upper()}: {said or ''}{more}"


def document(view: LaunchView, change: Change, began: float) -> dict[str, object]:
    """check's document, with what changed."""
    changed = {"from": change.before, "to": change.now, "urgent": change.urgent, "held_back": change.held_back}
    return {**report(view, began), "schema": SCHEMA, "change": changed}
