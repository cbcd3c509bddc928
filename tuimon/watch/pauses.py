"""When to try again, and when to look again. Pure: time comes in."""

from __future__ import annotations

import random
from collections.abc import Callable

from tuimon.launch.view import LaunchView


class Backoff:
    """Full jitter, 1 → 30 s: many watchers of one host must not come back in step."""

    def __init__(self, first: float = 1.0, most: float = 30.0, chance: Callable[[], float] = random.random) -> None:
        self._first = first
        self._most = most
        self._chance = chance
        self._tries = 0

    def next(self) -> float:
        """Seconds until the next try; never less than a fifth of a second."""
        ceiling = min(self._most, self._first * 2.0 ** min(self._tries, 16))
        self._tries += 1
        return max(0.2, self._chance() * ceiling)

    def reset(self) -> None:
        """It worked."""
        self._tries = 0


class Looks:
    """How often the stacks are looked at while the judge asks for it: the dearest sign of life."""

    EVERY = 4.0
    """Seconds between two looks; stacks that are alive differ by then."""
    MOST = 5
    """Looks in one silence."""

    def __init__(self) -> None:
        self._taken = 0
        self._last: float | None = None

    def due(self, view: LaunchView, now: float) -> bool:
        """Whether to look now; counts it as taken."""
        if not view.verdict.wants_stacks:
            self._taken = 0
            return False
        if self._taken >= self.MOST or (self._last is not None and now - self._last < self.EVERY):
            return False
        self._taken += 1
        self._last = now
        return True


class Stalls:
    """When a stall is diagnosed by itself: once each, and not again at once where the verdict flickers."""

    EVERY = 60.0
    """Seconds between two diagnoses that nobody asked for."""
    STATES = frozenset({"stalled", "spinning", "frozen"})

    def __init__(self) -> None:
        self._done = False
        self._last: float | None = None

    def due(self, view: LaunchView, now: float) -> bool:
        """Whether to diagnose now; counts it as done."""
        if view.verdict.state not in self.STATES:
            self._done = False
            return False
        if self._done or (self._last is not None and now - self._last < self.EVERY):
            return False
        self._done, self._last = True, now
        return True
