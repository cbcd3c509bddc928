"""Errors: the first that counts with its cause line; what looks frightening and is none; what only follows."""

from __future__ import annotations

import pytest

from tests.unit import sglang_lines as sg
from tuimon.launch.events import ServerFound
from tuimon.launch.reading import Reading
from tuimon.launch.told import LogError, Told

TRACE = 'Traceback (most recent call last):\n  File "/opt/x.py", line 7, in run\n    load()\n    ^^^^^^\n'


def told(engine: str | None, text: str) -> Told:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine=engine) if engine else None, 1000.0)
    reading.feed(text.encode(), 1010.0)
    reading.finish(1010.0)
    return reading.told(1011.0)


def fatal(engine: str | None, text: str) -> LogError:
    error = told(engine, text).fatal
    assert error is not None
    return error


def test_the_cause_is_the_last_line_of_the_first_block() -> None:
    text = (
        sg.arguments(sg.OLD_ARGS)
        + sg.stamped(5, "Scheduler hit an exception: " + TRACE.rstrip(), "TP3")
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
        + sg.stamped(6, "Received sigquit from a child process. It usually means the child failed.")
        + sg.stamped(6, "kill_process_tree called: parent_pid=1, include_parent=True, pid=1")
    )
    error = fatal(None, text)
    assert error.kind == "out_of_memory"
    assert error.text.startswith("torch.OutOfMemoryError: CUDA out of memory")
    assert error.rank == "TP3"
    assert error.advice is not None


def test_of_vllms_many_blocks_the_deepest_process_names_the_cause() -> None:
    def block(who: str, place: str, intro: str, cause: str) -> str:
        head = f"({who}) ERROR 11-30 03:10:47 [{place}] "
        return "".join(f"{head}{line}\n" for line in (intro, *TRACE.splitlines(), cause))

    text = (
        block("Worker_TP1 pid=22", "multiproc_executor.py:953", "WorkerProc failed to start.", "KeyError: 'lm_head'")
        + block("EngineCore pid=21", "core.py:1510", "EngineCore failed to start.",
                "Exception: WorkerProc initialization failed due to an exception in a background process.")
        + TRACE + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )  # fmt: skip
    error = fatal("vllm", text)
    assert (error.text, error.rank, error.pid) == ("KeyError: 'lm_head'", "TP1", 22)


def test_a_traceback_that_the_launch_survives_is_no_error() -> None:
    text = TRACE + "ModuleNotFoundError: No module named 'deep_gemm.utils'\n" + sg.NEW
    view = told(None, text)
    assert view.error is None
    assert view.ready is not None


def test_a_traceback_that_nothing_follows_is_the_error() -> None:
    view = told("torchrun", TRACE + "ValueError: no such dataset\n")
    assert view.error is not None
    assert (view.error.text, view.error.kind, view.error.fatal) == ("ValueError: no such dataset", "traceback", False)
    assert view.fatal is None


def test_a_bare_traceback_explains_a_line_that_only_says_that_something_failed() -> None:
    text = (
        sg.arguments(sg.OLD_ARGS)
        + TRACE
        + "OSError: bad shard\n"
        + sg.stamped(9, "Received sigquit from a child process.")
    )
    error = fatal(None, text)
    assert error.text == "OSError: bad shard"
    assert error.fatal


def test_a_killed_rank_counts_more_than_the_peer_that_noticed() -> None:
    text = (
        "[rank0]: RuntimeError: [/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:5012: reset by peer\n"
        "E1130 03:28:52.387000 19551 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -6) "
        "local_rank: 0 (pid: 19555) of binary: python\n  exitcode  : -9 (pid: 19556)  (SIGKILL)\n"
    )
    error = fatal("torchrun", text)
    assert (error.kind, error.pid) == ("rank_killed", 19556)
    assert "first seen as: RuntimeError" in error.text


@pytest.mark.parametrize(
    ("engine", "line", "kind"),
    [
        ("sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "out_of_memory"),
        ("sglang", "[2026-03-04 10:15:48] ERROR:    [Errno 98] error while attempting to bind on address ('::', 1)",
         "port_in_use"),
        ("sglang", "AssertionError: Attempted to load weight (torch.Size([4096])) into parameter (torch.Size([2560]))",
         "draft_shape_mismatch"),
        ("sglang", "ValueError: Model architectures ['Eagle3Speculator'] are not supported for now.",
         "unsupported_architecture"),
        ("sglang", "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)",
         "nccl_timeout"),
        ("sglang", "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9).", "rank_killed"),
        ("vllm", "OSError: [Errno 98] Address already in use", "port_in_use"),
        ("vllm", "Fatal Python error: Segmentation fault", "native_crash"),
        ("llamacpp", "0.00.031.100 E srv    load_model: failed to load model, '/models/m.gguf'", "bad_model"),
        ("tgi", "2026-01-08T14:02:49.1Z ERROR text_generation_launcher: Shard 1 failed to start", "rank_killed"),
    ],
)  # fmt: skip
def test_a_known_fatal_line_has_its_kind(engine: str, line: str, kind: str) -> None:
    error = fatal(engine, line + "\n")
    assert (error.kind, error.fatal) == (kind, True)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-03-04 10:15:03 TP1] Ignore import error when loading sglang.srt.models.x: No module named 'torchaudio'",
        "resource_tracker: There appear to be 4 leaked shared_memory objects to clean up at shutdown",
        "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1",
        "[2026-03-04 10:15:11 TP3] Custom allreduce is disabled because this process group spans across nodes.",
        "[2026-11-30 04:04:54] OpenAI Responses API (/v1/responses) disabled: OpenAIServingResponses init failed",
        "[rank0]:[W304 10:40:00.01 P.cpp:1] Warning: destroy_process_group() was not called before program exit",
    ],
)
def test_a_frightening_but_harmless_line_is_no_error(line: str) -> None:
    view = told(None, sg.NEW + line + "\n")
    assert view.error is None


def test_what_follows_a_shutdown_that_was_asked_for_is_no_crash() -> None:
    text = (
        sg.NEW
        + sg.stamped(50, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        + sg.stamped(
            51, "Subprocess scheduler_0 (pid=4738) crashed with exit code -15. Triggering SIGQUIT for cleanup..."
        )
        + sg.stamped(51, "SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    )
    view = told(None, text)
    assert view.ended is not None
    assert view.fatal is None


def test_a_traceback_that_was_announced_and_never_came_swallows_nothing() -> None:
    text = sg.arguments(sg.OLD_ARGS) + sg.stamped(5, "Scheduler hit an exception: oops", "TP0") + "note: 1\n" * 5
    error = fatal(None, text)
    assert error.text == "Scheduler hit an exception: oops"


def test_the_phase_that_ran_has_failed() -> None:
    text = sg.arguments(sg.OLD_ARGS) + sg.every(13, "Load weight begin. avail mem=94 GB") + "Killed\n"
    view = told(None, text)
    assert [phase.state for phase in view.phases if phase.name == "weights"] == ["failed"]


def test_secrets_do_not_get_into_an_error() -> None:
    error = fatal("vllm", TRACE + "OSError: [Errno 98] Address already in use, api_key='very-secret-123'\n")
    assert "very-secret" not in error.text
