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

    def __init__(self) -> None:
        super().__init__(launches.nothing())
        self.secret_wanted: str | None = WORDS
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


async def test_who_types_a_search_ends_it_before_anything_else_is_asked(wanting: Wanting) -> None:
    wanting.secret_wanted = None
    async with TuimonApp(wanting, Settings()).run_test(size=(100, 30)) as pilot:
        stage = Stage(pilot.app, pilot, wanting)  # type: ignore[arg-type]  # as above
        await stage.crank()
        await stage.press("slash", "a")
        wanting.secret_wanted = WORDS
        await stage.crank()
        await stage.press("b", "enter")
        assert wanting.given == []
        await stage.crank()
        assert WORDS in stage.line(-1)
        await stage.press(*"sesame", "enter")
        assert wanting.given == ["sesame"]


async def test_the_question_is_on_the_screen_that_is_looked_at_and_on_no_other(wanting: Wanting) -> None:
    async with TuimonApp(wanting, Settings()).run_test(size=(100, 30)) as pilot:
        stage = Stage(pilot.app, pilot, wanting)  # type: ignore[arg-type]  # as above
        await stage.crank()
        stage.app.action_press("help")  # as a click in the palette does it: keys go to the prompt
        await stage.crank()
        await stage.crank()
        assert WORDS in stage.text()
        await stage.press(*"sesame", "enter")
        await stage.crank()
        assert wanting.given == ["sesame"]
        await stage.press("question_mark")
        await stage.crank()
        assert "Passphrase" not in stage.text()
        wanting.secret_wanted = "Passphrase of another key"
        await stage.crank()
        wanting.secret_wanted = WORDS
        await stage.crank()
        await stage.crank()
        assert WORDS in stage.line(-1)
