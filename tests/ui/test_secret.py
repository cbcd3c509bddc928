"""A passphrase is asked for on the screen: never shown, given once, and leaving it is an answer too."""

from __future__ import annotations

import pytest

from tests.ui import launches
from tests.ui.stage import Cranked, Stage
from tuimon.config import Settings
from tuimon.ui.app import TuimonApp

WORDS = "Passphrase of ~/.ssh/id_ed25519 for gpu-17"


class Wanting(Cranked):
    """A watching that wants a secret."""

    secret_wanted: str | None = WORDS

    def __init__(self) -> None:
        super().__init__(launches.nothing())
        self.given: list[str | None] = []

    def give_secret(self, secret: str | None) -> None:
        self.given.append(secret)
        self.secret_wanted = None


@pytest.fixture
def wanting() -> Wanting:
    return Wanting()


async def test_the_passphrase_is_typed_into_a_prompt_and_never_shown(wanting: Wanting) -> None:
    async with TuimonApp(wanting, Settings()).run_test(size=(100, 30)) as pilot:
        stage = Stage(pilot.app, pilot, wanting)  # type: ignore[arg-type]  # Textual's pilot forgets whose it is
        await stage.crank()
        assert WORDS in stage.line(-1)
        await stage.press(*"q!uit")  # none of them is a key of the screen's now
        await stage.crank()
        assert "q!uit" not in stage.text()
        await stage.press("enter")
        assert wanting.given == ["q!uit"]
        assert "q!uit" not in stage.text()
        wanting.secret_wanted = "That is not the passphrase of ~/.ssh/id_ed25519"
        await stage.crank()
        assert "That is not the passphrase" in stage.line(-1)
        await stage.press("escape")
        assert wanting.given == ["q!uit", None]
        await stage.crank()
        assert "passphrase" not in stage.text()
        assert pilot.app.is_running


async def test_a_prompt_whose_question_is_gone_goes_too(wanting: Wanting) -> None:
    async with TuimonApp(wanting, Settings()).run_test(size=(100, 30)) as pilot:
        stage = Stage(pilot.app, pilot, wanting)  # type: ignore[arg-type]  # as above
        await stage.crank()
        wanting.secret_wanted = None
        await stage.crank()
        assert "Passphrase" not in stage.text()
        assert wanting.given == []
