"""Why an action cannot be done now, asked so that a bug in the answer disables one key and not the screen."""

from __future__ import annotations

from tuimon.launch.view import LaunchView
from tuimon.ui.actions import Action


def reason(action: Action, view: LaunchView) -> str | None:
    """None = it can be done."""
    try:
        return action.why(view)
    except Exception as error:  # noqa: BLE001  the stall banner must not depend on the answer
        return f"tuimon's own error: {type(error).__name__}: {error}"
