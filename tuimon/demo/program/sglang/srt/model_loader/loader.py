"""Loading weights, shard by shard."""

import ctypes
import os
import platform
import signal
import time

import stage

CLONE_VFORK = 0x4000
CLONE_CALL = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
DEAD_SHARD = stage.SHARDS - 3


class DefaultModelLoader:
    """Reads the shards of one model."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def load_weights(self, phase: str, parts: tuple[float, float], shards: int) -> None:
        """Take a phase's time from `parts[0]` to `parts[1]`; rank 0 draws the bar."""
        if stage.SCENARIO == "silent-stall" and phase == "draft":
            stage.hopeless_lock().acquire()
        since = time.monotonic()
        self._draw(0, shards, since)
        for shard in range(1, shards + 1):
            stage.until(phase, parts[0] + (parts[1] - parts[0]) * shard / shards)
            if stage.SCENARIO == "dead-storage" and self.rank == 5 and shard == DEAD_SHARD:
                stage.gpu_waits(self.rank)
                self.safetensors_weights_iterator()
            stage.touch(2)
            self._draw(shard, shards, since)
        if self.rank == 0:
            stage.write("\n")

    def safetensors_weights_iterator(self) -> None:
        """Get into state D without root: a parent in vfork sleeps in it until its child runs something else."""
        parent = os.getpid()
        call = CLONE_CALL.get(platform.machine())
        # PyDLL keeps the GIL: the child is a copy of this thread, and must find the GIL in its own hands.
        if call is None:
            _open_fifo()
        elif ctypes.PyDLL(None).syscall(call, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0) == 0:
            stage.begin(f"demo: keeps {parent} in state D", parent)
            while True:
                signal.pause()

    def _draw(self, done: int, total: int, since: float) -> None:
        if self.rank == 0:
            text = stage.bar("\rLoading safetensors checkpoint shards", done, total, since, blocks=False) + "\n"
            stage.write(text * (2 if done == total else 1))


def _open_fifo() -> None:
    """The same with posix_spawn, for other processors: its child waits for a writer of a FIFO."""
    fifo = os.path.join(stage.FOLDER, "shard")
    os.mkfifo(fifo)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)])
