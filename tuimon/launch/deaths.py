"""Certain deaths: a rank that is a zombie, has vanished, is stopped or frozen: no patience, only a second look."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from tuimon.launch.events import Process, Sample
from tuimon.launch.ranks import HELPERS, LOADED, is_compiler, is_worker, ranks_of
from tuimon.launch.rates import same

SECOND_LOOK = 0.8
"""Seconds that it must last: a process on its way out is a zombie for a moment, a debugger stops for a moment."""
NO_SECOND_LOOK = 2.5
"""Seconds after which one look is enough, where samples come more slowly than that."""
TOGETHER = 2.5
"""Seconds within which a parent spawns the workers of one group."""
OUTLIVED = 1.2
"""Seconds by which its twins outlive a worker that did not end with them."""
REAPED = 0.5
"""Seconds of being a zombie after which nobody is about to wait for it."""
OOM_SECONDS = 15.0
"""An oom kill this short before a death of ours is its cause; others' processes are killed too."""


class Death(Struct, frozen=True):
    """A process that others waited for and that is gone."""

    pid: int
    rank: str | None
    at: float
    how: Literal["zombie", "vanished"]
    certain: bool
    """False for a child that may just have done its work: it matters only if silence follows."""
    oom: bool = False
    stopped: bool = False
    """It was stopped or frozen before: such a process does not end by itself, so no second look is needed."""
    twins: frozenset[int] = frozenset()
    """Who was spawned together with it: certain once one of them has outlived it, nothing if all end together."""


class Halt(Struct, frozen=True):
    """A process that cannot run."""

    pid: int
    rank: str | None
    name: str | None
    since: float
    frozen: bool
    """By its cgroup; else by a signal."""


class _Known(Struct):
    process: Process
    worker: bool
    titled: bool
    since: float
    """When first seen."""


class Deaths:
    """Remembers who lived, and notices who does not."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._missed: dict[int, Death] = {}
        self._halts: dict[int, Halt] = {}
        self._last: float = 0.0
        self._oom: tuple[int, float] | None = None
        self._oom_at: float | None = None
        self.resumed_at: float | None = None
        """When a stopped process last went on: silence begins anew, its cause is gone."""

    def see(self, sample: Sample, at: float) -> None:
        """Read one sample."""
        if sample.processes is None:
            return
        self._last = at
        self._see_oom(sample, at)
        now = {process.pid: process for process in sample.processes}
        for pid, known in list(self._known.items()):
            process = now.get(pid)
            if process is None or not same(known.process, process):
                self._lost(known, at, "vanished")
                del self._known[pid]
            elif process.state in "ZX":
                self._lost(known, at, "zombie")
        self._look_again(now, at)
        self._see_old_zombies(sample, at)
        self._remember(sample, at)
        self._see_halts(now, at)

    def _see_oom(self, sample: Sample, at: float) -> None:
        kills = sample.host.oom_kills if sample.host else None
        if kills is not None and self._oom is not None and kills > self._oom[0]:
            self._oom_at = at
        if kills is not None:
            self._oom = (kills, at)

    def _lost(self, known: _Known, at: float, how: Literal["zombie", "vanished"]) -> None:
        process = known.process
        stopped = process.pid in self._halts
        if not (known.worker or stopped) or process.pid in self._missed:
            return
        certain = known.titled or stopped
        twins = frozenset[int]() if certain else self._twins(known)
        self._missed[process.pid] = Death(process.pid, process.rank, at, how, certain, stopped=stopped, twins=twins)

    def _look_again(self, now: dict[int, Process], at: float) -> None:
        """Who ends as it should is a zombie for a moment, and its twins end with it."""
        for pid, death in self._missed.items():
            process = now.get(pid) if pid in self._known else None  # one that was dead when we came proves less
            stays = process is not None and process.state in "ZX" and at - death.at >= REAPED
            alone = at - death.at >= OUTLIVED and any(
                twin in self._known and twin not in self._missed for twin in death.twins
            )
            if not death.certain and (stays or alone):
                self._missed[pid] = structs.replace(death, certain=True)

    def _see_old_zombies(self, sample: Sample, at: float) -> None:
        """A zombie that was never seen alive has no title any more; beside a rank of the same name it was one too."""
        ranks = {(process.name, process.ppid) for process in ranks_of(sample.processes or ())}
        for process in sample.processes or ():
            known = process.pid in self._known or process.pid in self._missed
            if process.state in "ZX" and not known and (process.name, process.ppid) in ranks:
                self._missed[process.pid] = Death(process.pid, process.rank, at, "zombie", certain=False)

    def _twins(self, lost: _Known) -> frozenset[int]:
        """Workers spawned together with this one that live on: so it was no child that had done its work."""
        if not is_worker(lost.process):
            return frozenset()
        return frozenset(
            pid
            for pid, known in self._known.items()
            if pid != lost.process.pid
            and pid not in self._missed
            and is_worker(known.process)
            and known.process.ppid == lost.process.ppid
            and abs(known.since - lost.since) <= TOGETHER
        )

    def _remember(self, sample: Sample, at: float) -> None:
        processes = sample.processes or ()
        ranks = ranks_of(processes)
        peers = {process.pid for process in ranks}
        pids = {process.pid for process in processes}
        titles = [process.title for process in ranks]
        for process in processes:
            if process.state in "ZX" or process.pid in self._missed:
                continue
            known = self._known.get(process.pid)
            heavy = (process.rss or 0) >= LOADED or (known is not None and known.worker)
            rooted = process.ppid not in pids
            # Without titles nothing tells a rank from a compiler that has done its work.
            twin = process.pid in peers and bool(process.title) and titles.count(process.title) > 1
            helper = any(word in (process.title or "") for word in HELPERS) or is_compiler(process)
            worker = heavy and not helper and (is_worker(process) or rooted or twin)
            # A rank is a rank from its title on, whatever its size.
            worker = worker or (process.rank is not None and not helper)
            self._known[process.pid] = _Known(
                process=process,
                worker=worker,
                titled=process.rank is not None,
                since=known.since if known is not None else at,
            )

    def _see_halts(self, now: dict[int, Process], at: float) -> None:
        for pid in list(self._halts):
            if pid not in now or not _halted(now[pid]):
                del self._halts[pid]
                self.resumed_at = at if pid in now else self.resumed_at
        for pid, process in now.items():
            if _halted(process) and pid not in self._halts and not is_compiler(process):
                self._halts[pid] = Halt(
                    pid=pid,
                    rank=process.rank,
                    name=process.name,
                    since=at,
                    frozen=bool(process.frozen) and process.state != "T",
                )  # fmt: skip

    def halts(self, now: float) -> tuple[Halt, ...]:
        """Who is stopped or frozen, confirmed by a second look."""
        return tuple(halt for halt in self._halts.values() if self._confirmed(halt.since, now))

    def deaths(self, now: float) -> tuple[Death, ...]:
        """Who died, confirmed by a second look, in the order in which it was noticed."""
        return tuple(self._told(death) for death in self._missed.values() if self._sure(death, now))

    def _sure(self, death: Death, now: float) -> bool:
        return death.stopped or self._confirmed(death.at, now)

    def _confirmed(self, since: float, now: float) -> bool:
        return self._last - since >= SECOND_LOOK or now - since >= NO_SECOND_LOOK

    def first_dead(self) -> tuple[Death, ...]:
        """The first to die, also unconfirmed, for the time after everything has ended.

        Empty where several went in one look: then nobody can be told apart.
        """
        if not self._missed:
            return ()
        first = min(death.at for death in self._missed.values())
        dead = [self._told(death) for death in self._missed.values() if death.at == first]
        return tuple(dead) if len(dead) == 1 else ()

    @property
    def all_dead(self) -> bool:
        """No rank is left; where titles told the ranks, the launcher above them is none."""
        titled = any(death.rank for death in self._missed.values())
        alive = [known for pid, known in self._known.items() if pid not in self._missed and known.worker]
        return bool(self._missed) and not any(known.titled or not titled for known in alive)

    def _told(self, death: Death) -> Death:
        if self._oom_at is not None and -2.0 <= death.at - self._oom_at <= OOM_SECONDS:
            return structs.replace(death, certain=True, oom=True)
        return death


def _halted(process: Process) -> bool:
    # A lower-case t is a debugger's stop (ours never ptraces): it ends by itself.
    return process.state == "T" or bool(process.frozen)
