"""Prefixes of every engine: time, rank, process, level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.engines.prefix import Prefix, parse

NESTED = (
    b"(ServeReplica:llm:LLMServer:m pid=28488) (EngineCore pid=29087) (RayWorkerProc pid=29271) (Worker pid=29271) "
    b"INFO 08-19 17:59:53 [default_loader.py:430] msg"
)
JSON = b'{"asctime": "2026-03-04 10:15:41,175", "processName": "EngineCore", "process": 4188, "message": "msg"}'
SAMPLES = [
    (b"[2026-03-04 10:15:26 TP1] msg", "10:15:26", "TP1", None, None),
    (b"[2026-03-04 10:15:26.412 DP0 PP1 TP3 EP3] msg", "10:15:26.412", "DP0 PP1 TP3 EP3", None, None),
    (b"[2026-03-04 10:15:26 TP3 EP3] msg", "10:15:26", "TP3 EP3", None, None),
    (b"INFO 02-25 18:26:42 llm_engine.py:234] msg", "18:26:42", None, None, None),
    (
        b"(VllmWorkerProcess pid=27169) INFO 02-25 18:26:50 model_runner.py:1110] msg",
        "18:26:50",
        None,
        27169,
        "VllmWorkerProcess",
    ),
    (b"INFO 05-16 13:08:41 [core.py:58] msg", "13:08:41", None, None, None),
    (
        b"(VllmWorker rank=1 pid=250) INFO 05-16 13:08:58 [gpu_model_runner.py:1329] msg",
        "13:08:58",
        "TP1",
        250,
        "VllmWorker rank=1",
    ),
    (
        b"(VllmWorker TP1 pid=250) INFO 08-18 15:32:40 [gpu_model_runner.py:1953] msg",
        "15:32:40",
        "TP1",
        250,
        "VllmWorker TP1",
    ),
    (
        b"(Worker_DP0_TP3_EP3 pid=5018) INFO 11-30 03:10:41 [gpu_model_runner.py:3848] msg",
        "03:10:41",
        "DP0 TP3 EP3",
        5018,
        "Worker_DP0_TP3_EP3",
    ),
    (b"(EngineCore_DP0 pid=77352) INFO 10-22 09:31:55 [core.py:77] msg", "09:31:55", None, 77352, "EngineCore_DP0"),
    (b"(EngineCore pid=4188) DEBUG 11-30 03:10:41 [v1/engine/core.py:1371] msg", "03:10:41", None, 4188, "EngineCore"),
    (b"(VllmWorker-1 pid=4231) WARNING 11-30 03:10:41 [vllm.py:725] msg", "03:10:41", None, 4231, "VllmWorker-1"),
    (b"[10/21/2025-23:23:27] [TRT-LLM] [RANK 3] [I] msg", "23:23:27", "rank3", None, None),
    (b"[TensorRT-LLM][INFO] msg", None, None, None, None),
    (b"0.00.012.965 I msg", "0.00.012.965", None, None, None),
    (b"2026-01-08T14:02:49.123456Z  INFO msg", "14:02:49.123", None, None, None),
    (b"2026-10-12 11:04:31,408 - lmdeploy - INFO - base.py:439 - msg", "11:04:31,408", None, None, None),
    (NESTED, "17:59:53", None, 29271, "Worker"),
    (b"INFO 2026-08-19 17:58:40,112 serve 28011 -- msg", "17:58:40,112", None, None, None),
    (b"[rank1]:[W1130 03:26:39.840455039 reducer.cpp:1529] msg", "03:26:39.840", "rank1", None, None),
    (b"[rank1]:[E304 10:35:12.426415540 ProcessGroupNCCL.cpp:685] msg", "10:35:12.426", "rank1", None, None),
    (
        b"W1130 03:27:25.209000 12324 torch/distributed/elastic/agent/server/api.py:753] msg",
        "03:27:25.209",
        None,
        None,
        None,
    ),
    (b"[rank0]: msg", None, "rank0", None, None),
    (b"03:51:26 [rank0] msg", "03:51:26", "rank0", None, None),
    (b"node-a:4711:4711 [0] NCCL INFO msg", None, None, 4711, None),
    (JSON, "10:15:41", None, 4188, "EngineCore"),
]


@pytest.mark.parametrize(("line", "clock", "rank", "pid", "process"), SAMPLES)
def test_a_prefix_is_taken_off(
    line: bytes, clock: str | None, rank: str | None, pid: int | None, process: str | None
) -> None:
    message, parts = parse(line)
    assert message.endswith(b"msg")
    assert len(message) <= len(b"NCCL INFO msg")
    assert (parts.clock, parts.rank, parts.pid) == (clock, rank, pid)
    if process is not None:
        assert parts.process == process


def test_the_second_look_at_a_head_tells_the_same_as_the_first() -> None:
    line = b"(Worker_TP0 pid=7) INFO 11-30 03:10:41 [a.py:1] one"
    assert parse(line)[1] == parse(line.replace(b"one", b"two"))[1] != Prefix()


def test_indentation_of_a_traceback_stays() -> None:
    assert parse(b'[rank0]:   File "x.py", line 1')[0] == b'  File "x.py", line 1'


@given(st.binary(max_size=200))
def test_any_bytes_have_a_message(line: bytes) -> None:
    parse(line)
    parse(b"[2026-99-99 77:88:99 TP1] " + line)
