"""Several launches on one host: they are listed, and a digit chooses one."""

from __future__ import annotations

from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import Cranked, Stage, staged
from tuimon.config import Settings
from tuimon.launch.view import LaunchView, RunningView
from tuimon.ui.app import TuimonApp


def several() -> LaunchView:
    view = launches.stall()
    found = (
        RunningView(41, "sglang", "/models/big", 30000, view.now - 312.0, watched=True),
        RunningView(52, "vllm", "\x1b[2Jevil", None, None, watched=False),
    )
    return replace(view, launches=found)


class Choosing(Cranked):
    """A watching that can see another launch."""

    def __init__(self, view: LaunchView) -> None:
        super().__init__(view)
        self.seen: list[int] = []

    def see(self, pid: int) -> None:
        self.seen.append(pid)


async def test_a_digit_chooses_the_launch_of_its_row() -> None:
    watching = Choosing(several())
    async with TuimonApp(watching, Settings()).run_test(size=(120, 30)) as pilot:
        stage = Stage(pilot.app, pilot, watching)  # type: ignore[arg-type]  # Textual's pilot forgets whose it is
        await stage.crank()
        await stage.press("o")
        await stage.crank()
        assert stage.has("1 pid 41 · sglang · /models/big · port 30000 · for 5 m 12 s", "◂ seen now")
        assert stage.has("2 pid 52 · vllm · ", "evil")
        assert "\x1b" not in stage.text()
        await stage.press("7")
        assert watching.seen == []
        await stage.press("2")
        assert watching.seen == [52]
        await stage.crank()
        assert "Launches on this host" not in stage.text()


async def test_one_launch_is_no_choice_and_the_key_says_so() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("o")
        await stage.crank()
        assert "only one launch was found on this host" in stage.line(-1)


async def test_a_recording_shows_what_was_watched() -> None:
    async with staged(several()) as stage:
        await stage.press("o", "2")
        await stage.crank()
        assert stage.has("a recording shows what was watched")


async def test_a_click_on_a_row_chooses_it_too() -> None:
    watching = Choosing(several())
    async with TuimonApp(watching, Settings()).run_test(size=(80, 24)) as pilot:
        stage = Stage(pilot.app, pilot, watching)  # type: ignore[arg-type]  # Textual's pilot forgets whose it is
        await stage.crank()
        await stage.press("o")
        await stage.crank()
        await pilot.click("#sheet", offset=(10, 2))
        assert watching.seen == [52]
