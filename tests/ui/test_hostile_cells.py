"""However hostile the text: every frame stands in its column, in our own arithmetic and in a real terminal's."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.geometry import Region

from tests.e2e.tmux import pane
from tests.ui import hostile
from tests.ui.stage import staged
from tuimon.ui.boardscreen import BoardScreen

SIZES = ((120, 40), (80, 24), (60, 16), (200, 60), (50, 60), (200, 12))
SEEDS = range(48)
FORBIDDEN = {"Cc", "Cf", "Cs", "Mn", "Me"}
PROGRAM = str(Path(hostile.__file__))
REGIONS = {"launch", "gpus", "growth", "signs", "processes", "health", "log"}


def by_cell(line: str) -> list[str]:
    """The line as cells: a wide character stands in the first of its two."""
    cells: list[str] = []
    for char in line:
        cells += [char, *[""] * (cell_len(char) - 1)]
    return cells


def crooked(lines: list[str], places: dict[str, Region]) -> list[str]:
    """Each pane whose frame does not stand where it was put."""
    rows = [by_cell(line) for line in lines]
    return [
        f"{name} line {y}: {lines[y]!r}"
        for name, place in places.items()
        if name in REGIONS and place.height > 2
        for y in range(place.y + 1, place.bottom - 1)
        if len(rows[y]) < place.right or rows[y][place.x] != "│" or rows[y][place.right - 1] != "│"
    ]


@pytest.mark.parametrize("first", range(0, len(SEEDS), 12))
async def test_no_hostile_launch_moves_a_frame(first: int) -> None:
    async with staged(hostile.view(0), SIZES[0]) as stage:
        for seed in SEEDS[first : first + 12]:
            size = SIZES[seed % len(SIZES)]
            await stage.pilot.resize_terminal(*size)
            if seed % 3 == 0:
                await stage.press("w")
            await stage.crank(hostile.view(seed))
            board = stage.app.screen
            assert isinstance(board, BoardScreen)
            strips = board._compositor.render_strips()
            assert [strip.cell_length for strip in strips] == [size[0]] * size[1], f"seed {seed}"
            lines = [strip.text for strip in strips]
            assert not crooked(lines, board.board.placed), f"seed {seed}"
            assert not [char for char in "".join(lines) if unicodedata.category(char) in FORBIDDEN], f"seed {seed}"
            assert "cannot be drawn" not in "".join(lines), f"seed {seed}"


@pytest.mark.parametrize("key", ["@", "i", "?"])
async def test_no_hostile_launch_moves_the_frame_of_another_screen(key: str) -> None:
    names = {"@": "at", "i": "i", "?": "question_mark"}
    async with staged(hostile.view(1), (80, 24)) as stage:
        await stage.press(names[key])
        for seed in range(6):
            await stage.crank(hostile.view(seed))
            lines = [strip.text for strip in stage.app.screen._compositor.render_strips()]
            framed = [by_cell(line) for line in lines if line.startswith("│")]
            assert len(framed) > 10
            assert all(cells[79] == "│" for cells in framed)


@pytest.mark.parametrize("seed", [3, 11])
def test_a_real_terminal_agrees(seed: int) -> None:
    with pane([sys.executable, PROGRAM, str(seed)], (120, 40)) as terminal:
        shown = terminal.wait("q quit", 15)  # the last line that is drawn
        lines = [line for line in shown.splitlines() if line.startswith("│")]
        assert len(lines) > 20
        wrong = [line for line in lines if len(by_cell(line)) != 120 or by_cell(line)[119] != "│"]
        assert not wrong, "\n".join(wrong)
