"""How long silence is borne: by what can be seen here, by phase, and by what this host took before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.launch.kinds import SPINS
from tuimon.launch.rates import most, total
from tuimon.launch.told import LogError

if TYPE_CHECKING:
    from tuimon.launch.run import Run

ERROR_NEAR = 10.0
"""Seconds between an error and the silence after it for which the error is the reason. What went on for longer
survived it: SGLang begins with the traceback of an optional import."""
STEPS = 3.0
"""Mean steps of a bar that are borne where only the bar can be seen."""
STACK_LOOKS = 3
"""Looks at the stacks without motion that decide alone."""
COMPUTES_HERE = 1.5
"""Cores of one process. A rank that spins uses one; more is what a machine without GPUs computes with."""
COMPUTES = 0.2
"""Cores. Hung trees that do not spin use ≤ 0.03; above, work and a spin look alike without fault and I/O counters."""
UNSEEN_PHASES = (
    ("compil", 180.0), ("jit", 180.0), ("graph", 300.0), ("load", 120.0), ("weight", 120.0), ("download", 120.0),
    ("init", 120.0), ("distributed", 120.0), ("warm", 120.0), ("post", 600.0),
)  # fmt: skip
"""Seconds by a part of the phase's name, for launches of which at most the log can be read: healthy logs are silent for
minutes (public reports)."""
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
            why = "no GPU is here that would tell" if run.gpus.none_here else "the GPUs cannot be read"
            return Limits(patience.quiet, patience.blind, f"the host is busy and {why}: patience is longer")
        if run.vitals.compilers.wait:
            return Limits(
                patience.quiet, patience.blind, "a compiler waits, perhaps for a daemon that works: patience is longer"
            )
        if run.vitals.log.lost_alone:
            return Limits(
                patience.quiet,
                patience.blind,
                "the log, its only sign of life, cannot be read any more: patience is longer",
            )
        return normal
    if cpu_idle(run) or last_words(run) is not None:
        return normal
    longer = [
        _by_clock(run),
        (STEPS * _step(run), "its bar steps slowly"),
        (_usual(run), "it took so long here before"),
    ]
    seconds, why = max(longer)
    return Limits(patience.quiet, seconds, why)


def _by_clock(run: Run) -> tuple[float, str]:
    """Where the host's counters cannot be read: the GPUs still tell something; without them only the clock is left."""
    if run.gpus.seen and run.gpus.cards:
        return run.patience.blind, "the host's counters cannot be read: patience is longer"
    phase = (run.told.phase or "").lower()
    seconds = next((seconds for part, seconds in UNSEEN_PHASES if part in phase), UNSEEN)
    return max(seconds, run.patience.blind), "neither host nor GPUs can be read: only the clock is left"


def host_seen(run: Run) -> bool:
    """Whether the host would tell work from idleness: faults or I/O of the processes can be read."""
    rates = run.vitals.rates
    return any(total(rates, field) is not None for field in ("minor", "rchar", "read"))


def idles(run: Run) -> bool:
    """Whether all that could work can be seen, and nothing does: processes asleep, or spinning for want of work."""
    if not host_seen(run) or not run.gpus.seen or any(card.working for card in run.gpus.ours):
        return False
    return most(run.vitals.rates, "cpu") < COMPUTES or any(card.spins for card in run.gpus.ours)


def _gpu_would_decide(run: Run) -> bool:
    """One core at 100 % without faults is a spin, a graph capture or a GPU at work: only GPU or stacks can tell."""
    cpu = total(run.vitals.rates, "cpu")
    busy = cpu is None or cpu >= SPINS
    if run.gpus.none_here:
        busy = any((rate.cpu or 0.0) >= COMPUTES_HERE for rate in run.vitals.rates.values())
    elif any(card.work is not None for card in run.gpus.ours):
        return False
    return run.vitals.stacks.looks < STACK_LOOKS and busy


def cpu_idle(run: Run) -> bool:
    """Whether the whole tree, seen, uses next to no CPU: nothing can be computing unseen."""
    cpu = total(run.vitals.rates, "cpu")
    return cpu is not None and cpu < COMPUTES and not run.born_lately


def last_words(run: Run) -> LogError | None:
    """The error that silence followed, if one did: then it is no silence of work."""
    error = run.told.error
    return error if error is not None and abs(run.silence_began() - error.at) <= ERROR_NEAR else None


def _step(run: Run) -> float:
    """Seconds between two steps of the running bar; 0 where there is none."""
    rates = [phase.rate for phase in run.told.phases if phase.state == "running" and phase.rate]
    return 1 / rates[-1] if rates else 0.0


def _usual(run: Run) -> float:
    """Seconds that this phase took here before; 0 where nobody knows."""
    if run.usual is None or run.told.phase is None:
        return 0.0
    return run.usual.phases.get(run.told.phase, 0.0)
