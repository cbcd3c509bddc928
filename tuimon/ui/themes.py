"""Themes from TOML files, checked colour by colour: Textual accepts a bad colour and then dies of it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from tuimon.config import config_dir
from tuimon.ui.errors import BadTheme

FIELDS = (
    "background",
    "surface",
    "panel",
    "foreground",
    "primary",
    "secondary",
    "accent",
    "success",
    "warning",
    "error",
)
OWN = ("stall", "stall-text")
"""Colours that only tuimon knows: the stall banner."""


def folders() -> tuple[Path, ...]:
    """Where theme files are: the package's own, then the user's (which may replace them by name)."""
    package = Path(__file__).resolve().parents[1]
    shipped = package / "themes"
    return (shipped if shipped.is_dir() else package.parent / "themes", config_dir() / "themes")


def read(path: Path) -> Theme:
    """One theme file. Raises BadTheme with one sentence."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadTheme(f"Theme {path.name} cannot be read: {error}") from error
    colors = content.get("colors")
    if not isinstance(colors, dict):
        raise BadTheme(f"Theme {path.name} has no [colors] table")
    for field, value in colors.items():
        _check(path.name, field, value)
    absent = [field for field in FIELDS if field not in colors]
    if absent:
        raise BadTheme(f"Theme {path.name} lacks {', '.join(absent)}")
    dark, ansi = bool(content.get("dark", True)), bool(content.get("ansi", False))
    # Textual's own style sheets ask for these, and it dies where a theme of the terminal's colours lacks them.
    needed = BUILTIN_THEMES["ansi-dark" if dark else "ansi-light"].variables if ansi else {}
    return Theme(
        name=str(content.get("name", path.stem)),
        dark=dark,
        variables=needed | {field: colors[field] for field in OWN if field in colors},
        ansi=ansi,
        **{field: colors[field] for field in FIELDS},
    )


def _check(name: str, field: str, value: object) -> None:
    if field not in (*FIELDS, *OWN):
        raise BadTheme(f"Theme {name} has a colour {field!r} that nothing uses", f"Known: {', '.join((*FIELDS, *OWN))}")
    try:
        Color.parse(str(value))
    except ColorParseError as error:
        raise BadTheme(f"Theme {name}: {field} = {value!r} is no colour", "Write #rrggbb or a name") from error


def load() -> tuple[dict[str, Theme], list[str]]:
    """All themes that can be used, by name, and one sentence for each that cannot."""
    themes: dict[str, Theme] = {}
    complaints: list[str] = []
    for path in _files():
        try:
            theme = read(path)
        except BadTheme as error:
            complaints.append(error.sentence())
        else:
            themes[theme.name] = theme
    return themes, complaints


def _files() -> Iterator[Path]:
    for folder in folders():
        yield from sorted(folder.glob("*.toml"))
