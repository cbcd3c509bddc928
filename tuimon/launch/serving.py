"""After ready: silence is allowed, an idle server has nothing to say. What is not allowed: work that nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.launch.gpus import spinning
from tuimon.launch.ranks import gpu_names
from tuimon.launch.rates import total

if TYPE_CHECKING:
    from tuimon.launch.run import Run

FRESH = 15.0
"""Seconds for which a gauge may be believed: /metrics is read every 5 s, vLLM writes its line every 10 s."""
STATUS = 22.0
"""Seconds without vLLM's status line, which comes each 10 s while requests run: two of them are missing."""
STATUS_AT_ZERO = 15.0
"""The same after one that told of requests and of no token: it is the last that a hang writes."""
REQUEST_BEFORE = 5.0
"""Seconds before the last token from which on unread bytes may be requests; older ones are something else's."""
CALM = 10.0
"""Seconds of idleness without a spinning GPU that show how this server idles."""
HEARTBEAT = 90.0
"""Seconds for which a "still waiting" line holds; vLLM writes one each 60 s."""
SERVING = 30.0
"""Seconds after the last token for which the state is still called serving."""
BUSY_CPU = 0.5
"""Cores. A CPU-only server may compute one long prefill in silence: then wait longer."""


class Trouble(Struct, frozen=True):
    """Why a server that was ready fails now."""

    kind: str
    headline: str
    since: float


def idles_calmly(run: Run, now: float) -> bool:
    """Ready, without a token for a while, and no GPU spins: so this is how it idles."""
    spins = any(card.spins for card in run.gpus.ours)
    return bool(run.gpus.ours) and not spins and run.attention.looked(_worked(run), now) >= CALM


def trouble(run: Run, now: float) -> Trouble | None:
    """What is wrong with a ready server, if anything."""
    return (
        _spins(run, now)
        or _unanswered(run, now)
        or _stuck_requests(run, now)
        or _status_stopped(run, now)
        or _says_itself(run, now)
    )


def is_serving(run: Run, now: float) -> bool:
    """Whether it makes tokens for somebody."""
    last = run.vitals.answers.last
    if (last is not None and now - last <= SERVING) or (run.running(now) or 0) > 0:
        return True
    told = run.told.serving
    # An acceptance length is measured on tokens.
    return told is not None and told.accept_length is not None and told.at is not None and now - told.at <= SERVING


def _limit(run: Run) -> float:
    """Seconds without a token that are borne: longer where a long prefill shows neither on GPUs nor on the host."""
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
    # Some servers spin while idle (seen: 16 ranks, 100 % without a request). It is a hang only if work is pending, or
    # if this server is known to idle calmly.
    pending = run.running(now) or _unread(run, worked) is not None or run.health.bad
    if not (pending or run.idles_calmly):
        return None
    names = gpu_names(card.index for card in cards)
    return Trouble("collective spin", f"ready, but {names} spin at 100 % and no token comes", worked)


def _unanswered(run: Run, now: float) -> Trouble | None:
    health = run.health
    if health.bad < 2 or health.bad_since is None or health.event is None or not health.reached:
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
    unread = _unread(run, worked)
    if unread is not None and run.attention.looked(unread, now) >= limit:
        words = "requests wait unread in its sockets, and no token comes"
        return Trouble("hang while serving", words, max(worked, unread))
    return None


def _unread(run: Run, worked: float) -> float | None:
    """Since when requests wait unread. What lay there while tokens came is nobody's request."""
    since = run.unread_since
    return since if since is not None and since >= worked - REQUEST_BEFORE else None


def _status_stopped(run: Run, now: float) -> Trouble | None:
    """vLLM writes a status line each 10 s while requests run, then one with 0 running: if it just stops, it hangs."""
    serving = run.told.serving
    if (run.told.engine or "").lower() != "vllm" or serving is None or serving.at is None or not serving.running:
        return None
    late = STATUS if serving.tokens_per_second else STATUS_AT_ZERO
    if run.running(now) == 0 or run.attention.looked(serving.at, now) < late:
        return None
    if run.attention.looked(_worked(run), now) < _limit(run):
        return None
    return Trouble("hang while serving", f"its status line stopped with {serving.running} running", serving.at)


def _says_itself(run: Run, now: float) -> Trouble | None:
    """It writes that it waits for a step that does not come (vLLM each 60 s), or its soft watchdog does."""
    worked = _worked(run)
    if run.attention.looked(worked, now) < _limit(run):
        return None
    beat, error = run.told.last_heartbeat, run.told.error
    if beat is not None and beat > worked and now - beat <= HEARTBEAT:
        return Trouble("hang while serving", f"it waits: {(run.told.heartbeat_text or '').strip()[:100]}", worked)
    if error is not None and error.kind == "watchdog" and error.at > worked:
        return Trouble("hang while serving", error.text[:120], worked)
    return None
