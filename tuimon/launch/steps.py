"""What to do next, in parts: what tuimon does is an act, which a screen words as a key and a script as a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Act = Literal["stacks", "diagnose", "collectives", "checkpoint", "next_error"]
"""Ids of the screen's table of actions."""
Way = Callable[[Act], str]
"""An act as an order, in small letters: `press s`, `run tuimon stacks gpu-17`."""


class Do(Struct, frozen=True):
    """Something that tuimon does."""

    act: Act


class Advice(Struct, frozen=True):
    """One sentence."""

    parts: tuple[str | Do, ...]

    def words(self, way: Way) -> str:
        """The sentence, worded for who reads it."""
        text = "".join(part if isinstance(part, str) else way(part.act) for part in self.parts)
        return text[:1].upper() + text[1:] if self.parts and isinstance(self.parts[0], Do) else text

    def after(self, words: str) -> Advice:
        """The same behind an introduction."""
        first, *rest = self.parts
        return Advice((words, f"{first[:1].lower()}{first[1:]}" if isinstance(first, str) else first, *rest))

    def ended(self) -> Advice:
        """The same with a full stop."""
        last = self.parts[-1]
        return self if isinstance(last, str) and last.endswith(".") else Advice((*self.parts, "."))
