"""The log's own colours on the screen: as the server meant them, in the theme's words, and never unseen."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.color import ColorType
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from tests.ui import launches
from tests.ui.stage import Stage, staged
from tuimon.launch.view import LogLine
from tuimon.ui import loglines, pens, themes
from tuimon.ui.inks import Inks
from tuimon.ui.loglines import Look
from tuimon.ui.rows import clean, width_of
from tuimon.ui.search import compiled

THEMES, _ = themes.load()
COLORS = [f"color({n})" for n in (*range(16), 16, 52, 231, 232, 255)] + ["#000000", "#ffffff", "#808080", "#0000ff"]
WRITTEN = b"\x1b[32mINFO\x1b[0m: \x1b[1;31mrank 3\x1b[0m is late"
LINE = LogLine(0, "INFO: rank 3 is late", launches.NOW, written=WRITTEN)


def front_and_back(style: Style) -> tuple[Color, Color]:
    assert style.color
    assert style.bgcolor
    return Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)


@pytest.mark.parametrize("theme", [theme for theme in THEMES.values() if not theme.ansi], ids=lambda theme: theme.name)
def test_whatever_the_server_asks_for_can_be_read(theme: Theme) -> None:
    inks = Inks(theme)
    for front, back, how in itertools.product(["", *COLORS], ["", *COLORS], ["", "dim", "reverse"]):
        words = " ".join(word for word in (how, front, f"on {back}" if back else "") if word)
        assert pens.ratio(*front_and_back(inks[pens.PREFIX + words])) >= pens.CONTRAST, words


def test_in_the_terminals_own_colours_black_white_and_grounds_are_left_to_the_terminal() -> None:
    inks = Inks(THEMES["terminal"])
    for front, back in itertools.product(["", *COLORS], ["", *COLORS]):
        style = inks[f"{pens.PREFIX}{front} on {back}" if back else pens.PREFIX + front]
        assert style.bgcolor == inks["text"].bgcolor
        assert style.color
        assert style.color.type in {ColorType.DEFAULT, ColorType.STANDARD}
        assert style.color.number not in {0, 7, 8, 15}


def test_without_colours_only_shapes_are_left() -> None:
    style = Inks(THEMES["tuimon-dark"], no_color=True)[pens.PREFIX + "bold underline color(1) on #00ff00"]
    assert (style.color, style.bgcolor, style.bold, style.underline) == (None, None, True, True)


def test_many_colours_are_not_all_kept() -> None:
    inks = Inks(THEMES["tuimon-dark"])
    for number in range(3_000):
        assert inks[f"{pens.PREFIX}#{number:06x}"]
    assert len(inks._pens) <= 500


def test_a_line_has_its_colours_its_mark_and_its_hits() -> None:
    line = replace(LINE, severity="error", number=7)
    (row,) = loglines.entry(line, 60, Look(pattern=compiled("is")))
    shown = [(text, ink) for text, ink in row if text.strip()]
    assert shown == [
        ("✖ ", "bad"), ("INFO", "pen color(2)"), (": ", "bad"), ("rank 3", "pen bold color(1)"), ("is", "hit"),
        (" late", "bad"),
    ]  # fmt: skip
    assert all(ink == "cursor" for _, ink in loglines.entry(line, 60, Look(), marked=True)[0])


def test_a_hit_may_lie_across_colours() -> None:
    (row,) = loglines.entry(LINE, 60, Look(pattern=compiled("info: rank")))
    assert "".join(text for text, ink in row if ink == "hit") == "INFO: rank"


def test_our_own_questions_stay_faint() -> None:
    (row,) = loglines.entry(replace(LINE, ours=True), 60, Look())
    assert {ink for text, ink in row if text.strip()} == {"faint"}


SGR = st.sampled_from(["", "0", "1;31", "38;5;9", "48;2;1;2;3", "7", "39;49", "8", ";", "38;2;1"])
WORDS = st.text(alphabet="ab 日é\u0301👍\t", max_size=12)


@given(
    st.lists(st.tuples(SGR, WORDS), max_size=12), st.integers(4, 60), st.booleans(), st.sampled_from(["", "a", "日"])
)
def test_colours_never_move_a_cell(pieces: list[tuple[str, str]], width: int, wrap: bool, wanted: str) -> None:
    written = "".join(f"\x1b[{sgr}m{text}" for sgr, text in pieces).encode()
    text = "".join(text for _, text in pieces).replace("\t", "    ")
    look = Look(wrap=wrap, pattern=compiled(wanted))
    plain, coloured = LogLine(0, text, 0.0), LogLine(0, text, 0.0, written=written)
    with_colours = loglines.entry(coloured, width, look)
    assert ["".join(t for t, _ in row) for row in loglines.entry(plain, width, look)] == [
        "".join(t for t, _ in row) for row in with_colours
    ]
    assert all(width_of(row) <= width for row in with_colours)
    assert all(clean(part) == part for row in with_colours for part, _ in row)


async def test_copying_and_searching_know_no_colours() -> None:
    lines = launches.Window([replace(LINE, number=n) for n in range(3)])
    async with staged(replace(launches.starting(), lines=lines), (80, 24)) as stage:
        assert ("rank 3", True) in styled(stage)
        await stage.press("y")
        assert set(stage.app.clipboard.splitlines()) == {"INFO: rank 3 is late"}
        await stage.press("slash", *"3 is", "enter")
        assert "no match" not in stage.line(-1)


def styled(stage: Stage) -> list[tuple[str, bool]]:
    """(text, is bold) of each piece of the screen."""
    strips = stage.app.screen._compositor.render_strips()
    return [(segment.text, bool(segment.style and segment.style.bold)) for strip in strips for segment in strip]
