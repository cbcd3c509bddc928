"""Every recorded log alone: the right final state, the right first error, the ready line where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuimon.headless.timeline import ReadLog, read

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
NAMES = sorted(path.name for path in RECORDINGS.iterdir() if path.is_dir()) if RECORDINGS.is_dir() else []
# What each crash's log says first, and where its own log ends otherwise than its truth.
ERRORS = {
    "sglang-cpu-crash": ("scheduler_exception", "has no attribute 'copy_all_layer_kv_cache_cpu'"),
    "torch-crash": ("traceback", "it->second->use_count > 0 INTERNAL ASSERT FAILED"),
    "torchrun-ddp-rank-killed": ("rank_killed", "exitcode  : -9 (pid: 19556)"),
    "vllm-engine-dies-on-first-request": ("worker_exception", "Unsupported CPU attention configuration"),
    "vllm-enginecore-killed-startup": ("engine_died", "Engine core initialization failed"),
    "vllm-no-such-model": ("no_such_model", "Repo id must be in the form"),
    "vllm-port-in-use": ("port_in_use", "Address already in use"),
    "vllm-tp2-worker-killed-serving": ("rank_killed", "died unexpectedly (exit code: -9)"),
    "vllm-tp2-worker-killed-startup": ("engine_died", "WorkerProc initialization failed"),
}
ENDED_BY_SIGKILL = {"llamacpp-dead-storage", "llamacpp-healthy", "vllm-debug-enginecore-sigstop"}
"""They were serving, and then their log stops."""


def expected_state(name: str, verdict: str, ready: float | None) -> str:
    if name in ERRORS:
        return "crashed"
    if name in ENDED_BY_SIGKILL:
        return "ready"
    if ready is not None or verdict == "finished" or name == "torchrun-hf-trainer-rank-sigstop":
        return "ended"
    return "unfinished"


pytestmark = pytest.mark.skipif(not NAMES, reason="the recordings are not beside this checkout (../shared/recordings)")


@pytest.fixture(name="log", params=NAMES)
def _log(request: pytest.FixtureRequest) -> ReadLog:
    return read(str(RECORDINGS / str(request.param) / "server.log"))


def name_of(log: ReadLog) -> str:
    return Path(log.name).parent.name


def truth(log: ReadLog) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((RECORDINGS / name_of(log) / "truth.json").read_text())["truth"]
    return loaded


def test_the_final_state_is_right(log: ReadLog) -> None:
    name, known = name_of(log), truth(log)
    ready = known.get("ready")
    assert log.state == expected_state(name, str(known["verdict"]), ready if isinstance(ready, float) else None)


def test_the_first_error_is_right(log: ReadLog) -> None:
    error = log.report(lens=False)["error"]
    if name_of(log) not in ERRORS:
        assert error is None
        return
    assert isinstance(error, dict)
    kind, text = ERRORS[name_of(log)]
    assert error["kind"] == kind
    assert text in error["text"]
    lines = (RECORDINGS / name_of(log) / "server.log").read_bytes().split(b"\n")
    quoted = error["text"].partition("first seen as: ")[2] or error["text"]
    assert quoted[:40].encode() in lines[error["line"] - 1], "the line number points at the error"


def test_the_ready_line_lies_within_what_existed_one_sample_after_ready(log: ReadLog) -> None:
    ready = truth(log).get("ready")
    line = log.report(lens=False)["ready_line"]
    if not isinstance(ready, float):
        assert line is None or log.state == "ready", "one launch was ready behind what its truth looks at"
        return
    assert isinstance(line, int)
    sizes = []
    for sample in (RECORDINGS / name_of(log) / "samples.jsonl").read_text().splitlines():
        values = json.loads(sample)
        if values["t"] >= ready and values["log_size"] is not None:
            sizes.append(values["log_size"])
    text = (RECORDINGS / name_of(log) / "server.log").read_bytes()
    end = sum(len(part) + 1 for part in text.split(b"\n")[:line])
    assert end <= (sizes[1] if len(sizes) > 1 else len(text))


def test_nothing_is_missing_in_a_launch_that_became_ready(log: ReadLog) -> None:
    if log.told.ready is not None:
        assert log.missing == []
        assert all(phase.state == "done" for phase in log.told.phases)


def test_only_the_draft_that_was_never_loaded_raises_the_alarm(log: ReadLog) -> None:
    assert log.told.useless_draft == (name_of(log) == "sglang-tp1-eagle3-unloaded-draft")


def test_the_engine_is_recognised_from_the_log_alone(log: ReadLog) -> None:
    engines = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama.cpp", "torch": "torchrun", "torchrun": "torchrun"}
    assert log.told.engine == engines[name_of(log).partition("-")[0]]
