"""The ladder from harmless to fatal. `climb` goes up the harmless rungs at once; what asks first is only described."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tuimon.diagnose import collectives, kernel, stacks
from tuimon.diagnose.targets import RANK, Target
from tuimon.errors import TuimonError
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.host import Host
from tuimon.launch.events import Collectives, Finding, Stacks


class Rung(Struct, frozen=True):
    """One step, shown before it runs."""

    name: str
    cost: str
    risk: str
    asks: Literal[0, 1, 2] = 0
    """How many times the user is asked first."""


RUNGS = (
    Rung("processes and threads (/proc)", "22 ms", "none: nothing is touched"),
    Rung("kernel log (Xid, OOM, hung tasks)", "10 ms", "none: nothing is touched"),
    Rung("NCCL RAS", "10 ms, up to 10 s where ranks are stopped", "none: it is on by default and made for this"),
    Rung("stacks of all ranks (py-spy, nonblocking)", "0.2 s for 8 ranks", "none: reads memory, stops nothing"),
    Rung("flight-recorder dump", "5 s", "writes a file on the host, one rank's thread works for a moment", 1),
    Rung("stacks with native frames (py-spy --native)", "0.3 s per rank", "stops each rank for 0.1 s", 1),
    Rung("SIGABRT to one rank", "1 s", "KILLS THE SERVER; prints stacks into its log where faulthandler is on", 2),
)


class Diagnosis(Struct, frozen=True):
    """What the harmless rungs found."""

    stacks: Stacks
    collectives: Collectives
    findings: tuple[Finding, ...]
    """Of the kernel log."""
    unread: tuple[str, ...]
    """Rungs that told nothing, and why."""
    seconds: float


async def climb(
    host: Host, targets: Sequence[Target], *, server: int | None = None, since: float | None = None
) -> Diagnosis:
    """Kernel log, RAS and stacks; two commands at a time. `since`: when the launch began, host's wall clock.

    Raises HostUnreachable; a rung that fails otherwise is in `unread`.
    """
    began = time.monotonic()
    notes: list[str] = []
    looked, (counted, (found, why)) = await asyncio.gather(
        guarded_stacks(host, targets, notes), counts_and_kernel(host, targets, server, since, notes)
    )
    notes += [why] if why else []
    notes += [f"NCCL RAS: {counted.text}"] if not counted.counts and counted.text else []
    notes += [f"{item.rank or 'process'} (pid {item.pid}): {item.reason}" for item in looked.unread]
    return Diagnosis(looked, counted, found, tuple(dict.fromkeys(notes)), time.monotonic() - began)


async def guarded_stacks(host: Host, targets: Sequence[Target], notes: list[str]) -> Stacks:
    """The stacks rung."""
    try:
        return await stacks.dump(host, targets, asked=True)
    except HostUnreachable:
        raise
    except TuimonError as error:
        notes.append(f"stacks: {error.sentence()}")
        return Stacks(asked=True)


async def counts_and_kernel(
    host: Host, targets: Sequence[Target], server: int | None, since: float | None, notes: list[str]
) -> tuple[Collectives, tuple[tuple[Finding, ...], str]]:
    """The RAS rung, then the kernel log, on one channel after the other."""
    names = {target.pid: target.rank for target in targets if target.rank and RANK.search(target.rank)}
    counted, logged = collectives.nothing("not asked"), ((), "")  # type: tuple[Collectives, tuple[tuple[Finding, ...], str]]
    try:
        counted = await collectives.ask(host, names, server)
        logged = await kernel.read(host, since)
    except HostUnreachable:
        raise
    except TuimonError as error:
        notes.append(error.sentence())
    return counted, logged
