"""Text from outside is text: never markup, never an escape sequence, never wider than its cell."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from tests.ui import launches
from tests.ui.stage import staged
from tuimon.launch.steps import Advice
from tuimon.launch.view import LaunchView, LogLine, ProcessView, Verdict
from tuimon.ui import title
from tuimon.ui.actions import ACTIONS
from tuimon.ui.loglines import Look, entry
from tuimon.ui.rows import cells, clean, cut, fit, frame, left, shorten, width_of

NASTY = (
    "[bold red]not markup[/] [/nope] [@click=app.quit]x[/]",
    "\x1b]0;pwned\x07\x1b[2J\x1b[31mred\x9b1m",
    "日本語のログ行 " * 20,
    "e\u0301\u0301\u0301 combining \u200b\u200e\u202e bidi \ufeff",
    "👩‍👩‍👧‍👦 🇩🇪 👍🏽 ☎️ family",
    "tab\there\rcarriage\nnewline\x00null",
    "\ud800 lone surrogate",
)


@pytest.mark.parametrize("text", NASTY)
async def test_hostile_text_everywhere_is_shown_harmlessly(text: str) -> None:
    view = launches.stall()
    view = replace(
        view, host=text,
        server=replace(launches.SERVER, model=text, log=text, engine=text, version=text, ranks=(text,)),
        lines=launches.Window([LogLine(0, text, launches.NOW, clock=text, rank=text, severity="error")]),
        processes=(ProcessView(text, (1,), "S", text, 1.0, 1, 1, note=text),),
        verdict=replace(view.verdict, headline=text, advice=Advice((text,))), error=text, commands=(text,),
    )  # fmt: skip
    async with staged(view, (100, 30)) as stage:
        await stage.press("w")
        for line in stage.text().splitlines():
            assert cell_len(line) <= 100
            assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Mn"} for char in line)
        assert stage.has("╭─ Log")
        assert "cannot be drawn" not in stage.text()
        await stage.press("at")
        await stage.crank()
        assert "cannot be drawn" not in stage.text()


async def test_a_line_of_a_hundred_thousand_characters_is_cut_with_a_mark() -> None:
    line = LogLine(0, "x" * 100_000, launches.NOW)
    async with staged(replace(launches.stall(), lines=launches.Window([line])), (80, 24)) as stage:
        assert any(text.rstrip(" │").endswith("xxx…") for text in stage.text().splitlines())
        await stage.press("w")
        assert "cannot be drawn" not in stage.text()


@given(st.text(max_size=80), st.integers(0, 60))
@settings(max_examples=300, deadline=None)
def test_any_text_fits_its_cells(text: str, width: int) -> None:
    tame = clean(text)
    assert clean(tame) == tame
    assert cells(cut(tame, width)) <= width
    assert cells(shorten(tame, width)) <= width
    assert cells(left(tame, width)) == width
    assert width_of(fit(((tame, "text"), (tame, "dim")), width)) == width


@given(st.text(max_size=60), st.text(max_size=60), st.integers(1, 50), st.integers(0, 8))
@settings(max_examples=200, deadline=None)
def test_any_frame_is_as_big_as_asked(title: str, words: str, width: int, height: int) -> None:
    rows = frame([((clean(words), "text"),)] * 3, width, height, clean(title), aside=clean(words))
    assert len(rows) == height
    assert all(width_of(row) == width for row in rows)


@given(st.text(max_size=200), st.integers(20, 90), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_log_line_keeps_its_width(text: str, width: int, wrap: bool) -> None:
    line = LogLine(0, text, launches.NOW, clock="15:00:00", rank="TP0")
    for row in entry(line, width, Look(wrap=wrap, rank_width=4)):
        assert width_of(row) <= width


async def test_a_pane_that_fails_says_so_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("tuimon.ui.gpus.rows", fail)
    async with staged(launches.stall()) as stage:
        assert stage.has("gpus cannot be drawn: ZeroDivisionError: nothing to divide by", "SILENT STALL", "╭─ Launch")


async def test_a_view_that_cannot_be_read_costs_only_the_parts_that_need_it() -> None:
    async with staged(launches.stall()) as stage:
        broken = replace(launches.stall(), phases=None)  # what a bug elsewhere could give us
        await stage.crank(broken)
        assert stage.has("launch cannot be drawn: TypeError", "SILENT STALL", "0 TP0", "following")
        await stage.crank(launches.quiet())
        assert stage.has("QUIET 14 s", "✔ arguments")


async def test_an_action_whose_reason_fails_is_disabled_and_the_screen_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_view: LaunchView) -> str | None:
        raise ValueError("zip")

    monkeypatch.setattr("tuimon.ui.app.ACTIONS", tuple(replace(action, why=fail) for action in ACTIONS))
    async with staged(launches.stall()) as stage:
        assert stage.has("SILENT STALL", "╭─ GPUs")
        await stage.press("s")
        assert "stacks: tuimon's own error: ValueError: zip" in stage.line(-1)


def test_the_title_of_the_terminal_carries_the_verdict_and_no_escape_codes() -> None:
    assert title.words(launches.starting()) == "⏳ weights 64 % · gpu-17"
    assert title.words(launches.stall()) == "✖ STALLED 4m · gpu-17"
    assert title.words(launches.serving()) == "✔ serving · gpu-17"
    hostile = replace(launches.stall(), host="a\x1b]0;b\x07", verdict=Verdict("waiting", launches.NOW, ""))
    assert title.sequence(title.words(hostile)).count("\x1b") == 2
