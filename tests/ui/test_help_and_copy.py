"""Finding a key in the help, going to bad lines, and copying over ssh and through tmux."""

from __future__ import annotations

from base64 import b64decode

import pytest
from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import staged
from tuimon.ui import clipboard
from tuimon.ui.rows import shorten


async def test_help_is_searched_and_the_search_taken_back() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("question_mark", "slash", *"stacks", "enter")
        await stage.crank()
        assert stage.has("keys have “stacks”", "Read all ranks' Python stacks")
        assert "Wrap long log lines" not in stage.text()
        await stage.press("slash", "enter")
        await stage.crank()
        assert stage.has("Search the log by regular expression")
        assert "keys have" not in stage.text()
        await stage.press("slash", *"q", "escape")
        await stage.press("escape")
        assert stage.has("╭─ Launch")


async def test_b_goes_to_warnings_and_errors() -> None:
    said = [launches.line(n, "15:00:00", None, f"line {n:03}") for n in range(200)]
    said[20] = replace(said[20], text="a warning", severity="warning")
    said[90] = replace(said[90], text="an error", severity="error")
    async with staged(replace(launches.starting(), lines=launches.Window(said))) as stage:
        await stage.press("g", "b")
        assert stage.has("▲ 15:00:00     a warning")
        await stage.press("b")
        assert stage.has("✖ 15:00:00     an error")
        await stage.press("b")
        assert "no warning or error below: on from the start" in stage.line(-1)
        assert stage.has("▲ 15:00:00     a warning")
        await stage.press("B")
        assert "no warning or error above: on from the end" in stage.line(-1)
        assert stage.has("✖ 15:00:00     an error")


def test_copying_asks_the_terminal_and_in_tmux_also_the_one_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    plain = clipboard.sequence("stall · 日本")
    assert plain.startswith("\x1b]52;c;")
    assert b64decode(plain[7:-1]).decode() == "stall · 日本"
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    assert clipboard.sequence("stall · 日本") == f"{plain}\x1bPtmux;\x1b{plain}\x1b\\"


def test_what_is_copied_is_never_more_than_terminals_take() -> None:
    kept = clipboard.limited("é" * 100_000)
    assert len(kept.encode()) <= clipboard.LIMIT
    assert len(clipboard.sequence(kept)) < 75_100


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (80, "sampled only when a launch has gone quiet"),
        (30, "sampled only when a launch…"),
        (29, "sampled only when a launch…"),
        (12, "sampled…"),
        (5, "samp…"),
        (0, ""),
    ],
)
def test_sentences_are_cut_between_words(width: int, short: str) -> None:
    assert shorten("sampled only when a launch has gone quiet", width) == short


def test_a_word_is_never_cut_where_there_is_one_before_it_but_a_long_name_is() -> None:
    assert shorten("8 % everywhere, 119-120 W", 12) == "8 %…"
    assert shorten("in DefaultModelLoader.load_weights", 18) == "in DefaultModelLo…"
    assert shorten("everywhere", 6) == "every…"
