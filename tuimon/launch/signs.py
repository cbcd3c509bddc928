"""What a sign of life is: its own clock, its own words, and whether it can be seen here at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tuimon.launch.events import Sample
from tuimon.launch.gpus import Gpus
from tuimon.launch.rates import Rates
from tuimon.launch.view import SignView

ALIVE_SECONDS = 5.0


class Look(Struct, frozen=True):
    """What one sample shows beside the one before it."""

    at: float
    before: Sample | None
    sample: Sample
    rates: Mapping[int, Rates]
    seconds: float | None
    """Between the two, by the host's monotonic clock; None for the first."""
    gpus: Gpus


class Sign:
    """A sign of life. `last` is on tuimon's clock, None = never since we look."""

    name = "?"

    def __init__(self) -> None:
        self.last: float | None = None
        self.visible = False
        self.absent = False
        """This machine cannot have it (no GPU): not missing, just not there."""
        self.text = "not looked yet"
        self.proof = ""
        """What counted when it was last seen, in words for the banner; "" = its name and its reading say it."""

    def seen(self, at: float, proof: str = "") -> None:
        """It was there."""
        self.proof = proof
        self.last = at if self.last is None else max(self.last, at)

    def hidden(self, why: str, *, absent: bool = False) -> None:
        """It cannot be seen."""
        self.visible = False
        self.absent = absent
        self.text = why

    def view(self, now: float) -> SignView:
        """For the screen."""
        alive = self.last is not None and now - self.last <= ALIVE_SECONDS
        return SignView(name=self.name, last=self.last, visible=self.visible, text=self.text, alive=alive)


class SampledSign(Protocol):
    """A sign that is read from samples."""

    def see(self, look: Look) -> None:
        """Read one sample."""


def size(count: float) -> str:
    """Bytes (or bytes per second) in short."""
    for unit in ("B", "KB", "MB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
