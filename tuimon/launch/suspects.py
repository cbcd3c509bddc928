"""Which rank is behind, and why. Ranks are compared with each other; the odd one is a suspect, not a verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tuimon.launch.events import Process
from tuimon.launch.host_signs import commonest_wait
from tuimon.launch.kinds import Posture, postures
from tuimon.launch.ranks import ranks_of
from tuimon.launch.view import Suspect

if TYPE_CHECKING:
    from tuimon.launch.run import Run

MANY = 8
"""More suspects than this are no suspects."""


def suspects_of(run: Run) -> tuple[Suspect, ...]:
    """Suspects of a stall, the strongest reasons first; each process once, with all its reasons."""
    ranks = ranks_of(run.processes)
    poses = postures(ranks, run.vitals.rates)
    found = [
        *_collectives(run),
        *run.told.laggards,
        *_odd_gpus(run, ranks),
        *_storage(run, poses),
        *_still(ranks, poses),
    ]
    found += _odd_stacks(run, ranks)
    found += _unread(ranks)
    if not found:
        found = [*_odd_one(ranks, poses), *_disagreeing(run, ranks), *_last_in_line(run, ranks)]
    return _merged(found, ranks)[:MANY]


def _collectives(run: Run) -> list[Suspect]:
    """Launched fewer collectives than its peers, or does not answer."""
    event = run.collectives
    if event is None:
        return []
    found = []
    for name in dict.fromkeys(count.communicator for count in event.counts):
        counts = [count for count in event.counts if count.communicator == name]
        most = max((count.launched for count in counts if count.launched is not None), default=None)
        for count in counts:
            if count.missing:
                found.append(Suspect(count.rank, count.pid, f"does not answer {event.source}"))
            elif not event.moving and most is not None and count.launched is not None and count.launched < most:
                found.append(Suspect(count.rank, count.pid, f"launched {count.launched} collectives, its peers {most}"))
    return found


def _odd_gpus(run: Run, ranks: list[Process]) -> list[Suspect]:
    """At 0 % while its peers spin at 100 %: they wait for it."""
    names = {process.pid: process.rank for process in ranks}
    spins = [card for card in run.gpus.ours if card.spins]
    idle = [card for card in run.gpus.ours if not card.spins and (card.now.util or 0) < 5 and card.pids]
    if not spins or not idle or len(idle) > len(spins):
        return []
    return [
        Suspect(names.get(pid), pid, f"its GPU {card.index} is at 0 % while {len(spins)} of its peers spin at 100 %")
        for card in idle for pid in card.pids
    ]  # fmt: skip


def _storage(run: Run, poses: dict[int, Posture]) -> list[Suspect]:
    return [
        Suspect(process.rank, process.pid, "waits for storage")
        for process in run.processes if poses.get(process.pid) == "storage"
    ]  # fmt: skip


def _still(ranks: list[Process], poses: dict[int, Posture]) -> list[Suspect]:
    """Does nothing at all while its peers actively wait (spin, or poll a store): they wait for it."""
    waiting = [process for process in ranks if poses[process.pid] in {"spins", "polls"}]
    still = [process for process in ranks if poses[process.pid] == "still"]
    if not waiting or not still or len(still) > len(waiting):
        return []
    verb = "spin" if any(poses[process.pid] == "spins" for process in waiting) else "poll"
    return [
        Suspect(process.rank, process.pid, f"does not move at all while its peers {verb}, waiting for it")
        for process in still
    ]


def _odd_stacks(run: Run, ranks: list[Process]) -> list[Suspect]:
    """Stands elsewhere than most ranks in the latest look at the stacks."""
    if run.stacks is None or len(ranks) < 2:
        return []
    pids = {process.pid for process in ranks}
    places = {
        stack.pid: tuple((frame.name, frame.file) for frame in stack.threads[-1].frames)
        for stack in run.stacks.ranks if stack.threads and stack.pid in pids
    }  # fmt: skip
    counts = Counter(places.values())
    if len(counts) < 2:
        return []
    common, most = counts.most_common(1)[0]
    if most * 2 <= len(places):
        return []
    names = {stack.pid: stack.rank for stack in run.stacks.ranks}
    there = common[0][0] if common else "?"
    return [
        Suspect(names[pid], pid, f"stands in {place[0][0] if place else '?'}, {most} others in {there}")
        for pid, place in places.items()
        if place != common
    ]


def _unread(ranks: list[Process]) -> list[Suspect]:
    """Does not read its sockets while its peers read theirs."""
    told = [process for process in ranks if process.unread_bytes is not None]
    behind = [process for process in told if process.unread_bytes]
    if not behind or len(behind) == len(told):
        return []
    return [
        Suspect(process.rank, process.pid, f"{process.unread_bytes} bytes wait unread in its sockets")
        for process in behind
    ]


def _odd_one(ranks: list[Process], poses: dict[int, Posture]) -> list[Suspect]:
    """One rank is busy, or sleeps in another kernel wait, while all of its peers do the same: they wait for it."""
    places = {process.pid: (poses[process.pid], commonest_wait([process])) for process in ranks}
    counts = Counter(places.values())
    if len(ranks) < 3 or len(counts) != 2:
        return []
    (common, most), (odd, few) = counts.most_common()
    if few > 1 or most < 2:
        return []
    pose, wait = odd
    here = "is busy" if pose == "spins" else f"waits in {wait or 'another place'}"
    there = f"wait in {common[1]}" if common[1] else "wait"
    return [
        Suspect(process.rank, process.pid, f"{here} while its {most} peers {there}")
        for process in ranks if places[process.pid] == odd
    ]  # fmt: skip


def _disagreeing(run: Run, ranks: list[Process]) -> list[Suspect]:
    """Every GPU spins and nobody is missing: they are in different collectives, or the link between them is dead."""
    names = {process.pid: process.rank for process in ranks}
    ours = [card for card in run.gpus.ours if card.pids]
    if len(ours) < 2 or len(ours) > MANY or not all(card.spins for card in ours):
        return []
    return [
        Suspect(names.get(pid), pid, "all ranks spin: they disagree about the collective")
        for card in ours
        for pid in card.pids
    ]


def _last_in_line(run: Run, ranks: list[Process]) -> list[Suspect]:
    """The only process at the end of the line: everything above waits for it."""
    parents = {process.ppid for process in run.processes}
    leaves = [process for process in ranks if process.pid not in parents]
    if len(leaves) != 1 or len(run.processes) < 2:
        return []
    return [Suspect(leaves[0].rank, leaves[0].pid, "everything else waits for it")]


def _merged(found: list[Suspect], ranks: list[Process]) -> tuple[Suspect, ...]:
    """One entry a process; a log's rank name finds its pid, reasons are joined."""
    pids = {process.rank: process.pid for process in ranks if process.rank}
    names = {process.pid: process.rank for process in ranks}
    merged: dict[object, Suspect] = {}
    for suspect in found:
        pid = suspect.pid if suspect.pid is not None else pids.get(suspect.rank or "")
        rank = suspect.rank or (names.get(pid) if pid is not None else None)
        key: object = pid if pid is not None else rank
        earlier = merged.get(key)
        reason = suspect.reason if earlier is None else f"{earlier.reason}; {suspect.reason}"
        merged[key] = Suspect(rank, pid, reason)
    return tuple(merged.values())
