"""After ready: silence is allowed, an idle server has nothing to say. What is not allowed: work that nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.launch.gpus import spinning
from tuimon.launch.ranks import in_short
from tuimon.launch.rates import total

if TYPE_CHECKING:
    from tuimon.launch.run import Run

FRESH = 15.0
"""Seconds for which a gauge (running requests) may be believed: /metrics is read every 5 s, vLLM writes its line every 10 s."""
SERVING = 30.0
"""Seconds after the last token for which the state is still called serving."""
BUSY_CPU = 0.5
"""Cores. A CPU-only server may compute one long prefill in silence: then wait longer."""


class Trouble(Struct, frozen=True):
    """Why a server that was ready fails now."""

    kind: str
    headline: str
    since: float


def trouble(run: Run, now: float) -> Trouble | None:
    """What is wrong with a ready server, if anything."""
    return _spins(run, now) or _unanswered(run, now) or _stuck_requests(run, now)


def is_serving(run: Run, now: float) -> bool:
    """Whether it makes tokens for somebody."""
    last = run.vitals.answers.last
    return (last is not None and now - last <= SERVING) or (run.running(now) or 0) > 0


def _limit(run: Run) -> float:
    """Seconds without a token that are borne: longer where a long prefill would show neither on GPUs nor on the host."""
    if run.gpus.seen and run.gpus.ours:
        return run.patience.stalled
    cpu = total(run.vitals.rates, "cpu")
    return run.patience.stalled if cpu is not None and cpu < BUSY_CPU else run.patience.blind


def _worked(run: Run) -> float:
    """The last instant at which the server did something that a health check does not cause."""
    instants = (run.vitals.answers.last, run.vitals.gpu_work.last, run.vitals.gpu_memory.last, run.ready_at)
    return max(instant for instant in (*instants, 0.0) if instant is not None)


def _spins(run: Run, now: float) -> Trouble | None:
    cards = spinning(run.gpus, run.attention, now, run.patience.stalled)
    worked = _worked(run)
    if not cards or run.attention.looked(worked, now) < run.patience.stalled:
        return None
    names = in_short(f"GPU {card.index}" for card in cards)
    return Trouble("collective spin", f"ready, but {names} spin at 100 % and no token comes", worked)


def _unanswered(run: Run, now: float) -> Trouble | None:
    health = run.health
    if health.bad < 2 or health.bad_since is None or health.event is None or health.answered_at is None:
        return None  # what never answered is not reachable from there, which is no failure of the server
    if health.mark == "refused" and run.attention.looked(health.bad_since, now) >= run.patience.quiet:
        return Trouble("port closed", "was ready, but its port is closed now", health.bad_since)
    # The last answer, not the first missing one: a question asked into a hang comes back only with its timeout.
    since = max(health.answered_at or health.bad_since, _worked(run))
    if run.attention.looked(since, now) < _limit(run):
        return None
    return Trouble("hang while serving", f"was ready, now {health.words()} and no token comes", since)


def _stuck_requests(run: Run, now: float) -> Trouble | None:
    worked = _worked(run)
    limit = _limit(run)
    if run.attention.looked(worked, now) < limit:
        return None
    running = run.running(now)
    if running and run.pending_since is not None and run.attention.looked(run.pending_since, now) >= limit:
        return Trouble(
            "hang while serving",
            f"{running} request{'s' if running > 1 else ''} running, but no token comes",
            max(worked, run.pending_since),
        )
    if run.unread_since is not None and run.attention.looked(run.unread_since, now) >= limit:
        return Trouble(
            "hang while serving",
            "requests wait unread in its sockets, and no token comes",
            max(worked, run.unread_since),
        )
    return None
