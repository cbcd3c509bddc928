"""Process rows for the screen: ranks that read the same share a row, the odd one has its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tuimon.launch.events import Process
from tuimon.launch.host_signs import waits_in
from tuimon.launch.ranks import in_short, is_compiler
from tuimon.launch.rates import Rates
from tuimon.launch.view import ProcessView

WORST_FIRST = "ZXTtDRSI"
MAX_ROWS = 60
CPU_STEP = 0.25
"""Cores; ranks whose CPU differs by less read the same."""


def rows(
    processes: Sequence[Process],
    rates: Mapping[int, Rates],
    suspects: frozenset[int],
    notes: Mapping[int, str],
    root: int | None,
) -> tuple[ProcessView, ...]:
    """One row for each group of processes that read the same, launcher first."""
    groups: dict[tuple[object, ...], list[Process]] = {}
    for process in processes:
        groups.setdefault(_reading(process, rates, suspects, notes), []).append(process)
    depths = _depths(processes)
    views = [_row(group, rates, suspects, notes, depths) for group in groups.values()]
    views.sort(key=lambda view: (root not in view.pids, view.depth, view.label))
    return tuple(views[:MAX_ROWS])


def _reading(
    process: Process, rates: Mapping[int, Rates], suspects: frozenset[int], notes: Mapping[int, str]
) -> tuple[object, ...]:
    if process.pid in suspects or process.pid in notes:
        return (process.pid,)
    rate = rates.get(process.pid)
    busy = round((rate.cpu or 0.0) / CPU_STEP) if rate is not None else None
    # A rank that is awake in this very instant reads like one that sleeps between two polls.
    state = "R" if process.state in "RD" and (busy or 0) > 0 else "S" if process.state in "RS" else process.state
    return (_role(process), process.ppid if process.rank is None else None, state, _wait(process), busy)


def _role(process: Process) -> str:
    """What it is, without its number: `scheduler`, `Worker`, `cicc`."""
    title = process.title or ""
    match = re.match(r"(?:sglang|VLLM)::+([A-Za-z]+)", title)
    if match:
        return match[1].removesuffix("_")
    if is_compiler(process):
        return process.name or "compiler"
    if "resource_tracker" in title:
        return "resource tracker"
    if "multiprocessing.spawn" in title:
        return "starting child"
    return process.name or "?"


def _wait(process: Process) -> str | None:
    if process.state not in "SD" or not process.wchan or process.wchan == "0":
        return None
    return waits_in(process.wchan)


def _row(
    group: list[Process],
    rates: Mapping[int, Rates],
    suspects: frozenset[int],
    notes: Mapping[int, str],
    depths: Mapping[int, int],
) -> ProcessView:
    first = group[0]
    cpus = [rate.cpu for process in group if (rate := rates.get(process.pid)) is not None and rate.cpu is not None]
    sizes = [process.rss for process in group if process.rss is not None]
    threads = [process.threads for process in group if process.threads is not None]
    states = {process.state for process in group} | {
        thread.state for process in group for thread in process.busy_threads if thread.state == "D"
    }
    return ProcessView(
        label=_label(group),
        pids=tuple(process.pid for process in group),
        states="".join(sorted(states, key=WORST_FIRST.find)),
        waits_in=_wait(first),
        cpu=100 * sum(cpus) / len(cpus) if cpus else None,
        rss=sum(sizes) if sizes else None,
        threads=sum(threads) if threads else None,
        suspect=any(process.pid in suspects for process in group),
        depth=min(depths.get(process.pid, 0) for process in group),
        note=notes.get(first.pid),
    )


def _label(group: list[Process]) -> str:
    first = group[0]
    role = _role(first)
    ranks = [process.rank for process in group if process.rank]
    if ranks:
        names = in_short(ranks)
        return names if names.lower().startswith(role.lower()) else f"{role} {names}"
    return f"{role} {first.pid}" if len(group) == 1 else f"{role} ×{len(group)}"


def _depths(processes: Sequence[Process]) -> dict[int, int]:
    """How deep in the tree each process is; a loop in hostile data ends."""
    parents = {process.pid: process.ppid for process in processes}
    depths = {}
    for pid, parent in parents.items():
        depth, above, seen = 0, parent, {pid}
        while above in parents and above not in seen:
            seen.add(above)
            depth += 1
            above = parents[above]
        depths[pid] = depth
    return depths
