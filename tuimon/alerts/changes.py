"""Which changes of the verdict are worth a noise: pure, and damped so that a flapping verdict does not flood."""

from __future__ import annotations

from msgspec import Struct

from tuimon.launch.view import RED, LaunchView, State

_SAME: dict[State, State] = {"quiet": "starting", "serving": "ready", "spinning": "stalled", "frozen": "stalled"}
"""States that are one to somebody who is not looking: a banner tells them apart, a bell does not."""
HOLDS = 1.0
"""Seconds that a change must have lasted."""
HOLDS_LINK = 10.0
"""Seconds for a lost link: most come back at the first try after 3 s."""
GROWS = 4.0
"""Each time that the same was announced lately, it must last so many times longer."""
LATELY = 600.0


class Change(Struct, frozen=True):
    """A change that is to be announced."""

    before: State | None
    """None = the first thing that is known."""
    now: State
    urgent: bool
    """Worth a noise: something is wrong, is right again, or is done."""
    held_back: int
    """Changes since the last announcement that came and went."""


class Changes:
    """Takes views, gives the changes to announce."""

    def __init__(self) -> None:
        self._announced: State | None = None
        self._coming: tuple[State, float] | None = None
        self._held_back = 0
        self._log: list[tuple[float, State]] = []

    def see(self, view: LaunchView, *, last: bool = False) -> Change | None:
        """The change to announce now. `last`: nothing comes after this view, so it need not last."""
        state = state_of(view)
        if state is None:
            return None
        kind = _SAME.get(state, state)
        if kind == self._announced:
            self._held_back += self._coming is not None
            self._coming = None
            return None
        if self._coming is None or self._coming[0] != kind:
            self._held_back += self._coming is not None and self._announced is not None
            self._coming = (kind, view.now)
        if not last and view.now - self._coming[1] < self._hold(kind, view.now):
            return None
        return self._announce(state, kind, view.now)

    def _announce(self, state: State, kind: State, now: float) -> Change:
        change = Change(self._announced, state, _urgent(self._announced, kind), self._held_back)
        self._announced, self._coming, self._held_back = kind, None, 0
        self._log = [entry for entry in self._log if now - entry[0] < LATELY] + [(now, kind)]
        return change

    def _hold(self, kind: State, now: float) -> float:
        times = sum(1 for at, said in self._log if said == kind and now - at < LATELY)
        first = HOLDS_LINK if kind == "unreachable" else HOLDS
        return min(first * GROWS**times, LATELY)


def state_of(view: LaunchView) -> State | None:
    """The state that alerts speak of; None while nothing is known yet."""
    if view.link.state == "connecting" or view.broken:
        return None
    if view.link.state == "up":
        return view.verdict.state if view.verdict.state != "unreachable" else None
    return "unreachable"


def _urgent(before: State | None, now: State) -> bool:
    if now in RED or now == "unreachable":
        return True
    if before is None:  # we came, and all is well
        return False
    return now in {"ready", "finished"} or before in RED
