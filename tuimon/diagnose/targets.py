"""Which processes are worth a look: the ranks first, then the engine, the launcher last."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from tuimon.launch.events import Process

RANK = re.compile(r"(?:^|\s)[A-Za-z]+\d+$")
"""`TP3`, `DP1 TP3`: a rank among peers; `EngineCore` is none."""
HELPERS = re.compile(r"resource_tracker|compile_worker|forkserver|semaphore_tracker|multiprocessing\.resource")
PYTHON = re.compile(r"(?:^|/)(?:python|pypy)[\d.]*(?:\s|$)|\.py(?:\s|$)")
ENGINES = re.compile(r"^(?:sglang::|VLLM::|vllm::|ray::)|\b(?:sglang|vllm|torchrun|tensorrt_llm|trtllm)\b")
LIMIT = 128
"""More processes than this are not dumped: a screen shows no more, and the host is not ours to load."""


class Target(Struct, frozen=True):
    """A process whose stack is wanted."""

    pid: int
    rank: str | None = None
    """What it is called: `TP3`, `EngineCore`, `detokenizer`, `launcher`."""
    started: float | None = None
    """Clock ticks since boot: tells a reused pid."""


def choose(processes: Iterable[Process] | None, launcher: int | None = None) -> tuple[Target, ...]:
    """The Python processes of a server's tree, ranks in their natural order first, the launcher last."""
    found = [process for process in processes or () if wanted(process, launcher)]
    found.sort(key=lambda process: (order(process, launcher), natural(process.rank or ""), process.pid))
    return tuple(Target(process.pid, called(process, launcher), process.started) for process in found[:LIMIT])


def wanted(process: Process, launcher: int | None) -> bool:
    """Whether it can be a Python process with something to tell."""
    title = process.title or process.name or ""
    if process.rank is not None or process.pid == launcher:
        return True
    if HELPERS.search(title):
        return False
    return bool(PYTHON.search(title) or ENGINES.search(title))


def called(process: Process, launcher: int | None) -> str | None:
    """The rank, or a short name taken from the title."""
    if process.rank is not None:
        return process.rank
    if process.pid == launcher:
        return "launcher"
    title = process.title or ""
    match = re.match(r"(?:sglang|VLLM|vllm|ray)::([\w-]+)", title)
    return match.group(1) if match else None


def order(process: Process, launcher: int | None) -> int:
    """Ranks, then other named ones, then strangers, then the launcher."""
    if process.pid == launcher:
        return 3
    if process.rank is None:
        return 2
    return 0 if RANK.search(process.rank) else 1


def names(targets: Iterable[Target]) -> dict[int, str]:
    """Ranks' names by pid; empty for those that no title names (torchrun), which are ours all the same."""
    return {target.pid: target.rank if target.rank and RANK.search(target.rank) else "" for target in targets}


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """A key that puts TP2 before TP10."""
    return tuple((letters, int(digits or 0)) for letters, digits in re.findall(r"(\D*)(\d{0,18})", text))
