"""The launcher's ranks: forked here rather than spawned, so that ten processes take the memory of one."""

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import stage
from sglang.srt.managers.detokenizer_manager import run_detokenizer_process
from sglang.srt.managers.scheduler import run_scheduler_process

RANKS = 8
HELD: list[object] = []
"""Every process holds both ends of every link: so a killed rank goes unnoticed, in SGLang up to 0.5.6 as here."""
SPAWNING = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=36) --multiprocessing-fork"


@dataclass
class Engine:
    """The launcher's ends of the links to its processes."""

    ready: list[socket.socket]
    requests: socket.socket
    detokenizer: socket.socket
    """Held open: the detokenizer ends when it closes."""

    def wait_for_ready(self) -> None:
        """Wait for rank after rank, as SGLang up to 0.5.9 does: a dead rank is not noticed."""
        _wait_for_scheduler_ready(self.ready)


def _wait_for_scheduler_ready(links: list[socket.socket]) -> None:
    for link in links:
        link.recv(1)


def cast() -> Engine | Callable[[], None]:
    """Fork ranks and detokenizer. Returns the launcher's engine, or in a child what it is to do."""
    ready = [socket.socketpair() for _ in range(RANKS)]
    links = [socket.socketpair() for _ in range(RANKS - 1)]
    requests, served = socket.socketpair()
    tokens = socket.socketpair()
    HELD.extend((ready, links, served, tokens))
    parts: list[tuple[str, Callable[[], None]]] = []
    for rank in range(RANKS):
        mine = [link[0] for link in links] if rank == 0 else [links[rank - 1][1]]
        parts.append(
            (f"sglang::scheduler_TP{rank}", partial(run_scheduler_process, rank, mine, ready[rank][1], served))
        )
    parts.append(("sglang::detokenizer", partial(run_detokenizer_process, tokens[1])))
    pids = [os.getpid()]
    for title, part in parts:
        pid = os.fork()
        if pid == 0:
            return _child(title, part, pids[0])
        pids.append(pid)
    _tell(pids)
    return Engine([link[0] for link in ready], requests, tokens[0])


def _child(title: str, part: Callable[[], None], launcher: int) -> Callable[[], None]:
    stage.begin(SPAWNING, launcher)
    stage.work_until("dist", -0.2)
    stage.begin(title)
    return part


def _tell(pids: list[int]) -> None:
    path = os.path.join(stage.FOLDER, "pids.json")
    with open(f"{path}.new", "w") as file:
        json.dump({"pids": pids, "started": time.time()}, file)
    os.replace(f"{path}.new", path)
