"""Several hosts on one screen: what the overview shows at each size, and what its keys do."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from tests.ui import hostile, launches
from tests.ui.nodes import MOMENTS, NodesStage, loading, node, sixteen, sixty_four, staged, stops, two
from tests.ui.stage import differing
from tuimon.config import Settings
from tuimon.ui.actions import ACTIONS, NODES
from tuimon.ui.nodes import NodeList

SIZES = ((60, 16), (80, 24), (120, 40), (200, 60))
SHOWN = {"nodes-16": ((120, 30),)}
"""Sizes beside those, for the README."""


@pytest.mark.parametrize("moment", sorted(MOMENTS))
async def test_a_moment_looks_as_it_was_looked_at(moment: str) -> None:
    async with staged(MOMENTS[moment](), SIZES[0]) as stage:
        sizes = (*SIZES, *SHOWN.get(moment, ()))
        differs = await differing(stage, moment, sizes, lambda: stage.later(0.001))
    assert not differs, "\n".join(differs)


def rows(stage: NodesStage) -> list[str]:
    """The names, as the rows stand."""
    return re.findall(r"^│ [▸ ] [●◌✖] (node\d+) ", stage.text(), re.MULTILINE)


def under_cursor(stage: NodesStage) -> str:
    line = next(line for line in stage.text().splitlines() if line.startswith("│ ▸ "))
    return line.split()[3]


async def test_the_silent_node_stands_first_and_the_banner_names_it() -> None:
    async with staged(sixteen()) as stage:
        assert rows(stage)[0] == "node12"
        assert stage.has(
            "SILENT STALL  4 m 12 s", "node12: in “weights”: nothing alive since 15:26:58 · 14 others spin"
        )
        assert stage.has("suspect: node12", "node12: does nothing while 14 others spin, waiting for it")
        assert stage.has("node5 cannot be seen: link lost", "link ◐ 15/16")
        assert stage.app._title == "✖ STALLED 4m · node12, 16 hosts"


async def test_what_has_no_room_is_counted_and_scrolled_to() -> None:
    async with staged(sixty_four(), (80, 24)) as stage:
        assert stage.has("▾ 49 more below")
        await stage.press("pagedown", "pagedown")
        await stage.draw()
        assert stage.has("more above", "more below")
        await stage.press("G")
        await stage.draw()
        assert stage.has("▴ 49 more above")
        assert under_cursor(stage) == "node64"
        await stage.press("g")
        await stage.draw()
        assert under_cursor(stage) == "node4"


async def test_until_it_is_moved_the_cursor_stands_on_the_worst_node() -> None:
    async with staged(two()) as stage:
        assert under_cursor(stage) == "node1"
        await stage.turn(1, node(1, stops(), 2))
        assert (under_cursor(stage), rows(stage)) == ("node2", ["node2", "node1"])


async def test_once_moved_it_stays_on_its_host_wherever_that_goes() -> None:
    views = [node(number, loading(20), 8) for number in range(8)]
    async with staged(views) as stage:
        await stage.press("j", "j")
        await stage.draw()
        assert under_cursor(stage) == "node3"
        for number in (7, 5):
            await stage.turn(number, node(number, launches.crashed(), 8))
        assert rows(stage)[:3] == ["node6", "node8", "node1"]
        assert under_cursor(stage) == "node3"
        await stage.press("k")
        await stage.draw()
        assert under_cursor(stage) == "node2"


async def test_time_alone_moves_no_row() -> None:
    async with staged(sixty_four()) as stage:
        before = rows(stage)
        for _ in range(3):
            await stage.later(1.0)
        assert rows(stage) == before


async def test_enter_opens_the_board_of_the_node_and_esc_comes_back() -> None:
    async with staged(sixteen()) as stage:
        await stage.press("enter")
        await stage.draw()
        assert stage.line(0).startswith(" node12 · SGLang 0.5.6 · Kimi-K2.5 · tp 128 · EAGLE3 · node 12 of 16")
        assert stage.has("╭─ Launch", "╭─ GPUs", "╭─ Log", "Esc back")
        assert stage.app._title == "✖ STALLED 4m · node12, 16 hosts"
        await stage.press("z")
        await stage.draw()
        await stage.press("escape")
        await stage.draw()
        assert stage.has("╭─ Launch")
        await stage.press("escape")
        await stage.draw()
        assert stage.has("╭─ Nodes")


async def test_brackets_step_through_the_nodes_as_the_list_has_them() -> None:
    async with staged(sixteen()) as stage:
        await stage.press("enter")
        await stage.press("right_square_bracket")
        await stage.draw()
        assert stage.line(0).startswith(" node1 ·")
        await stage.press("right_square_bracket")
        await stage.draw()
        assert stage.line(0).startswith(" node2 ·")
        await stage.press("left_square_bracket", "left_square_bracket", "left_square_bracket")
        await stage.draw()
        assert "node12 is the first of the nodes" in stage.line(-1)
        await stage.press("escape")
        await stage.draw()
        assert under_cursor(stage) == "node12"


async def test_keys_ask_the_host_under_the_cursor_and_the_answer_stays_with_it() -> None:
    async with staged(sixteen()) as stage:
        await stage.press("s")
        await stage.draw()
        assert [place for place, host in enumerate(stage.hosts) if host.asked] == [11]
        assert stage.line(0).startswith(" node12 ·")
        # The order changes meanwhile; what is asked next is asked of the node on the screen.
        await stage.turn(2, node(2, launches.crashed(), 16))
        await stage.press("s", "right_square_bracket")
        await stage.draw()
        assert "next node: Esc first" in stage.line(-1)
        assert [place for place, host in enumerate(stage.hosts) if host.asked] == [11]
        await stage.press("escape")
        await stage.draw()
        assert under_cursor(stage) == "node3"


async def test_a_click_opens_a_node_and_the_wheel_moves() -> None:
    async with staged(two()) as stage:
        await stage.pilot.click(NodeList, offset=(8, 3))
        await stage.draw()
        assert stage.line(0).startswith(" node2 ·")
        await stage.press("escape")
        await stage.draw()
        assert under_cursor(stage) == "node2"


@pytest.mark.parametrize("key", ["slash", "l", "f", "z", "1", "tab", "m"])
async def test_a_key_of_the_board_says_on_the_overview_where_it_works(key: str) -> None:
    async with staged(two()) as stage:
        await stage.press(key)
        await stage.draw()
        assert "on a node's board; Enter opens it" in stage.line(-1)


async def test_help_lists_the_keys_of_the_overview_first() -> None:
    async with staged(two(), (120, 70)) as stage:
        await stage.press("question_mark")
        await stage.draw()
        text = stage.text()
        assert all(action.help in text for action in NODES)
        assert text.index("Nodes") < text.index("Ask the host")


async def test_space_freezes_the_overview_and_says_so() -> None:
    async with staged(two()) as stage:
        await stage.press("space")
        await stage.turn(1, node(1, launches.crashed(), 2))
        assert "PAUSED" in stage.line(-1)
        assert "CRASHED" not in stage.text()
        await stage.press("space")
        await stage.draw()
        assert "CRASHED" in stage.text()


async def test_read_only_takes_the_touching_keys_away_on_every_node() -> None:
    async with staged(two(), settings=Settings(read_only=True)) as stage:
        await stage.press("R")
        await stage.draw()
        assert "tuimon was started read-only" in stage.line(-1)
        assert not any(host.asked for host in stage.hosts)


async def test_copying_takes_all_rows() -> None:
    async with staged(sixty_four(), (80, 24)) as stage:
        await stage.press("y")
        await stage.draw()
        assert "sent 65 lines" in stage.line(-1)


async def test_a_node_that_waits_says_for_whom_and_its_board_is_as_mild() -> None:
    async with staged(sixty_four()) as stage:
        assert stage.has("░░ QUIET 4 m 12 s · node4 and node51 are silent, while node1, node2 and 56 others still work")
        assert "░ WAITS" in next(line for line in stage.text().splitlines() if "● node51" in line)
        await stage.press("enter")
        await stage.draw()
        assert stage.line(0).startswith(" node4 ·")
        assert stage.line(1).startswith("░░ QUIET 4 m 12 s · silent here, while node1, node2 and 56 others still work")


async def test_without_colour_every_state_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with staged(sixteen()) as stage:
        assert stage.has("✖ SILENT STALL", "✖ SPINNING", "╳ NO LINK")
        assert {stage.app.inks[name].color for name in ("bad", "warn", "text", "cursor")} == {None}


@pytest.mark.parametrize("seed", range(12))
async def test_hostile_hosts_stay_in_their_cells(seed: int) -> None:
    async with staged([hostile.view(seed * 100 + number) for number in range(5)], (100, 30)) as stage:
        for keys in ((), ("j",), ("enter",), ("escape",)):
            await stage.press(*keys)
            await stage.draw()
            text = stage.text()
            assert "cannot be drawn" not in text
            assert "drawing failed" not in text
            assert max(cell_len(line) for line in text.splitlines()) <= 100
            assert not [char for char in text if ord(char) < 32 and char != "\n"]


@pytest.mark.parametrize("moment", sorted(MOMENTS))
async def test_no_size_crashes_and_no_line_is_too_long(moment: str) -> None:
    async with staged(MOMENTS[moment](), (80, 24)) as stage:
        for width, height in ((20, 5), (1, 1), (33, 9), (71, 30), (99, 18), (150, 70), (80, 24)):
            await stage.pilot.resize_terminal(width, height)
            await stage.later(1.0)
            text = stage.text()
            assert len(text.splitlines()) <= height
            assert "cannot be drawn" not in text
            assert "drawing failed" not in text


async def test_a_single_host_knows_no_nodes() -> None:
    assert not {action.id for action in NODES} & {action.id for action in ACTIONS}
    shared = {key for action in NODES for key in action.keys} & {key for action in ACTIONS for key in action.keys}
    assert not shared


async def test_nothing_is_known_yet() -> None:
    async with staged([launches.nothing("node1"), launches.nothing("node2")]) as stage:
        assert stage.has("◌ CONNECTING to 2 hosts", "◌ node1 ◌ CONNECTING", "link ○ 0/2")
        lost = replace(launches.unreachable(), host="node2", server=None)
        await stage.turn(1, lost)
        await stage.turn(0, replace(launches.nothing("node1"), now=launches.NOW + 1))
        assert stage.has("✖ node2 ╳ NO LINK")
