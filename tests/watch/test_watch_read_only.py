"""Read-only holds at the door to the host as well, whoever asks."""

from __future__ import annotations

import pytest

from tuimon.config import Settings
from tuimon.diagnose.rungs import RUNGS
from tuimon.watch.actions import Actions
from tuimon.watch.watching import Action


class Said:
    """Keeps what would be posted on the board."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def post(self, event: object) -> None:
        self.texts.append(getattr(event, "text", ""))


@pytest.mark.parametrize("action", [rung.action for rung in RUNGS if rung.asks])
def test_what_touches_the_server_is_not_done_read_only(action: Action) -> None:
    said = Said()
    actions = Actions(said, Settings(read_only=True))  # type: ignore[arg-type]  # only posted to
    actions.ask(action)
    assert said.texts == [f"{action}: not done, tuimon was started read-only"]


def test_what_only_looks_is_done_as_ever() -> None:
    said = Said()
    Actions(said, Settings(read_only=True)).ask("stacks")  # type: ignore[arg-type]  # only posted to
    assert said.texts == ["stacks: there is no link to the host"]
