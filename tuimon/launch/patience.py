"""How long silence is borne: by what can be seen here, by phase, and by what this host took before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.launch.kinds import SPINS
from tuimon.launch.rates import total

if TYPE_CHECKING:
    from tuimon.launch.run import Run

STACK_LOOKS = 3
"""Looks at the stacks without motion that decide alone."""
COMPUTES = 0.2
"""Cores. Hung trees that do not spin use ≤ 0.03; without fault and I/O counters, work cannot be told from a spin above this."""
UNSEEN_PHASES = (
    ("compil", 180.0), ("jit", 180.0), ("graph", 300.0), ("load", 120.0), ("weight", 120.0), ("download", 120.0),
    ("init", 120.0), ("distributed", 120.0), ("warm", 120.0), ("post", 600.0),
)  # fmt: skip
"""Seconds by a part of the phase's name, for phases in which no sign can be read at all (public reports, see the docs)."""
UNSEEN = 180.0


class Limits(Struct, frozen=True):
    """Seconds of silence, and why."""

    quiet: float
    stalled: float
    why: str | None = None
    """Said where patience is longer than usual."""


def limits(run: Run) -> Limits:
    """What this launch may bear now."""
    patience = run.patience
    normal = Limits(quiet=patience.quiet, stalled=patience.stalled)
    if host_seen(run):
        if _gpu_would_decide(run):
            return Limits(
                patience.quiet, patience.blind, "the host is busy and the GPUs cannot be read: patience is longer"
            )
        return normal
    if run.vitals.log.readable or run.gpus.seen or cpu_idle(run):
        if cpu_idle(run):
            return normal
        usual = _usual(run)
        if usual is not None and usual > patience.blind:
            return Limits(
                patience.quiet,
                usual,
                f"this phase took up to {usual:.0f} s here before, and the host's counters cannot be read",
            )
        return Limits(patience.quiet, patience.blind, "the host's counters cannot be read: patience is longer")
    phase = (run.told.phase or "").lower()
    seconds = next((seconds for part, seconds in UNSEEN_PHASES if part in phase), UNSEEN)
    return Limits(
        patience.quiet, max(seconds, patience.blind), "neither log, host nor GPUs can be read: only the clock is left"
    )


def host_seen(run: Run) -> bool:
    """Whether the host would tell work from idleness: faults or I/O of the processes can be read."""
    rates = run.vitals.rates
    return any(total(rates, field) is not None for field in ("minor", "rchar", "read"))


def _gpu_would_decide(run: Run) -> bool:
    """One core at 100 % without faults is a spin, a graph capture, or a GPU at work: only the GPU, or the stacks, can tell."""
    cpu = total(run.vitals.rates, "cpu") or 0.0
    return not run.gpus.seen and run.vitals.stacks.looks < STACK_LOOKS and cpu >= SPINS


def cpu_idle(run: Run) -> bool:
    """Whether the whole tree, seen, uses next to no CPU: nothing can be computing unseen."""
    cpu = total(run.vitals.rates, "cpu")
    return cpu is not None and cpu < COMPUTES and not run.born_lately


def _usual(run: Run) -> float | None:
    if run.usual is None or run.told.phase is None:
        return None
    return run.usual.phases.get(run.told.phase)
