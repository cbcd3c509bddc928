"""A recording in a form for others: JSON lines, a table, a report."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from tuimon.cli import cli
from tuimon.config import Settings
from tuimon.headless.export import events, report, table
from tuimon.launch.events import AnyEvent, Finding, Sample
from tuimon.recording import folder
from tuimon.recording.errors import UnreadableRecording
from tuimon.recording.form import VERSION, Header, Judged, line
from tuimon.recording.source import ListSource
from tuimon.recording.writer import Writer

STALL = Path(__file__).resolve().parents[1] / "data" / "recordings" / "vllm-shard-is-a-fifo"
CAPTURE = STALL.with_name("torch-graph-capture")


def export(*words: str) -> Result:
    return CliRunner().invoke(cli, ["export", *words])


def test_json_gives_every_event_as_one_line() -> None:
    done = export("--json", str(STALL))
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert (done.exit_code, len(lines)) == (0, len(list(folder.events(STALL))))
    assert [event["event"] for event in lines[:2]] == ["Linked", "ServerFound"]


def test_csv_gives_a_row_for_each_sample_and_leaves_unknown_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(export("--csv", str(CAPTURE)).stdout)))
    samples = [event for event in folder.events(CAPTURE) if isinstance(event, Sample)]
    assert len(rows) == len(samples)
    assert rows[0]["at"].endswith("Z")
    assert float(rows[5]["gpu0_util"]) == (samples[5].gpus or ())[0].util
    assert rows[0]["gpu0_temperature"] == ""
    assert rows[0]["log_bytes"] == ""


def test_csv_says_nothing_of_processes_that_were_not_looked_at() -> None:
    out = io.StringIO()
    table(ListSource("x", [Sample(at=1.0, mono=1.0), Sample(at=2.0, mono=2.0, processes=())]), out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [row["processes"] for row in rows] == ["", "0"]


def test_the_report_tells_the_verdicts_their_evidence_and_the_timeline() -> None:
    done = export(str(STALL))
    assert done.exit_code == 0
    for words in (
        "# vLLM 0.32.0 on vllm-shard-is-a-fifo: stalled", "## Verdicts", "| quiet |", "stalled (dead storage)",
        "suspect: **Worker**", "- disk reads:", "stands at 0/4", "## Timeline",
        "running   weights", "## Milestones",
    ):  # fmt: skip
        assert words in done.stdout, words


def test_nothing_foreign_is_markup_in_the_report() -> None:
    told: list[AnyEvent | Judged] = list(folder.events(STALL))
    told.append(Finding(at=told[-1].at, source="x", kind="y", text="<script>*boom*\x1b[31m\n# heading"))
    text = "\n".join(report(ListSource("host`*_", told), Settings()))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\n# heading" not in text


def test_the_verdicts_of_the_time_stand_beside_todays() -> None:
    told: list[AnyEvent | Judged] = list(folder.events(STALL))
    told.append(Judged(at=told[-1].at, state="spinning", kind="collective spin"))
    assert "judged then: spinning (collective spin)" in "\n".join(report(ListSource("x", told), Settings()))


def test_what_is_wrong_with_a_recording_goes_to_stderr(tmp_path: Path) -> None:
    path = tmp_path / "one.tuimon"
    writer = Writer(path, Header(VERSION, "gpu-17", 1.0))
    for number in range(10):
        event = Sample(at=100.0 + number, mono=float(number))
        writer.write([line(event)], event.at, event.at)
    writer.close()
    path.write_bytes(path.read_bytes()[:-5])
    done = export("--json", str(path))
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 9
    assert "torn" in done.stderr


def test_standard_input_can_be_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "one.tuimon"
    writer = Writer(path, Header(VERSION, "gpu-17", 1.0))
    writer.write([line(Sample(at=1.0, mono=1.0))], 1.0, 1.0)
    writer.close()
    done = subprocess.run(
        [sys.executable, "-m", "tuimon", "export", "--json", "-"],
        input=path.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["event"] == "Sample"


@pytest.mark.parametrize("command", ["export", "replay"])
def test_what_is_no_recording_is_refused_with_exit_code_2(tmp_path: Path, command: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    done = subprocess.run(
        [sys.executable, "-m", "tuimon", command, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no recording of tuimon" in done.stderr
    with pytest.raises(UnreadableRecording):
        CliRunner().invoke(cli, [command, str(path)], catch_exceptions=False)


def test_events_are_given_in_order_of_time() -> None:
    source = ListSource("x", [structs.replace(Sample(mono=1.0), at=float(number)) for number in range(200)])
    assert [event.at for event in events(source)] == [float(number) for number in range(200)]
