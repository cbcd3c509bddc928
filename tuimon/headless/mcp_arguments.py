"""The arguments of an assistant's tools: told beforehand, held against each call. Every fault is one sentence."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct

from tuimon.headless.plain import plain

LONGEST = 1000
"""Characters of a text: a HOST has at most some 320, and no log lies that deep."""
_QUOTED = 60
"""Characters of a wrong value that are said back."""


class Argument(Struct, frozen=True):
    """One argument of a tool."""

    name: str
    words: str
    """What it is, for the client."""
    required: bool
    number: bool
    choices: tuple[str, ...] = ()
    """The words that are allowed; () = any."""

    def fault(self, value: object) -> str | None:
        """Why this value cannot be it, None where it can: `must be …, not …`."""
        if self.number:
            return None if _finite(value) else f"must be a number, not {quoted(value)}: {self.words}"
        if self.choices:
            return None if value in self.choices else f"must be {listed(self.choices, 'or')}, not {quoted(value)}"
        return self._of_text(value)

    def _of_text(self, value: object) -> str | None:
        if not isinstance(value, str):
            return f"must be a text, not {quoted(value)}: {self.words}"
        if not value.strip():
            return f"is empty: {self.words}"
        if len(value) > LONGEST:
            return f"has {len(value)} characters, {LONGEST} are allowed: {self.words}"
        if plain(value, LONGEST) != value:
            return f"has characters that do not print in {quoted(value)}: write it without them"
        return None


def of_tool(tool: Callable[..., object]) -> tuple[Argument, ...]:
    """The arguments of a function whose parameters are `Annotated[str | float | Literal, "what it is"]`."""
    parameters = inspect.signature(tool, eval_str=True).parameters.values()
    return tuple(_argument(parameter) for parameter in parameters)


def _argument(parameter: inspect.Parameter) -> Argument:
    kind, words = get_args(parameter.annotation)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    required = parameter.default is inspect.Parameter.empty
    return Argument(parameter.name, words, required, kind is float, choices)


def described(schema: Mapping[str, Any], wanted: Sequence[Argument]) -> dict[str, Any]:
    """The tool's JSON schema with what each argument is; others are not allowed."""
    words = {argument.name: argument.words for argument in wanted}
    properties = {name: {**kind, "description": words[name]} for name, kind in schema["properties"].items()}
    return {**schema, "properties": properties, "additionalProperties": False}


def fault(tool: str, wanted: Sequence[Argument], given: Mapping[str, object]) -> str | None:
    """What is wrong with these arguments, one sentence; None where nothing is."""
    known = {argument.name: argument for argument in wanted}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        return f"{tool} has no argument {quoted(unknown)}. It takes {listed(tuple(known))}."
    for name, argument in known.items():
        if name in given:
            wrong = argument.fault(given[name])
            if wrong is not None:
                return f"The argument {name} of {tool} {wrong}."
        elif argument.required:
            return f"{tool} needs the argument {name}: {argument.words}."
    return None


def quoted(value: object) -> str:
    """A value of the client's as it may be said back: short, and nothing in it does anything."""
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return plain(repr(value[:_QUOTED]) + "…" if isinstance(value, str) and len(value) > _QUOTED else repr(value), 200)


def listed(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _finite(value: object) -> bool:
    """A number, also one in quotes: assistants write both."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(value))
    except (ValueError, OverflowError):
        return False
