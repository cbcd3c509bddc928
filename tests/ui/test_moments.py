"""Each moment of a launch at each size, as text. `TUIMON_GOLDENS=write` makes them anew: look at the difference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import differing, staged
from tuimon.launch.steps import Advice
from tuimon.launch.view import PhaseView
from tuimon.ui import phases
from tuimon.ui.board import needs, plan

SIZES = ((60, 16), (80, 24), (120, 40), (200, 60), (200, 12), (50, 60))
EVERYWHERE = {"starting", "quiet", "stall", "spinning", "serving", "unreachable", "demo"}
"""Moments that are kept at every size; the others at 80×24."""


@pytest.mark.parametrize("moment", sorted(launches.MOMENTS))
async def test_a_moment_looks_as_it_was_looked_at(moment: str) -> None:
    sizes = SIZES if moment in EVERYWHERE else ((80, 24),)
    async with staged(launches.MOMENTS[moment](), sizes[0]) as stage:
        differs = await differing(stage, moment, (*sizes, (20, 5)) if moment == "stall" else sizes, stage.crank)
    assert not differs, "\n".join(differs)


async def test_the_stall_says_what_where_why_and_what_to_press() -> None:
    async with staged(launches.stall()) as stage:
        assert stage.has("SILENT STALL  4 m 12 s", "after “CUDA graphs”, nothing alive", "suspect: TP3")
        assert stage.has("draft model load: expected (speculative_algorithm=EAGLE3), not seen", "s stacks")
        assert stage.has("log silent · 8 GPUs idle, 89 W at most · all 10 processes asleep · stacks unmoved in 3 looks")


async def test_the_age_of_a_stall_counts_up_and_nothing_else_changes() -> None:
    async with staged(launches.stall()) as stage:
        before = stage.text().splitlines()
        await stage.crank(seconds=1)
        after = stage.text().splitlines()
    assert "SILENT STALL  4 m 13 s" in "\n".join(after)
    changed = [old for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) < 14
    assert not any("scheduler" in line and "ago" not in line for line in changed)


async def test_a_rank_that_differs_for_a_moment_moves_no_other_pane() -> None:
    calm = launches.serving()
    rows = calm.processes or ()
    stirred = replace(calm, processes=(*rows, *(replace(rows[0], label=f"scheduler TP{n}") for n in range(6))))
    async with staged(calm) as stage:
        before = dict(stage.app.board.board.placed)  # type: ignore[union-attr]  # it is there
        await stage.crank(stirred)
        moved = dict(stage.app.board.board.placed)  # type: ignore[union-attr]
        await stage.crank(calm, seconds=1)
        assert moved != before
        assert stage.app.board.board.placed == moved  # type: ignore[union-attr]
        await stage.crank(calm, seconds=20)
        assert stage.app.board.board.placed == before  # type: ignore[union-attr]


async def test_a_narrow_pane_says_what_a_phase_usually_takes_where_it_took_longer() -> None:
    view = launches.stall()
    slow = replace(view.phases[2], seconds=511.0, usual=240)
    async with staged(replace(view, phases=(*view.phases[:2], slow, *view.phases[3:])), (80, 24)) as stage:
        assert stage.has("│ ✔ weights    usual 4 m  8 m 31 s │", "│ ✔ CUDA graphs  23/23        58 s │")
    named = replace(view, phases=(replace(slow, name="draft model load"),))
    assert phases.rows(named, 32, 1)[0][2][0].strip() == "2.1×"


async def test_all_eight_gpus_are_seen_where_a_high_banner_leaves_little() -> None:
    async with staged(launches.stall(), (100, 30)) as stage:
        assert stage.has("0 TP0", "7 TP7", "TP3")


async def test_an_amber_banner_says_what_to_do_where_there_is_room() -> None:
    quiet = launches.quiet()
    told = replace(quiet.verdict, advice=Advice(("Wait: it compiles.",)))
    async with staged(replace(quiet, verdict=told), (80, 24)) as stage:
        assert "cicc compiles at 100 % CPU · Wait: it compiles. ░░" in stage.line(1)
        await stage.pilot.resize_terminal(60, 16)
        await stage.crank()
        assert "Wait" not in stage.line(1)


async def test_amber_is_another_word_and_another_shape_than_red() -> None:
    async with staged(launches.quiet(), (80, 24)) as stage:
        assert stage.line(1).startswith("░░ QUIET 14 s · alive: cicc compiles at 100 % CPU ░░░")
        assert "█" not in stage.line(1)


async def test_a_stall_that_ends_gives_way_to_ready() -> None:
    async with staged(launches.stall()) as stage:
        await stage.crank(launches.serving())
        await stage.crank()
        assert "SILENT STALL" not in stage.text()
        assert "✔ READY in 6 m 41 s · http://10.1.230.174:30000 · 3 running, 0 queued" in stage.line(1)
        assert stage.line(2).startswith("╭─ Launch")


async def test_without_a_link_nothing_is_judged_and_the_next_try_is_named() -> None:
    async with staged(launches.unreachable()) as stage:
        assert stage.has("UNREACHABLE no data for 12 s: link lost, next try in 3 s", "link ✖", "data ✖ 12 s")
        assert "SILENT STALL" not in stage.text()


LONG = "gpu-17 does not answer: nothing was heard for 20 s. Is the machine up, or does a firewall stand between us?"


@pytest.mark.parametrize("size", [(80, 24), (50, 60), (120, 40)])
async def test_a_long_reason_why_the_link_is_lost_stands_whole_below_the_next_try(size: tuple[int, int]) -> None:
    view = launches.MOMENTS["unreachable"]()
    async with staged(replace(view, link=replace(view.link, reason=LONG)), size) as stage:
        assert "UNREACHABLE no data for 12 s" in stage.line(1)
        assert "next try in 3 s" in stage.line(1)
        assert LONG in " ".join(" ".join(stage.text().splitlines()[1:7]).split())


async def test_on_a_small_screen_a_long_reason_is_cut_with_a_mark_and_told_whole_with_the_findings() -> None:
    view = launches.MOMENTS["unreachable"]()
    async with staged(replace(view, link=replace(view.link, reason=LONG)), (60, 16)) as stage:
        assert stage.line(2).endswith(" …")
        await stage.press("i")
        assert LONG in " ".join(stage.text().replace("│", " ").split())


async def test_a_refusal_is_told_whole_with_the_command_that_helps() -> None:
    why = f"{LONG} {LONG} accept it with: ssh-keyscan -t ed25519 -p 22 gpu-17 >> ~/.ssh/known_hosts"
    view = launches.MOMENTS["refused"]()
    async with staged(replace(view, link=replace(view.link, reason=why)), (80, 24)) as stage:
        assert "REFUSED by gpu-17" in stage.line(1)
        await stage.press("7", "z")
        assert why in " ".join(stage.text().replace("│", " ").split())


async def test_errors_of_our_own_are_pointed_at_until_the_end() -> None:
    view = replace(launches.stall(), own_errors=("recording: no space left",), findings=("recording: no space left",))
    async with staged(view, (80, 24)) as stage:
        assert "▲ own error: i" in stage.line(-1)
        await stage.press("i")
        assert stage.has("recording: no space left")


async def test_a_phase_that_moves_no_more_says_where_it_stands() -> None:
    phase = PhaseView("weights", "running", start=launches.NOW - 90, count=20, total=64, note="stands at 20/64")
    async with staged(replace(launches.stall(), phases=(phase,))) as stage:
        assert stage.has("stands at 20/64")


@pytest.mark.parametrize("moment", ["stall", "serving"])
async def test_an_error_of_our_own_is_said_in_place_of_an_old_verdict(moment: str) -> None:
    view = replace(launches.MOMENTS[moment](), broken="ImportError: bug")
    async with staged(view, (80, 24)) as stage:
        text = stage.text()
    assert "✖ NOTHING IS JUDGED: tuimon's own error: ImportError: bug" in text
    assert "SILENT STALL" not in text


async def test_what_cannot_be_seen_is_said_not_shown_as_zero() -> None:
    async with staged(launches.nothing()) as stage:
        assert stage.has("CONNECTING to gpu-17", "cannot be seen: no reading yet", "link ◌", "data ○")
        assert " 0 %" not in stage.text()


async def test_gpus_that_cannot_be_read_show_question_marks() -> None:
    blind = replace(
        launches.gpus(None)[0],
        mem_used=None,
        power=None,
        temperature=None,
        history=(None, None),
        word="NVML silent 12 s",
    )
    async with staged(replace(launches.stall(), gpus=(blind,))) as stage:
        assert stage.has("? %", "?/95 GB", "NVML silent 12 s")


@pytest.mark.parametrize("moment", ["stall", "quiet", "connecting", "crashed", "gpus-64"])
async def test_no_size_crashes_and_no_line_is_too_long(moment: str) -> None:
    view = launches.MOMENTS[moment]()
    async with staged(view, (80, 24)) as stage:
        for width, height in ((20, 5), (1, 1), (33, 9), (71, 30), (99, 18), (150, 70), (80, 24)):
            await stage.pilot.resize_terminal(width, height)
            await stage.crank(seconds=1)
            lines = stage.text().splitlines()
            assert len(lines) <= height
            assert "cannot be drawn" not in stage.text()
            assert "drawing failed" not in stage.text()


@given(st.integers(1, 260), st.integers(1, 90), st.sampled_from(sorted(launches.MOMENTS)), st.booleans())
@settings(max_examples=400, deadline=None)
def test_the_plan_covers_the_screen_without_overlaps(width: int, height: int, moment: str, zoomed: bool) -> None:
    view = launches.MOMENTS[moment]()
    places = plan(width, height, needs(view, width, height), "gpus" if zoomed else None)
    cells = [(x, y) for region in places.values() for y in region.line_range for x in region.column_range]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < width and 0 <= y < height for x, y in cells)
    assert "banner" in places
    if height >= 8 and not zoomed:
        assert len(cells) == width * height
        assert {"launch", "log"} & set(places)
