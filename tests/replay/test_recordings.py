"""The judge on real recordings: no false alarm, every stall found in time, the right suspect, ready on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tuimon.launch.events import LogText, Sample
from tuimon.recording import trial
from tuimon.recording.degrade import DEGRADATIONS
from tuimon.recording.errors import UnreadableRecording
from tuimon.recording.folder import events

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "data" / "recordings"
SHARED = ROOT.parent / "shared" / "recordings"
COPIES = trial.recordings([HERE])
ALL = trial.recordings([SHARED]) if SHARED.is_dir() else []
needs_shared = pytest.mark.skipif(not ALL, reason=f"{SHARED} is not here: only the copies in tests/data are judged")


@pytest.mark.parametrize("path", COPIES, ids=lambda path: path.name)
def test_a_copied_recording_is_judged_right(path: Path) -> None:
    row = trial.try_one(path)
    assert row.missed == ()
    assert row.false_alarms == 0


@pytest.mark.parametrize("path", ALL or [pytest.param(HERE, marks=needs_shared)], ids=lambda path: path.name)
@needs_shared
def test_a_recording_is_judged_right(path: Path) -> None:
    row = trial.try_one(path)
    assert row.missed == ()
    assert row.suspect_right is not False


@needs_shared
def test_all_recordings_together_meet_the_targets() -> None:
    total = trial.summary([trial.try_one(path) for path in ALL])
    assert total["false_alarms"] == 0
    assert total["found"] == total["stalls"]
    assert total["delay_median_s"] <= trial.DELAY_MEDIAN
    assert total["delay_worst_s"] <= trial.DELAY_WORST
    assert total["certain_worst_s"] <= trial.CERTAIN_WORST
    assert total["suspects_right"] >= trial.SUSPECTS_SHARE * total["suspects_total"]


@pytest.mark.parametrize("name", DEGRADATIONS)
@pytest.mark.parametrize("paths", [COPIES, pytest.param(ALL, marks=needs_shared)], ids=["copies", "all"])
def test_a_poorer_eye_raises_no_false_alarm(paths: list[Path], name: str) -> None:
    false = [row.name for path in paths if (row := trial.try_one(path, name)).false_alarms]
    assert false == []


@pytest.mark.parametrize("path", COPIES, ids=lambda path: path.name)
def test_the_same_events_give_the_same_verdicts(path: Path) -> None:
    first, second = (trial.moments(events(path), ended=False) for _ in range(2))
    assert [moment.verdict for moment in first] == [moment.verdict for moment in second]


def test_the_log_is_told_as_it_grew() -> None:
    path = HERE / "vllm-shard-is-a-fifo"
    texts = [event for event in events(path) if isinstance(event, LogText)]
    assert b"".join(text.text for text in texts) == (path / "server.log").read_bytes()
    assert [text.offset for text in texts] == [sum(len(t.text) for t in texts[:i]) for i in range(len(texts))]


def test_a_log_whose_growth_was_not_recorded_cannot_be_seen() -> None:
    told = list(events(HERE / "torch-nccl-missing-rank"))
    assert not [event for event in told if isinstance(event, LogText)]
    assert all(event.log is None for event in told if isinstance(event, Sample))


def test_a_torn_recording_is_read_up_to_the_tear(tmp_path: Path) -> None:
    lines = (HERE / "torch-graph-capture" / "samples.jsonl").read_text().splitlines()
    (tmp_path / "samples.jsonl").write_text("\n".join([*lines[:5], lines[5][:40]]))
    assert len([event for event in events(tmp_path) if isinstance(event, Sample)]) == 5


@pytest.mark.parametrize("content", ["", "not json\n", "[]\n"])
def test_what_is_no_recording_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "samples.jsonl").write_text(content)
    with pytest.raises(UnreadableRecording):
        list(events(tmp_path))


def test_the_benchmark_runs_by_path_from_anywhere(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "verdicts"
    done = subprocess.run([sys.executable, script, HERE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["schema"] == trial.SCHEMA
    assert document["missed"] == []
    assert set(document["recordings"][0]) == {
        "name", "state", "verdicts", "delay_s", "false_alarms", "suspect_pids", "suspect_right", "ready_s",
    }  # fmt: skip
    unreadable = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False)
    assert unreadable.returncode == 2


def test_a_missed_target_is_said_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = HERE / "torch-graph-capture"
    (tmp_path / "samples.jsonl").write_bytes((source / "samples.jsonl").read_bytes())
    truth = {"truth": {"verdict": "stalled", "onset": 5.0, "culprit_pid": 569}}
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    assert trial.main([str(tmp_path)]) == 1
    assert "stalled was not found" in capsys.readouterr().out
