"""What the screen may ask of a replay, beyond what any watching can do. Light: the screen imports it."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from tuimon.launch.view import State
from tuimon.watch.watching import Watching

SPEEDS = (1, 2, 5, 10, 20, 50, 100)
Jump = Literal["verdict", "milestone"]


class Spot(Struct, frozen=True):
    """A mark on the bar."""

    at: float
    kind: Jump
    text: str
    state: State | None = None


class Position(Struct, frozen=True):
    """Where a replay is. Instants are tuimon's clock of then."""

    begin: float
    end: float
    at: float
    playing: bool
    speed: float
    known: float
    """Up to here the recording has been looked through: jumps are quick, marks are known."""
    spots: tuple[Spot, ...] = ()
    then: State | None = None
    """The verdict of the time, where the recording has it."""
    notes: tuple[str, ...] = ()
    """What is wrong with the recording."""
    glimpsed: bool = False
    """What is shown is only what a watch would believe that joined two minutes before: the rest is still being read."""
    said: str = ""
    """Why the last wish came to nothing, or that it is still being worked on."""


@runtime_checkable
class Replaying(Watching, Protocol):
    """A watching that can be moved in time; everything returns at once."""

    @property
    def where(self) -> Position:
        """The position."""

    def toggle(self) -> None:
        """Play or pause; at the end, from the start."""

    def faster(self, steps: int) -> None:
        """So many speeds up, or down where negative."""

    def move(self, seconds: float) -> None:
        """So far ahead, or back where negative."""

    def go(self, *, end: bool) -> None:
        """To the start or the end."""

    def jump(self, kind: Jump, *, back: bool) -> None:
        """To the next mark of this kind, or the one before."""
