"""Inks: the names that rows are written in, and what the theme makes of them."""

from __future__ import annotations

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from tuimon.ui import pens

_MOST_PENS = 500
# name: (foreground, background, attributes); a word is a field of the theme, a pair "a+b" is b on the way to a.
_RECIPES: dict[str, tuple[str, str, str]] = {
    "text": ("foreground", "background", ""),
    "strong": ("foreground", "background", "bold"),
    "dim": ("foreground*0.7", "background", ""),
    "faint": ("foreground*0.46", "background", ""),
    "line": ("foreground*0.28", "background", ""),
    "focus": ("accent", "background", ""),
    "title": ("foreground*0.85", "background", "bold"),
    "good": ("success", "background", ""),
    "warn": ("warning", "background", ""),
    "bad": ("error", "background", "bold"),
    "accent": ("accent", "background", ""),
    "bar": ("primary", "background", ""),
    "mem": ("secondary", "background", ""),
    "rest": ("foreground*0.25", "background", ""),
    "suspect": ("error", "background", "bold"),
    "hit": ("background", "warning", "bold"),
    "cursor": ("foreground", "panel", ""),
    "red": ("stall-text", "stall", "bold"),
    "reddim": ("stall-text", "stall", ""),
    "rededge": ("stall", "stall", ""),
    "amber": ("warning", "warning*0.16", "bold"),
    "amberdim": ("foreground", "warning*0.16", ""),
    "green": ("success", "success*0.14", "bold"),
    "greendim": ("foreground", "success*0.14", ""),
    "calm": ("foreground", "panel", ""),
    "calmdim": ("foreground*0.7", "panel", ""),
    "head": ("foreground", "surface", "bold"),
    "headdim": ("foreground*0.7", "surface", ""),
    "headgood": ("success", "surface", ""),
    "headwarn": ("warning", "surface", "bold"),
    "headbad": ("error", "surface", "bold"),
    "key": ("accent", "surface", "bold"),
    "keytext": ("foreground*0.8", "surface", ""),
    "keyoff": ("foreground*0.46", "surface", ""),
    "paused": ("background", "warning", "bold"),
    "said": ("foreground", "panel", "bold"),
}

# Without colour a banner is reversed, what matters is bold, and the rest is plain.
_MONO = {"rededge": "reverse", "red": "bold reverse", "reddim": "reverse", "hit": "reverse", "paused": "reverse"}


class Inks:
    """Styles by ink name for one theme."""

    def __init__(self, theme: Theme, *, no_color: bool = False) -> None:
        self._theme, self._no_color = theme, no_color
        self._pens: dict[str, Style] = {}
        self._styles = {
            name: Style.parse(_MONO.get(name, extra)) if no_color else _mix(theme, front, back, extra)
            for name, (front, back, extra) in _RECIPES.items()
        }

    def __getitem__(self, name: str) -> Style:
        return self._styles.get(name) or (self._pen(name) if name.startswith(pens.PREFIX) else self._styles["text"])

    def _pen(self, name: str) -> Style:
        """A colour of the log's own; at most so many are kept, it may have sixteen million."""
        if name not in self._pens:
            if len(self._pens) >= _MOST_PENS:
                self._pens.clear()
            words = name.removeprefix(pens.PREFIX)
            self._pens[name] = pens.style(words, self._theme, self._styles["text"], no_color=self._no_color)
        return self._pens[name]


def _mix(theme: Theme, front: str, back: str, extra: str) -> Style:
    ground = _field(theme, "background", None)
    over = _field(theme, back, ground)
    style = Style(color=_field(theme, front, over).rich_color, bgcolor=over.rich_color)
    return style + Style.parse(extra) if extra else style


def _field(theme: Theme, recipe: str, ground: Color | None) -> Color:
    name, _, share = recipe.partition("*")
    text = theme.variables.get(name) or getattr(theme, name.replace("-", "_"), None) or _fallback(theme, name)
    color = Color.parse(text)
    # The terminal's own colours cannot be mixed.
    if not share or ground is None or color.ansi is not None or ground.ansi is not None:
        return color
    return ground.blend(color, float(share))


def _fallback(theme: Theme, name: str) -> str:
    if name == "stall":
        return theme.error or "#c01c28"
    if name == "stall-text":
        return "#ffffff"
    dark = {"background": "#121212", "surface": "#1e1e1e", "panel": "#262a30", "foreground": "#e0e0e0"}
    light = {"background": "#ffffff", "surface": "#eeeeee", "panel": "#e0e4ea", "foreground": "#1a1a1a"}
    rest = {"success": "#4ebf71", "warning": "#ffa62b", "error": "#c01c28"}
    return {**rest, **(dark if theme.dark else light)}.get(name) or theme.primary
