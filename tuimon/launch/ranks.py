"""Who is a rank, and how several ranks are named in short: `TP[0-2,4-7]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tuimon.launch.events import Process

LOADED = 100 * 1024 * 1024
"""Bytes of resident memory that a process has once it imported a deep learning library."""
HELPERS = ("resource_tracker", "compile_worker", "semaphore_tracker", "detokenizer")
BYSTANDERS = frozenset(
    {"raylet", "gcs_server", "dashboard", "node_exporter", "prometheus", "dcgm-exporter", "tee", "nvidia-smi", "py-spy"}
)
"""Their work says nothing about the launch: daemons that tick for ever, and the one that writes the log."""
COMPILERS = frozenset({
    "nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "nvlink", "ninja", "cc1plus", "cc1", "g++", "gcc", "gcc-real",
    "cc", "c++",
    "clang", "clang++", "ld", "ld.lld", "lld", "collect2", "as", "hipcc", "cmake", "make", "rustc",
})  # fmt: skip

_NUMBERED = re.compile(r"^(.*?)(\d+)$")


def is_compiler(process: Process) -> bool:
    """A compiler by its own name, or an inductor or triton worker by its title."""
    return (process.name or "") in COMPILERS or "compile_worker" in (process.title or "")


def is_bystander(process: Process) -> bool:
    """A process of the tree whose activity is no sign of life."""
    title = process.title or ""
    return (process.name or "") in BYSTANDERS or "ray/dashboard" in title or "log_monitor.py" in title


def is_worker(process: Process) -> bool:
    """Whether others wait for this process: a rank by title, or a spawned child whose title is not set yet."""
    if process.rank is not None:
        return True
    title = process.title or ""
    return "multiprocessing.spawn" in title and not any(helper in title for helper in HELPERS)


def ranks_of(processes: Iterable[Process]) -> list[Process]:
    """The processes that do the launch's work, to be compared with each other.

    By title where titles tell; else the spawned children; else every process that has loaded a library and is no
    helper.
    """
    alive = [process for process in processes if process.state not in "ZX" and not is_compiler(process)]
    titled = [process for process in alive if process.rank is not None]
    if titled:
        return titled
    spawned = [process for process in alive if is_worker(process)]
    if spawned:
        return spawned
    forks = _forks(alive)
    parents = {process.ppid for process in alive if process.pid not in forks}
    heavy = [
        process for process in alive
        if (process.rss or 0) >= LOADED and not _helps(process) and process.pid not in forks
    ]  # fmt: skip
    leaves = [process for process in heavy if process.pid not in parents]
    return leaves if len(leaves) > 1 else heavy


def _forks(alive: list[Process]) -> set[int]:
    """Copies of a process that itself has a parent here: the data loaders of a rank below its launcher, no ranks.

    Copies of the first process may be its ranks.
    """
    known = {process.pid: process for process in alive}
    forks = set()
    for process in alive:
        parent = known.get(process.ppid)
        if parent is not None and parent.ppid in known and process.title and process.title == parent.title:
            forks.add(process.pid)
    return forks


def _helps(process: Process) -> bool:
    return any(helper in (process.title or "") for helper in HELPERS)


def in_short(names: Iterable[str]) -> str:
    """`TP0 TP1 TP2 TP4` → `TP[0-2,4]`; names without a number stay as they are."""
    groups: dict[str, list[int]] = {}
    plain: list[str] = []
    for name in names:
        match = _NUMBERED.match(name)
        if match:
            groups.setdefault(match[1], []).append(int(match[2]))
        elif name not in plain:
            plain.append(name)
    parts = [
        f"{stem}{numbers[0]}" if len(numbers) == 1 else f"{stem}[{_spans(numbers)}]" for stem, numbers in groups.items()
    ]
    return " ".join(parts + plain)


def gpu_names(indices: Iterable[int]) -> str:
    """`GPU 3`, `GPUs 0-4,6-7`."""
    numbers = sorted(set(indices))
    return f"GPU {numbers[0]}" if len(numbers) == 1 else f"GPUs {_spans(numbers)}"


def _spans(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
