"""`tuimon config`: where settings come from, what they are, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import msgspec

from tuimon.config import Settings, config_dir, load, read_values, state_dir
from tuimon.configfile import mistakes


def path() -> int:
    """Print the places: settings, themes, grammars, and what is kept."""
    folder = config_dir()
    for name, place in (
        ("settings", folder / "config.toml"),
        ("themes", folder / "themes"),
        ("grammars", folder / "grammars"),
        ("state", state_dir()),
    ):
        click.echo(f"{name:9} {place}{'' if place.exists() else '  (not there)'}")
    return 0


def show() -> int:
    """Print all settings as TOML, each with where it comes from."""
    file = config_dir() / "config.toml"
    settings = load({})
    for line in lines(settings, read_values(file), os.environ, file):
        click.echo(line)
    return 0


def lines(settings: Settings, filed: Mapping[str, object], environ: Mapping[str, str], file: Path) -> Iterator[str]:
    """The settings as a file that could be written; a table comes last, as TOML wants it."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        variable = f"TUIMON_{name.upper()}"
        source = variable if variable in environ else str(file) if name in filed else "default"
        if isinstance(value, msgspec.Struct):
            continue
        if value is None:
            yield f"# {name} = …  # not set"
        elif not isinstance(value, dict):
            yield f"{name} = {_toml(value)}  # {source}"
    for name, table in (("patience", msgspec.to_builtins(settings.patience)), ("keys", settings.keys)):
        if table:
            yield f"\n[{name}]  # {file if name in filed else 'default'}"
            yield from (f"{key} = {_toml(value)}" for key, value in table.items())


def _toml(value: object) -> str:
    """JSON's strings, numbers and booleans are TOML's as well."""
    return msgspec.json.encode(value).decode()


def check(actions: tuple[str, ...]) -> int:
    """Say everything that is wrong with the settings file; exit code 2 if anything is."""
    file = config_dir() / "config.toml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        click.echo(f"{file} is not there: the defaults hold")
        return 0
    except (OSError, ValueError) as error:
        click.echo(f"{file} cannot be read: {error}", err=True)
        return 2
    wrong = mistakes(text, file, Settings, actions)
    for sentence in wrong:
        click.echo(sentence, err=True)
    if not wrong:
        load({})  # what the variables say is checked as well
        click.echo(f"{file} is fine")
    return 2 if wrong else 0
