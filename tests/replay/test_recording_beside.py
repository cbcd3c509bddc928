"""A watch is recorded by default, from its first event; a replay needs neither SSH nor a host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.watch.scripted import SAMPLE, SERVER, Watched
from tuimon.config import Settings
from tuimon.launch.events import CommandRun, Linked, Sample, ServerFound
from tuimon.recording.form import Judged
from tuimon.recording.source import open_source
from tuimon.watch.recorded import record

AS_NOBODY = """
import os, sys, time
from pathlib import Path
from tuimon.launch.events import Linked
from tuimon.recording.recorder import Recorder
from tuimon.recording.series import Series
from tuimon.recording.shelf import Limits
if os.geteuid() == 0:  # root may write everywhere: that would prove nothing
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
said = []
recorder = Recorder(Path(sys.argv[1]), "gpu-17", Limits(10**9, 30), say=said.append)
recorder.start()
recorder.take(Linked(at=time.time(), host="gpu-17"))
recorder.stop()
print(said[0].text)
"""


def test_every_event_of_a_watch_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path))
    watched = Watched(Settings())
    recorder = record(watched.watch, "gpu-17", Settings())
    assert recorder is not None
    watched.start()
    watched.says(SERVER, SAMPLE)
    watched.passes(2)
    watched.watch.stop()
    recorder.stop()
    (path,) = (tmp_path / "recordings").glob("gpu-17_server_*.tuimon")
    source = open_source(str(path))
    events = [event for piece in range(len(source.firsts)) for event in source.read(piece)]
    assert {type(event) for event in events} >= {Linked, CommandRun, ServerFound, Sample, Judged}
    assert len(events) == len(watched.believer.events) + sum(isinstance(event, Judged) for event in events)


def test_a_watch_is_recorded_by_default_and_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path))
    assert Settings().record
    assert record(Watched(Settings()).watch, "gpu-17", Settings(record=False)) is None
    assert list(tmp_path.iterdir()) == []


def test_without_rights_on_the_folder_it_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(tmp_path / "recordings")], capture_output=True, text=True, check=True
    )
    assert "This watch is not being recorded: Permission denied" in done.stdout


def test_a_replay_loads_neither_ssh_nor_hosts() -> None:
    script = "import sys, tuimon.watch.replay, tuimon.ui.replay, tuimon.recording.source; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "asyncssh" not in loaded
    assert not [name for name in loaded if name.startswith(("tuimon.hosts", "tuimon.probe", "tuimon.demo"))]


def test_the_recorder_loads_no_compression_before_it_writes() -> None:
    script = "import sys, tuimon.watch.recorded; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"zstandard", "textual", "asyncssh"} & set(done.stdout.split())
