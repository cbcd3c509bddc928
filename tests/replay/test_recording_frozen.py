"""Every healthy recording, frozen at an instant: whatever it was doing, dead silence is red in time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from tuimon.launch.events import AnyEvent, Gpu, Health, LogText, Process, Sample
from tuimon.launch.ranks import ranks_of
from tuimon.launch.state import Launch
from tuimon.launch.view import RED
from tuimon.recording import trial
from tuimon.recording.folder import EPOCH, events

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "data" / "recordings"
SHARED = ROOT.parent / "shared" / "recordings"
STEP = 6.0
"""Seconds between the instants that are tried; all of them were tried once."""
WITHIN = 30


def _healthy(path: Path) -> bool:
    truth = json.loads((path / "truth.json").read_text())["truth"]["verdict"]
    return truth in {"ready", "working", "finished"}


PATHS = [path for path in trial.recordings([SHARED if SHARED.is_dir() else HERE]) if _healthy(path)]


def _asleep(process: Process) -> Process:
    if process.state in "ZX":
        return process
    return structs.replace(process, state="S", wchan="futex_do_wait", busy_threads=(), thread_states=None)


def _rests(gpu: Gpu, idle: float | None) -> Gpu:
    rest = {key: 0.0 for key in ("util", "mem_util", "dram_active") if getattr(gpu, key) is not None}
    return structs.replace(gpu, power=idle, pcie_rx=None, pcie_tx=None, **rest)


def _frozen(launch: Launch, last: Sample, log: int) -> Iterator[AnyEvent]:
    """The same look again and again, and what others say to a server that is dead: questions, and nothing else."""
    processes = tuple(_asleep(process) for process in last.processes or ())
    idle = {index: card.idle for index, card in launch.gpus.cards.items()}
    gpus = None if last.gpus is None else tuple(_rests(gpu, idle.get(gpu.index)) for gpu in last.gpus)
    health = launch.run.health.event
    listens = launch.run.health.reached
    for second in range(1, WITHIN + 1):
        at = last.at + second
        if health is not None and (second % 10 == 0 or not listens):
            yield structs.replace(health, at=at) if not listens else Health(at=at, address="::1", error="timeout")
        if second % 5 == 0:
            text = b'INFO:     10.0.0.7:51520 - "GET /readyz HTTP/1.1" 503 Service Unavailable\n'
            yield LogText(at=at, offset=log, text=text)
            log += len(text)
        yield structs.replace(
            last, at=at, host_time=at, mono=last.mono + second, processes=processes, gpus=gpus, log=None
        )


def _until(path: Path, instant: float) -> tuple[Launch, Sample, int] | None:
    """The launch as it was then; None where it had ended, or was about to."""
    launch, last, log = Launch("trial"), None, 0
    for event in events(path):
        if event.at - EPOCH > instant and last is not None:
            break
        launch.apply(event)
        if isinstance(event, LogText):
            log = event.offset + len(event.text)
        if isinstance(event, Sample):
            last = event
            launch.settle(event.at)
    if last is None or not last.processes or launch.verdict.state == "finished":
        return None
    return launch, last, log


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_frozen_at_any_instant_it_is_red_in_time(path: Path) -> None:
    length = [event.at for event in events(path)][-1] - EPOCH
    instant, tried = 1.0, 0
    while instant < length:
        there = _until(path, instant)
        if there is not None:
            launch, last, log = there
            ranks = {process.pid for process in ranks_of(last.processes or ())}
            for event in _frozen(launch, last, log):
                launch.apply(event)
                launch.settle(event.at)
            assert launch.verdict.state in RED, (instant, launch.verdict)
            assert {suspect.pid for suspect in launch.verdict.suspects} <= ranks, (instant, launch.verdict.suspects)
            tried += 1
        instant += STEP
    assert tried
