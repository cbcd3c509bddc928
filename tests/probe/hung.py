"""Processes that hang in a known way, and this machine as a host for ordinary users and without py-spy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tuimon.hosts.host import Completed
from tuimon.hosts.local import LocalHost

NOBODY = 65534
RANK = textwrap.dedent(
    """
    import os, socket, sys, threading, time
    waiting, listening = socket.socketpair()
    lock = threading.Lock()

    def all_reduce():
        waiting.recv(1)

    def load_weights():
        lock.acquire()
        lock.acquire()

    def open_shard():
        os.mkfifo(sys.argv[2])
        open(sys.argv[2])

    def spin():
        while True:
            pass

    def hold_gil():
        import ctypes
        ctypes.PyDLL(None).sleep(600)

    def uninterruptible():
        os.mkfifo(sys.argv[2])
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[2], os.O_RDONLY, 0)])

    def forward(step):
        globals()[step]()

    print("up", flush=True)
    forward(sys.argv[1])
    print("went on", flush=True)
    """
)


class Hung:
    """Starts processes that hang in a known way, and ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "rank.py"
        self.script.write_text(RANK)
        self.script.chmod(0o644)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, step: str, python: str = sys.executable, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        fifo = str(self.folder / f"fifo{len(self.processes)}")
        command = [*prefix, python, "-S", str(self.script), step, fifo]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/")
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    def settle(self, *states: str) -> None:
        """Until every process is in its final state."""
        for process, state in zip(self.processes, states, strict=True):
            until(lambda process=process, state=state: state_of(process.pid) in state)  # type: ignore[misc]  # bound

    def end(self) -> None:
        for fifo in self.folder.glob("fifo*"):  # who waits for a writer, in D too, is let go
            with contextlib.suppress(OSError):
                os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))
        for process in self.processes:
            process.kill()
            process.wait(10)
            if process.stdout is not None:
                process.stdout.close()


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class AsUser(LocalHost):
    """This machine, reached as another user."""

    def __init__(self, uid: int, folder: Path) -> None:
        super().__init__()
        self.home = folder / "nobody"
        self.home.mkdir()
        os.chown(self.home, uid, uid)
        self.prefix = ["env", f"HOME={self.home}", "PATH=/usr/bin:/bin", *as_user(uid)]

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        return await super().run([*self.prefix, *argv], stdin=stdin, timeout=timeout, limit=limit)


def as_user(uid: int) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def standin(folder: Path, name: str, script: str) -> Path:
    """An executable that stands in for another."""
    path = folder / "tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
