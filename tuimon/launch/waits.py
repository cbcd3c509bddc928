"""What stands beside the state: alarms, and the server's own timers that will act by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.launch.lasting import age
from tuimon.launch.served import USELESS

if TYPE_CHECKING:
    from tuimon.launch.run import Run

USELESS_DRAFT = "useless_draft"
PORT_TAKEN = "port_taken"
GPU_STRANGERS = "gpu_strangers"
NOT_REACHABLE = "not_reachable"
BUFFERED = 60.0
"""Seconds."""
UNREACHED = 10.0
"""Seconds after the ready line for which a port may stay closed."""


def alarms(run: Run, now: float) -> tuple[str, ...]:
    """Alarms beside the state."""
    found = []
    if run.told.useless_draft:
        found.append(USELESS_DRAFT)
    if run.health.stranger is not None:
        found.append(PORT_TAKEN)
    if run.sample is not None and run.sample.strangers and run.ready_at is None:
        found.append(GPU_STRANGERS)
    if unreached(run, now):
        found.append(NOT_REACHABLE)
    found += [finding.kind for finding in run.findings if finding.severity == "fatal" and finding.kind not in found]
    return tuple(found)


def unreached(run: Run, now: float) -> bool:
    """The log says ready, but no question of ours was ever answered; or every one is answered "not without a key"."""
    ready, health = run.told.ready, run.health
    if health.event is not None and health.event.status in {401, 403, 407}:
        return True
    return ready is not None and not health.reached and health.bad >= 2 and now - ready >= UNREACHED


def buffered(run: Run, now: float) -> bool:
    """Alive for a minute without a byte in its log: Python keeps what it prints until a buffer is full."""
    first, last = run.attention.first, run.vitals.last(but_log=True)
    empty = run.growth.total == 0 and not run.told.lines
    works = last is not None and now - last <= UNREACHED
    return empty and works and first is not None and now - first >= BUFFERED


def alarm_words(run: Run, now: float) -> list[str]:
    """The same in sentences, for the findings on the screen."""
    words = []
    if run.told.useless_draft:
        said = run.told.serving
        length = said.accept_length if said is not None and said.accept_length is not None else 1.0
        why = "its weights were probably never loaded" if length <= USELESS else "it does not fit the target"
        words.append(f"the draft model is not working: acceptance length {length:.2f}, {why}")
    if buffered(run, now):
        words.append(
            "the log is empty though the launch works: its output is buffered, PYTHONUNBUFFERED=1 shows it at once"
        )
    if run.health.stranger is not None:
        words.append(f"the port is answered by another process, pid {run.health.stranger}: this server will not get it")
    if unreached(run, now):
        refused = run.health.event is None or run.health.event.status is None
        look = "look at the address it bound and at proxies" if refused else "it asks for a key (--api-key-env)"
        words.append(f"not reachable from the host itself, {run.health.words()}: {look}")
    if run.sample is not None and run.sample.strangers and run.ready_at is None:
        held = ", ".join(f"{pid} ({title})" for pid, title in list(run.sample.strangers.items())[:4])
        words.append(f"GPU memory is held by processes that are not this launch's: {held}")
    return words


def countdown(run: Run, now: float) -> str | None:
    """The timer that acts next, with its remaining time."""
    running = [timer for timer in run.told.timers if timer.started + timer.seconds > now]
    if not running or run.gone_at is not None:
        return None
    timer = min(running, key=lambda timer: timer.started + timer.seconds)
    left = timer.started + timer.seconds - now
    return f"{timer.name} {timer.consequence} in {age(left)}"
