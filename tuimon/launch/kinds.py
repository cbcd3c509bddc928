"""What kind of hang it looks like, from how each rank reads now. The signatures were measured on H200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tuimon.launch.events import Process
from tuimon.launch.gpus import Card
from tuimon.launch.host_signs import waits_in
from tuimon.launch.ranks import gpu_names, in_short, ranks_of
from tuimon.launch.rates import Rates

if TYPE_CHECKING:
    from tuimon.launch.run import Run

SPINS = 0.7
"""Cores of one process. Measured spins: 0.9-1.0; less only where cores are shared."""
POLLS = 20.0
"""Voluntary switches per second of one process that wakes up to look. Measured: 290 (TCP store), 690 (gloo)."""
STILL_SWITCHES = 15.0
STILL_CPU = 0.03
STORAGE = ("page from storage", "NFS", "FUSE", "FIFO without a writer", "frozen file system", "file lock")

Posture = Literal["spins", "polls", "still", "storage", "driver", "works"]


class Kind(Struct, frozen=True):
    """What a hang looks like."""

    state: Literal["stalled", "spinning"]
    name: str
    words: str
    """For the headline: what everybody does."""


def posture(process: Process, rate: Rates | None) -> Posture:
    """How one process reads."""
    waits = [waits_in(wchan) for wchan in _waits(process)]
    blocked = process.state == "D" or any(thread.state == "D" for thread in process.busy_threads)
    blocked = blocked or bool((process.thread_states or {}).get("D"))
    if any(wait in STORAGE for wait in waits):
        return "storage"
    if blocked:
        return "driver" if "NVIDIA driver" in waits else "storage"
    cpu = (rate.cpu if rate is not None else None) or 0.0
    switches = (rate.switches if rate is not None else None) or 0.0
    if cpu >= SPINS:
        return "spins"
    if switches >= POLLS:
        return "polls"
    return "still" if cpu <= STILL_CPU and switches <= STILL_SWITCHES else "works"


def _waits(process: Process) -> list[str]:
    """Kernel waits of the main thread and of threads in D. A running thread's wchan is "0"."""
    main = [process.wchan] if process.wchan and process.wchan != "0" and process.state in "SD" else []
    return main + [thread.wchan for thread in process.busy_threads if thread.state == "D" and thread.wchan]


def postures(processes: list[Process], rates: Mapping[int, Rates]) -> dict[int, Posture]:
    """By pid."""
    return {process.pid: posture(process, rates.get(process.pid)) for process in processes}


def kind_of(run: Run) -> Kind:
    """The likeliest kind; "silent" where nothing tells."""
    ranks = ranks_of(run.processes)
    poses = postures(ranks, run.vitals.rates)
    spins = [card for card in run.gpus.ours if card.spins]
    if spins:
        return _spin(spins)
    return _blocked(run, poses) or _waiting(run, ranks, poses) or Kind("stalled", "silent", "nothing alive")


def _blocked(run: Run, poses: Mapping[int, Posture]) -> Kind | None:
    """In a kernel call that does not return. Storage counts in any process of the tree: a loader may be no rank."""
    everyone = [process for process in run.processes if process.state not in "ZX"]
    stuck = [process for process in everyone if posture(process, run.vitals.rates.get(process.pid)) == "storage"]
    if stuck:
        waits = next((waits_in(wchan) for process in stuck for wchan in _waits(process)), "storage")
        return Kind("stalled", "dead storage", f"waits for storage ({waits})")
    if "driver" in poses.values():
        return Kind("stalled", "driver", "waits in the NVIDIA driver")
    return None


def _waiting(run: Run, ranks: list[Process], poses: Mapping[int, Posture]) -> Kind | None:
    """For each other, busily or asleep."""
    initialising = _initialising(run)
    spinners = [process for process in ranks if poses[process.pid] == "spins"]
    if spinners:
        names = _names(spinners)
        if initialising:
            words = f"{names} waits busily for a peer in communicator init"
            return Kind("spinning", "communicator init wait", words)
        return Kind("spinning", "busy wait", f"{names} at 100 % CPU without work")
    if "polls" in poses.values():
        if initialising:
            return Kind("stalled", "rendezvous wait", "waits in a rendezvous for a rank that does not come")
        return Kind("stalled", "waiting for a rank", "ranks wait for one that does not answer")
    if ranks and all(pose == "still" for pose in poses.values()):
        return Kind("stalled", "host deadlock", "every process sleeps")
    return None


def _spin(cards: list[Card]) -> Kind:
    names = gpu_names(card.index for card in cards)
    verb = "spins" if len(cards) == 1 else "spin"
    return Kind("spinning", "collective spin", f"{names} {verb} at 100 % without work")


def _names(processes: list[Process]) -> str:
    return in_short(process.rank or f"pid {process.pid}" for process in processes[:8])


def _initialising(run: Run) -> bool:
    phase = (run.told.phase or "").lower()
    if any(word in phase for word in ("init", "distributed", "nccl", "rendezvous", "communicator")):
        return True
    # Without a phase: contexts exist but nothing was ever computed.
    return not phase and run.vitals.gpu_work.last is None
