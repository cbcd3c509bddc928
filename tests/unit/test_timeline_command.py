"""`tuimon timeline`: the JSON document, the words, exit codes, pipes, big files."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit import sglang_lines as sg
from tuimon.headless.timeline import run

STATES = {"done", "running", "missing", "failed"}
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema" / "timeline.json").read_text())
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "null": (type(None),), "object": (dict,),
    "array": (list,),
}  # fmt: skip


def check(value: object, schema: dict[str, Any], where: str = "") -> None:
    """The few words of JSON schema that ours use."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert not kinds or any(isinstance(value, TYPES[kind]) for kind in kinds), (where, value)
    assert value in schema.get("enum", [value]), (where, value)
    assert value == schema.get("const", value), (where, value)
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value), where
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                check(value[name], inner, f"{where}.{name}")
    if isinstance(value, list):
        for inner in value:
            check(inner, schema["items"], f"{where}[]")


@pytest.fixture(autouse=True)
def _own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path / "config"))


def document(capsys: pytest.CaptureFixture[str], *files: str, gap: float = 10.0, lens: bool = False) -> dict[str, Any]:
    assert run(files, gap, lens=lens, as_json=True) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1, "exactly one document"
    loaded: dict[str, Any] = json.loads(out)
    check(loaded, SCHEMA)
    return loaded


def log(tmp_path: Path, text: str, name: str = "server.log") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_the_document_has_every_field_of_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = log(tmp_path, sg.NEW)
    result = document(capsys, name)
    assert result["schema"] == "tuimon.timeline/1"
    (file,) = result["files"]
    assert set(file) == {
        "file", "engine", "version", "lines", "state", "ready_s", "ready_line", "phases", "missing", "gaps", "error",
    }  # fmt: skip
    assert (file["file"], file["engine"], file["state"]) == (name, "SGLang", "ready")
    assert file["lines"] == sg.NEW.count("\n")
    assert file["ready_s"] == 41.0
    assert sg.NEW.splitlines()[file["ready_line"] - 1].endswith("ready to roll!")
    assert {phase["state"] for phase in file["phases"]} == {"done"}
    assert set(file["phases"][0]) == {"name", "rank", "start_s", "end_s", "state"}
    weights = next(phase for phase in file["phases"] if phase["name"] == "weights")
    assert (weights["start_s"], weights["end_s"]) == (12.0, 19.0)
    assert (file["missing"], file["error"]) == ([], None)


def test_silences_are_listed_with_the_line_before_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sg.stamped(1, "Init torch distributed begin.") + sg.stamped(5, "b") + "no time\n" + sg.stamped(65, "c")
    (file,) = document(capsys, log(tmp_path, text))["files"]
    assert file["gaps"] == [{"line": 2, "start_s": 4.0, "length_s": 60.0}]
    (file,) = document(capsys, log(tmp_path, text), gap=2.0)["files"]
    assert [gap["line"] for gap in file["gaps"]] == [1, 2]


def test_what_a_bar_covers_is_no_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bar = "\rMulti-thread loading shards:  50% Completed | {}/60 [00:{:02}<00:09,  1.00it/s]"
    drawn = "".join(bar.format(second, second) for second in range(0, 51, 10))
    begin, end = sg.stamped(1, "Load weight begin."), "\n" + sg.stamped(61, "Load weight end. type=LlamaForCausalLM")
    (file,) = document(capsys, log(tmp_path, begin + drawn + end))["files"]
    assert [gap["length_s"] for gap in file["gaps"]] == [10.0]
    (file,) = document(capsys, log(tmp_path, begin + bar.format(3, 3) + end))["files"]
    assert [gap["length_s"] for gap in file["gaps"]] == [60.0]


def test_a_launch_that_stops_before_its_draft_model_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = document(capsys, log(tmp_path, sg.OLD))["files"]
    assert file["state"] == "unfinished"
    assert file["missing"] == [
        {"milestone": "draft model load", "because": "expected (speculative_algorithm=EAGLE3), not seen"}
    ]
    assert {phase["state"] for phase in file["phases"]} <= STATES
    assert run([log(tmp_path, sg.OLD)], 10.0, lens=False, as_json=False) == 0
    words = capsys.readouterr().out
    assert "draft model load" in words
    assert "expected (speculative_algorithm=EAGLE3), not seen" in words


def test_a_log_without_a_clock_has_no_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = document(capsys, log(tmp_path, "[rank0] init done world_size=2 pid=1\nstep 0 loss 0.3\n"))["files"]
    assert file["engine"] == "torchrun"
    assert file["phases"][0]["start_s"] is None


def test_several_files_and_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sg.OLD.encode())))
    files = document(capsys, log(tmp_path, sg.NEW), "-")["files"]
    assert [(file["file"][-1:], file["state"]) for file in files] == [("g", "ready"), ("-", "unfinished")]


def test_the_lens_shows_the_lines_that_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = log(tmp_path, sg.NEW + "nothing to see\n" * 100)
    assert run([name], 10.0, lens=True, as_json=False) == 0
    words = capsys.readouterr().out
    assert "Load weight begin" in words
    assert "nothing to see" not in words
    (file,) = document(capsys, name, lens=True)["files"]
    assert {line["severity"] for line in file["key_lines"]} <= {"milestone", "warning", "error", "fatal"}
    assert "sk-very-secret" not in json.dumps(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "nowhere.log")
    assert run([missing, log(tmp_path, sg.NEW)], 10.0, lens=False, as_json=True) == 2
    captured = capsys.readouterr()
    assert missing in captured.err
    assert len(json.loads(captured.out)["files"]) == 1


def test_an_empty_file_and_one_of_noise_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 400)
    files = document(capsys, log(tmp_path, ""), str(noise))["files"]
    assert [(file["engine"], file["state"]) for file in files] == [(None, "unfinished"), (None, "unfinished")]


def test_a_bad_grammar_of_the_user_is_named_and_the_rest_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "config" / "grammars"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("engine = 'mine'\n[[rule]]\nname = 'bad'\n")
    assert run([log(tmp_path, sg.NEW)], 10.0, lens=False, as_json=True) == 0
    captured = capsys.readouterr()
    assert "mine.toml:2: rule bad" in captured.err
    assert json.loads(captured.out)["files"][0]["state"] == "ready"


def test_memory_stays_bounded_on_a_big_log(tmp_path: Path) -> None:
    """12 MB here; benchmarks/timeline_big reads 1 GB."""
    path = tmp_path / "big.log"
    steady = "".join(
        sg.stamped(50, f"Decode batch, #running-req: 1, #token: {n}, gen throughput (token/s): 61.44, #queue-req: 0")
        for n in range(1000)
    )
    with path.open("w") as file:
        file.write(sg.NEW)
        for _ in range(100):
            file.write(steady)
    program = (
        "import sys; from tuimon.headless.timeline import run\n"
        "run([sys.argv[1]], 10.0, lens=False, as_json=True)\n"
        # Not ru_maxrss: a child begins with that of the process it was forked from, here the whole test run.
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    peak = next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("VmHWM"))
    assert peak < 150 * 1024, "KiB"
