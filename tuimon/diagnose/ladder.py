"""Goes up all harmless rungs of the ladder at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from msgspec import Struct

from tuimon.diagnose import collectives, kernel, recorder, stacks
from tuimon.diagnose.recorder import Recorded
from tuimon.diagnose.targets import Target, names
from tuimon.errors import TuimonError
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.host import Host
from tuimon.launch.events import Collectives, Finding, Stacks


class Diagnosis(Struct, frozen=True):
    """What the harmless rungs found."""

    stacks: Stacks
    collectives: Collectives
    findings: tuple[Finding, ...]
    """Of the kernel log and the GPUs' driver."""
    unread: tuple[str, ...]
    """Rungs that told nothing, and why."""
    seconds: float
    recorded: Recorded | None = None
    """Of the flight recorders; None where nobody looked for dumps."""

    @property
    def counted(self) -> tuple[Collectives, ...]:
        """Everything that counts collectives."""
        recorded = self.recorded.collectives if self.recorded else None
        return (self.collectives, recorded) if recorded else (self.collectives,)


async def climb(
    host: Host, targets: Sequence[Target], *, server: int | None = None, since: float | None = None, asked: bool = True
) -> Diagnosis:
    """Kernel log, RAS, flight-recorder dumps that lie there, and stacks; two commands at a time.

    `since`: when the launch began, host's wall clock.
    Raises HostUnreachable; a rung that fails otherwise is in `unread`.
    """
    began = time.monotonic()
    notes: list[str] = []
    looked, (counted, (found, why), recorded) = await asyncio.gather(
        guarded(stacks.dump(host, targets, asked=asked), Stacks(asked=asked), "stacks", notes),
        quiet_rungs(host, targets, server, since, notes),
    )
    notes += [why] if why else []
    notes += [f"NCCL RAS: {counted.text}"] if not counted.counts and counted.text else []
    notes += recorded.unread if recorded.dumps else []
    notes += [f"{item.rank or 'process'} (pid {item.pid}): {item.reason}" for item in looked.unread]
    return Diagnosis(looked, counted, found, tuple(dict.fromkeys(notes)), time.monotonic() - began, recorded)


Answer = TypeVar("Answer")


async def guarded(look: Awaitable[Answer], otherwise: Answer, name: str, notes: list[str]) -> Answer:
    """One rung; its failure is a note, and the others go on."""
    try:
        return await look
    except HostUnreachable:
        raise
    except TuimonError as error:
        notes.append(f"{name}: {error.sentence()}")
        return otherwise


Logged = tuple[tuple[Finding, ...], str]


async def quiet_rungs(
    host: Host, targets: Sequence[Target], server: int | None, since: float | None, notes: list[str]
) -> tuple[Collectives, Logged, Recorded]:
    """RAS, kernel log and flight recorders, on one channel after the other."""
    unasked = collectives.nothing("not asked")
    counted = await guarded(collectives.ask(host, names(targets), server), unasked, "NCCL RAS", notes)
    nothing: Logged = ((), "")
    logged = await guarded(kernel.read(host, since), nothing, "kernel log", notes)
    dumps = recorder.ask(host, targets, trigger=False)
    recorded = await guarded(dumps, Recorded(None, {}, ()), "flight recorder", notes)
    return counted, logged, recorded
