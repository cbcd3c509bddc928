"""The log's own colours in the theme's: what the server wrote red is red here, and nothing can be written unseen."""

from __future__ import annotations

from functools import cache

from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

PREFIX = "pen "
"""Begins the ink of a log's own colours; `launch.colours.Runs` says what follows."""
CONTRAST = 3.0
"""WCAG's least ratio for large text: below it black on black begins."""
# The sixteen, in the theme's words; a share is one on the way to the background.
_SIXTEEN = (
    "foreground*0.5", "error", "success", "warning", "primary", "secondary", "accent", "foreground*0.85",
    "foreground*0.6", "error", "success", "warning", "primary", "secondary", "accent", "foreground",
)  # fmt: skip
_UNSAFE = {0, 7, 15}
"""Of the terminal's own sixteen: black and white; whichever its background is, nobody sees one of them."""
_GREY = 8


def style(words: str, theme: Theme, text: Style, *, no_color: bool) -> Style:
    """The style for `words`; `text` is the style of plain text in this theme."""
    asked = Style.parse(words)
    attributes = Style(
        bold=asked.bold, italic=asked.italic, underline=asked.underline, strike=asked.strike, dim=asked.dim,
        reverse=asked.reverse,
    )  # fmt: skip
    if no_color:
        return text + attributes
    if theme.ansi:
        return text + attributes + _of_the_terminal(asked.color)
    return _mixed(asked, theme, text) + attributes.without_color + Style(dim=False, reverse=False)


def _of_the_terminal(color: RichColor | None) -> Style:
    if color is None:
        return Style()
    number = color.downgrade(ColorSystem.STANDARD).number
    if number is None or number in _UNSAFE:
        return Style()
    return Style(dim=True) if number == _GREY else Style(color=RichColor.from_ansi(number))


def _mixed(asked: Style, theme: Theme, text: Style) -> Style:
    ground, plain = _plain(text)
    front = _rgb(asked.color, theme, ground, plain) if asked.color else plain
    back = _rgb(asked.bgcolor, theme, ground, plain) if asked.bgcolor else ground
    if asked.reverse:
        front, back = back, front
    if asked.dim:
        front = back.blend(front, 0.65)
    return Style(color=seen(front, back, plain).rich_color, bgcolor=back.rich_color)


def _plain(text: Style) -> tuple[Color, Color]:
    ground = Color.from_rich_color(text.bgcolor)
    return ground, Color.from_rich_color(text.color)


def _rgb(color: RichColor, theme: Theme, ground: Color, plain: Color) -> Color:
    number = color.number
    if color.triplet is None and number is not None and number < 16:
        name, _, share = _SIXTEEN[number].partition("*")
        of_theme = plain if name == "foreground" else Color.parse(getattr(theme, name) or theme.primary)
        return ground.blend(of_theme, float(share)) if share else of_theme
    return Color.from_rich_color(color)


def seen(front: Color, back: Color, plain: Color) -> Color:
    """`front`, or as little brought towards plain text (or black, or white) as can be read on `back`."""
    best = max((plain, Color(255, 255, 255), Color(0, 0, 0)), key=lambda color: ratio(color, back))
    if ratio(plain, back) >= CONTRAST:
        best = plain
    for share in (0.0, 0.25, 0.5, 0.75):
        mixed = front.blend(best, share)
        if ratio(mixed, back) >= CONTRAST:
            return mixed
    return best


def ratio(one: Color, other: Color) -> float:
    """WCAG's contrast, 1–21."""
    light, dark = sorted((_luminance(one.rgb), _luminance(other.rgb)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@cache
def _linear(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def _luminance(rgb: tuple[int, int, int]) -> float:
    red, green, blue = rgb
    return 0.2126 * _linear(red) + 0.7152 * _linear(green) + 0.0722 * _linear(blue)
