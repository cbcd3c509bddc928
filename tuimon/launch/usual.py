"""What the phases took the last times on this host: `usual`, an ETA where no bar gives one, a word where it is late."""

from __future__ import annotations

from msgspec import structs

from tuimon.launch.events import UsualTimes
from tuimon.launch.view import PhaseView

LATE = 2.0
"""Times the usual duration: then it is said."""
LATE_SECONDS = 5.0
"""And so many seconds more: a phase of 0.2 s may well take 0.5 s."""


def with_usual(phases: tuple[PhaseView, ...], usual: UsualTimes | None, now: float) -> tuple[PhaseView, ...]:
    """The same phases, compared with the last times."""
    if usual is None:
        return phases
    return tuple(_compared(phase, usual.phases.get(phase.name), now) for phase in phases)


def _compared(phase: PhaseView, usual: float | None, now: float) -> PhaseView:
    if usual is None:
        return phase
    spent = phase.seconds
    if phase.state == "running" and phase.start is not None:
        spent = now - phase.start
    eta, note = phase.eta, phase.note
    if phase.state == "running" and eta is None and spent is not None and spent < usual:
        eta = usual - spent
    if note is None and spent is not None and spent > LATE * usual and spent - usual >= LATE_SECONDS:
        note = f"{spent / usual:.1f}× its usual time" if usual >= 0.1 else "longer than usual"
    return structs.replace(phase, usual=usual, eta=eta, note=note)
