"""Themes come from files, are checked before they are used, and NO_COLOR needs none."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color

from tests.ui import launches
from tests.ui.stage import staged
from tuimon.config import Settings
from tuimon.ui import themes
from tuimon.ui.errors import BadTheme
from tuimon.ui.inks import Inks

GOOD = 'name = "mine"\n[colors]\n' + "\n".join(f'{field} = "#102030"' for field in themes.FIELDS)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_all_shipped_themes_can_be_used() -> None:
    known, complaints = themes.load()
    assert complaints == []
    assert {"tuimon-dark", "tuimon-light"} <= set(known)
    for theme in known.values():
        Inks(theme)
        Inks(theme, no_color=True)


def luminance(color: Color) -> float:
    def channel(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    assert color.triplet is not None
    return sum(weight * channel(value) for weight, value in zip((0.2126, 0.7152, 0.0722), color.triplet, strict=True))


@pytest.mark.parametrize("name", sorted(set(themes.load()[0]) - {"terminal"}))
def test_words_can_be_read_in_every_theme(name: str) -> None:
    inks = Inks(themes.load()[0][name])
    for ink in (
        "text", "strong", "dim", "good", "warn", "bad", "suspect", "red", "reddim", "amber", "amberdim", "green",
        "greendim", "calm", "calmdim", "head", "headdim", "key", "keytext", "hit", "paused", "said",
    ):  # fmt: skip
        front, back = inks[ink].color, inks[ink].bgcolor
        assert front is not None
        assert back is not None
        high, low = sorted((luminance(front), luminance(back)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{ink} in {name}"


@pytest.mark.parametrize("name", sorted(themes.load()[0]))
async def test_every_theme_dresses_every_screen(name: str) -> None:
    async with staged(launches.stall(), (80, 24), Settings(theme=name)) as stage:
        assert stage.app.theme == name
        for keys in (("question_mark",), ("escape", "slash"), ("escape", "ctrl+p"), ("escape", "at"), ("escape", "a")):
            await stage.press(*keys)
        assert stage.app.is_running


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not toml = = ", "cannot be read"),
        ('name = "x"', r"has no \[colors\]"),
        (GOOD.replace("#102030", "greenish", 1), "'greenish' is no colour"),
        (GOOD + '\nbakground = "red"', "'bakground' that nothing uses"),
        ('[colors]\nprimary = "red"', "lacks background, surface"),
    ],
)
def test_a_bad_theme_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadTheme, match=words):
        themes.read(write(tmp_path, text))


async def test_a_bad_theme_of_the_user_does_not_stop_the_app(tmp_path: Path) -> None:
    write(tmp_path / "config" / "themes", GOOD.replace("#102030", "greenish", 1))
    async with staged(launches.stall(), (160, 40)) as stage:
        assert "'greenish' is no colour" in stage.line(-1)
        assert stage.app.theme == "tuimon-dark"


async def test_the_users_theme_is_used(tmp_path: Path) -> None:
    write(tmp_path / "config" / "themes", GOOD)
    async with staged(launches.stall(), settings=Settings(theme="mine")) as stage:
        assert stage.app.theme == "mine"


async def test_an_unknown_theme_is_a_sentence() -> None:
    async with staged(launches.stall(), settings=Settings(theme="dracu")) as stage:
        assert "there is no theme 'dracu'" in stage.line(-1)


async def test_changing_the_theme_repaints_everything() -> None:
    async with staged(launches.stall()) as stage:
        before = stage.app.screen._compositor.render_strips()[20]._segments[0].style
        stage.app.theme = "tuimon-light"
        await stage.pilot.pause()
        await stage.crank()
        after = stage.app.screen._compositor.render_strips()[20]._segments[0].style
        assert before != after
        assert stage.has("SILENT STALL")


async def test_no_color_uses_no_colour_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with staged(launches.stall()) as stage:
        styles = [segment.style for strip in stage.app.screen._compositor.render_strips() for segment in strip]
        assert all(style is None or (style.color is None and style.bgcolor is None) for style in styles)
        assert any(style is not None and style.reverse for style in styles)


async def test_a_theme_that_is_edited_is_shown_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "config" / "themes", GOOD)
    async with staged(launches.stall(), settings=Settings(theme="mine")) as stage:
        path.write_text(GOOD.replace('background = "#102030"', 'background = "#a0b0c0"'))
        for _ in range(60):  # the change arrives through the file system, in its own time
            await stage.pilot.pause(0.05)
            strip = stage.app.screen._compositor.render_strips()[20]
            style = next(segment.style for segment in strip if segment.style)
            if style.bgcolor and style.bgcolor.triplet and style.bgcolor.triplet.hex == "#a0b0c0":
                return
            path.touch()
        pytest.fail("the new background was not shown within 3 s")
