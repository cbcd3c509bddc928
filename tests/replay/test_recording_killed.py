"""kill -9 at any moment: every file can be read, and at most the last 2 s are missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tuimon.launch.events import Sample
from tuimon.recording.reader import RecordingFile

LOST = 2.0
RECORDING = """
import sys, time
from pathlib import Path
from tuimon.launch.events import Linked, LogText, Process, Sample, ServerFound
from tuimon.recording.recorder import Recorder
from tuimon.recording.shelf import Limits

recorder = Recorder(Path(sys.argv[1]), "gpu-17", Limits(10**9, 30), say=print)
recorder.start()
recorder.take(Linked(at=time.time(), host="gpu-17"))
offset = 0
for number in range(10**6):
    now = time.time()
    if number == 20:
        recorder.take(ServerFound(at=now, pid=7, engine="sglang"))
    recorder.take(LogText(at=now, offset=offset, text=b"line %06d\\n" % number))
    offset += 12
    processes = tuple(Process(pid=p, ppid=1, state="S", cpu=now) for p in range(40))
    recorder.take(Sample(at=now, mono=now, processes=processes))
    print(now, flush=True)
    time.sleep(0.02)
"""


def kill_one(folder: Path, after: float) -> float:
    """Record, kill -9 after so many seconds, read; seconds between the last event taken and the last one kept."""
    folder.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", RECORDING, str(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    first = float(child.stdout.readline())
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    told = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    last = float(told[-1]) if told else first
    kept = [first]
    for path in folder.glob("*.tuimon"):
        file = RecordingFile.open(path)
        for index in range(len(file.frames)):
            kept += [event.at for event in file.read(index) if isinstance(event, Sample)]
    return last - max(kept)


def moments(count: int) -> list[float]:
    """Random moments of the first seconds: before the first block, between blocks, at the renaming."""
    return [round(random.Random(7 + number).uniform(0.0, 4.0), 3) for number in range(count)]


@pytest.mark.parametrize("after", moments(5))
def test_killed_at_any_moment_the_file_is_readable_and_at_most_two_seconds_are_lost(
    tmp_path: Path, after: float
) -> None:
    assert kill_one(tmp_path / "r", after) <= LOST


@pytest.mark.slow
def test_killed_at_fifty_moments_nothing_is_lost_but_the_last_two_seconds(tmp_path: Path) -> None:
    lost = [kill_one(tmp_path / str(number), after) for number, after in enumerate(moments(50))]
    sys.stderr.write(f"lost: worst {max(lost):.2f} s, mean {sum(lost) / len(lost):.2f} s of {len(lost)} kills\n")
    assert max(lost) <= LOST
