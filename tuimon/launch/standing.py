"""What a phase shows while nothing is alive: where it stands, and no time of arrival."""

from __future__ import annotations

from msgspec import structs

from tuimon.launch.view import PhaseView


def standing(phases: tuple[PhaseView, ...], *, silent: bool) -> tuple[PhaseView, ...]:
    """The same phases; in a silence the running ones promise nothing."""
    return tuple(_stands(phase) if silent and phase.state == "running" else phase for phase in phases)


def _stands(phase: PhaseView) -> PhaseView:
    note = phase.note
    if phase.count is not None and phase.total is not None:
        stands = f"stands at {phase.count:g}/{phase.total:g}"
        note = f"{stands} · {phase.note}" if phase.note else stands
    return structs.replace(phase, eta=None, rate=None, note=note)
