"""Which rule a line matches, fast: most lines of a log differ from an earlier one only in their digits.

A line without its digits is its *shape*. For each shape it is remembered which patterns could match at all (their
required text occurs in it); only those run. Exact whatever the digits are, because the required text has none either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from tuimon.engines.prefix import Prefix
from tuimon.engines.prefix import parse as parse_prefix
from tuimon.engines.rule import DIGITS, Compiled, Rule

_SHAPES = 8192  # remembered at most; then all are forgotten: ~2 MB
_LONG = 2048  # bytes; shapes of longer lines are not remembered, they hardly come twice


Shape = tuple[tuple[Compiled, ...], bool]
"""Patterns that could match lines of this shape; whether they could hold a progress bar."""


class Found(Struct):
    """A line that means something."""

    rule: Rule
    prefix: Prefix
    message: bytes
    fields: re.Match[bytes]

    def text(self, name: str) -> str | None:
        """A named group as text; None where it took no part or the rule has none of this name."""
        if name not in self.fields.re.groupindex:
            return None
        value = self.fields[name]
        return None if value is None else value.decode("utf-8", "replace")

    def number(self, name: str) -> float | None:
        """A named group as a number."""
        text = self.text(name)
        try:
            return float(text.replace(",", "")) if text else None
        except ValueError:
            return None


class Matcher:
    """The rules of one engine, applied to lines. Not for several threads at once."""

    def __init__(self, patterns: Sequence[Compiled]) -> None:
        self._patterns = tuple(patterns)
        self.shapes: dict[bytes, Shape] = {}
        """What is known of each shape of line."""

    def shape(self, line: bytes) -> Shape:
        """The patterns that could match this line, and whether a progress bar could be in it."""
        shape = line.translate(None, DIGITS)
        known = self.shapes.get(shape)
        if known is None:
            fitting = tuple([pattern for pattern in self._patterns if pattern.need in shape])
            known = fitting, b"%" in shape and b"|" in shape
            if len(shape) < _LONG:
                if len(self.shapes) >= _SHAPES:
                    self.shapes.clear()
                self.shapes[shape] = known
        return known

    def run(self, line: bytes, patterns: tuple[Compiled, ...]) -> Found | None:
        """The first of these patterns that the line matches."""
        message, prefix = parse_prefix(line)
        for candidate in patterns:
            match = candidate.pattern.search(message)
            if match:
                return Found(candidate.rule, prefix, message, match)
        return None

    def find(self, line: bytes) -> Found | None:
        """The first rule that the line matches."""
        patterns, _ = self.shape(line)
        return self.run(line, patterns) if patterns else None

    def all(self, line: bytes) -> list[Rule]:
        """Every rule that the line matches: for tests of a grammar."""
        message, _ = parse_prefix(line)
        return [one.rule for one in self._patterns if one.pattern.search(message)]
