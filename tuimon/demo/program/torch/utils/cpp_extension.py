"""A JIT compilation: real processes named ninja, nvcc and cicc, the last one burning CPU."""

import os
import time
from collections.abc import Callable
from functools import partial

import stage

CICC_S = 20.0
"""How long the compiler works on one kernel."""


def _run_ninja_build(length: float) -> None:
    """Compile kernel after kernel for `length` seconds; wait for it asleep, as `subprocess.run` does."""
    end = time.monotonic() + length
    _wait_for(_start("ninja", "ninja -v", partial(_ninja, end)))


def _ninja(end: float) -> None:
    kernel = 0
    while time.monotonic() < end:
        kernel += 1
        title = f"nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -c batch_decode_mla_kernel_{kernel}.cu"
        _wait_for(_start("nvcc", title, partial(_nvcc, end, kernel)))


def _nvcc(end: float, kernel: int) -> None:
    title = f"cicc --c++17 --device-c -arch compute_90a batch_decode_mla_kernel_{kernel}.cpp1.ii"
    _wait_for(_start("cicc", title, partial(_cicc, min(end, time.monotonic() + CICC_S * stage.SPEED))))


def _cicc(end: float) -> None:
    stage.be_idle_class()
    while time.monotonic() < end:
        stage.touch(1)
        sum(range(300_000))


def _start(name: str, title: str, work: Callable[[], None]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        stage.begin(title, parent)
        stage.call_itself(name)
        work()
    finally:
        os._exit(0)


def _wait_for(pid: int) -> None:
    os.waitpid(pid, 0)
