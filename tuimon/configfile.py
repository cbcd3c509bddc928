"""What is wrong in a settings file, all of it at once: where it stands, what it says, what was probably meant."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*["']?([\w.-]+)["']?\s*=""")


def mistakes(text: str, path: Path, model: type[Struct], actions: Collection[str] = ()) -> tuple[str, ...]:
    """One sentence for each key of the file that cannot be used; `actions`: what [keys] may name (empty = anything)."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (f"{path}: not TOML: {error}",)
    return tuple(_mistakes(values, places(text), path, model, actions))


def places(text: str) -> dict[str, int]:
    """`table.key` → line number, as well as a look at single lines can tell."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = f"{match[1]}."
            found.setdefault(match[1], number)
        elif match := _KEY.match(line):
            found.setdefault(f"{table}{match[1]}", number)
    return found


def _mistakes(
    values: Mapping[str, Any], lines: Mapping[str, int], path: Path, model: type[Struct], actions: Collection[str]
) -> Iterator[str]:
    fields = {field.name: field for field in msgspec.structs.fields(model)}
    for key, value in values.items():
        where = f"{path}:{lines[key]}" if key in lines else str(path)
        if key not in fields:
            yield unknown(where, "setting", key, fields)
        elif isinstance(value, dict) and (inner := _struct(fields[key])) is not None:
            deeper = {name.removeprefix(f"{key}."): line for name, line in lines.items() if name.startswith(f"{key}.")}
            yield from _mistakes(value, deeper, path, inner, ())
        elif key == "keys" and isinstance(value, dict) and actions:
            for name in (name for name in value if name not in actions):
                at = f"{path}:{lines[f'keys.{name}']}" if f"keys.{name}" in lines else where
                yield unknown(at, "action", name, actions)
        elif (why := _unfit(value, fields[key])) is not None:
            yield f"{where}: {key}: {why}"


def _struct(field: FieldInfo) -> type[Struct] | None:
    return field.type if isinstance(field.type, type) and issubclass(field.type, Struct) else None


def _unfit(value: object, field: FieldInfo) -> str | None:
    try:
        msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def unknown(where: str, kind: str, name: str, known: Collection[str]) -> str:
    """`config.toml:3: unknown setting "prot", did you mean "port"?`"""
    near = get_close_matches(name.lower(), known, 1, 0.5)
    meant = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
    return f'{where}: unknown {kind} "{name}", {meant}'
