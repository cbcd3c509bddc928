"""The mouse works, and the first frame comes before anything is begun."""

from __future__ import annotations

import gc

from msgspec.structs import replace
from textual.events import MouseScrollDown, MouseScrollUp

from tests.ui import launches
from tests.ui.stage import Cranked, Stage, staged
from tuimon.config import Settings
from tuimon.launch.view import LogLine
from tuimon.ui import garbage
from tuimon.ui.app import TuimonApp


def numbered(count: int) -> launches.Window:
    return launches.Window([LogLine(n, f"line {n:05}", launches.NOW) for n in range(count)])


async def test_a_click_on_the_footer_presses_the_key() -> None:
    async with staged(launches.stall()) as stage:
        at = stage.line(-1).index("s stacks")
        await stage.pilot.click("#footer", offset=(at + 2, 0))
        await stage.crank()
        assert stage.watching.asked == ["stacks"]


async def test_a_click_on_a_disabled_key_says_why() -> None:
    async with staged(launches.waiting(), (160, 40)) as stage:
        at = stage.line(-1).index("d diagnose")
        await stage.pilot.click("#footer", offset=(at + 1, 0))
        await stage.crank()
        assert "diagnose: no server found yet" in stage.line(-1)


async def test_a_click_focuses_a_pane_and_z_zooms_it() -> None:
    async with staged(launches.stall()) as stage:
        await stage.pilot.click("#signs", offset=(5, 2))
        await stage.press("z")
        assert stage.has("╭─ Signs of life")
        assert "╭─ GPUs" not in stage.text()


async def test_the_wheel_scrolls_the_log_and_comes_back_to_following() -> None:
    async with staged(replace(launches.starting(), lines=numbered(300))) as stage:
        await wheel(stage, MouseScrollUp)
        assert "held still" in stage.text()
        assert "line 00299" not in stage.text()
        await wheel(stage, MouseScrollDown)
        assert stage.has("line 00299", "following")


async def wheel(stage: Stage, kind: type[MouseScrollUp | MouseScrollDown]) -> None:
    await stage.pilot._post_mouse_events([kind], "#log", (10, 3))
    await stage.pilot.pause()


async def test_lines_dragged_over_are_copied_whole() -> None:
    async with staged(replace(launches.starting(), lines=numbered(300)), (80, 24)) as stage:
        await stage.pilot.mouse_down("#log", offset=(10, 2))
        await stage.pilot.hover("#log", offset=(20, 4))
        await stage.pilot.mouse_up("#log", offset=(20, 4))
        await stage.press("y")
        assert [line.split()[1] for line in stage.app.clipboard.splitlines()] == ["00295", "00296", "00297"]


async def test_a_click_on_a_line_of_the_log_puts_the_cursor_there_and_y_takes_it() -> None:
    async with staged(replace(launches.starting(), lines=numbered(300)), (80, 24)) as stage:
        await stage.pilot.click("#log", offset=(10, 2))
        await stage.press("y")
        assert [line.split()[1] for line in stage.app.clipboard.splitlines()] == ["00295"]
        await stage.press("escape", "y")
        assert len(stage.app.clipboard.splitlines()) > 1


async def test_a_click_on_the_frame_of_the_log_only_focuses_it_and_its_last_word_follows() -> None:
    async with staged(replace(launches.starting(), lines=numbered(300)), (80, 24)) as stage:
        await stage.pilot.click("#log", offset=(3, 0))
        assert stage.has("following")
        await stage.pilot.click("#log", offset=(73, 0))
        assert stage.has("held still")
        await stage.pilot.click("#log", offset=(73, 0))
        assert stage.has("following")


async def test_two_clicks_zoom_a_pane_and_two_more_give_the_room_back() -> None:
    async with staged(launches.stall()) as stage:
        for there in (False, True):
            await stage.pilot.click("#gpus", offset=(9, 1), times=2)
            await stage.crank()
            assert ("╭─ Signs of life" in stage.text()) is there


async def test_the_banner_leads_to_all_that_it_rests_on_and_its_keys_are_keys() -> None:
    async with staged(launches.stall()) as stage:
        await stage.pilot.click("#banner", offset=(20, 2))
        await stage.crank()
        assert stage.has("╭─ Findings", "SILENT STALL: after “CUDA graphs”", "suspect TP3: waits in a socket")
        await stage.press("escape")
        await stage.pilot.click("#banner", offset=(stage.line(6).index("d diagnose") + 3, 5))
        await stage.crank()
        assert stage.watching.asked == ["diagnose"]


async def test_a_prompt_that_was_clicked_away_from_is_gone() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("slash")
        await stage.pilot.click("#signs", offset=(5, 2))
        await stage.press("z")
        assert stage.has("╭─ Signs of life", "q quit")
        assert "╭─ GPUs" not in stage.text()


async def test_a_frozen_screen_is_planned_anew_for_another_size() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        await stage.press("space")
        await stage.pilot.resize_terminal(120, 40)
        await stage.pilot.pause()
        assert stage.has("██  SILENT STALL", "PAUSED")


async def test_the_first_frame_has_the_panes_before_anything_is_started() -> None:
    class Watched(Cranked):
        frame = ""

        def start(self) -> None:
            strips = app.screen._compositor.render_strips()
            self.frame = "\n".join(strip.text for strip in strips)
            super().start()

    watching = Watched(launches.nothing())
    app = TuimonApp(watching, Settings())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert watching.started
        assert "tuimon" in watching.frame
        assert all(title in watching.frame for title in ("╭─ Launch", "╭─ GPUs", "╭─ Signs of life", "╭─ Log"))


async def test_garbage_is_collected_again_once_there_are_data() -> None:
    garbage.hold()
    try:
        async with staged(launches.stall()) as stage:
            stage.app._beat()
            assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


async def test_a_collector_that_falls_silent_is_noticed() -> None:
    now = [100.0]
    watching = Cranked(launches.stall())
    app = TuimonApp(watching, Settings(), clock=lambda: now[0])
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        stage = Stage(app, pilot, watching)
        await stage.crank()
        now[0] += 7
        app.tick()
        await pilot.pause()
        assert "collector has said nothing for 7 s" in stage.line(-1)
