"""After ready: requests, throughput, acceptance length, and a draft model that does nothing."""

from __future__ import annotations

import pytest

from tests.unit import sglang_lines as sg
from tuimon.launch.events import ServerFound
from tuimon.launch.reading import Reading


def decode(accept: str, rank: str = "TP0", tps: str = "61.44", running: int = 1) -> str:
    spec = f"accept len: {accept}, accept rate: 0.00, " if accept else ""
    return sg.stamped(
        50, f"Decode batch, #running-req: {running}, #token: 5, token usage: 0.00, {spec}cuda graph: True, "
        f"gen throughput (token/s): {tps}, #queue-req: 2", rank,
    )  # fmt: skip


def serving(text: str, engine: str = "sglang") -> Reading:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine=engine), 1000.0)
    if engine == "sglang":
        reading.feed(sg.NEW.encode(), 1000.0)
    reading.feed(text.encode(), 1060.0)
    return reading


def test_a_decode_line_tells_requests_queue_throughput_and_acceptance() -> None:
    view = serving(decode("2.81", running=8)).told(1061.0)
    assert view.serving is not None
    assert (view.serving.running, view.serving.queued) == (8, 2)
    assert (view.serving.tokens_per_second, view.serving.accept_length, view.serving.at) == (61.44, 2.81, 1060.0)
    assert view.last_tokens == 1060.0


def test_replicas_are_added_up() -> None:
    text = decode("", "DP0 TP0", "10.0", 2) + decode("", "DP1 TP0", "30.0", 3) + decode("", "DP0 TP0", "20.0", 4)
    view = serving(text).told(1061.0)
    assert view.serving is not None
    assert (view.serving.running, view.serving.tokens_per_second) == (7, 50.0)


def test_three_batches_in_a_row_at_the_floor_mean_a_draft_model_that_does_nothing() -> None:
    assert not serving(decode("1.00") * 2).told(1061.0).useless_draft
    assert serving(decode("1.00") + decode("1.05") + decode("1.02")).told(1061.0).useless_draft
    assert not serving(decode("1.00") * 2 + decode("1.60") + decode("1.00") * 2).told(1061.0).useless_draft


def test_the_alarm_ends_when_acceptance_returns() -> None:
    reading = serving(decode("1.00") * 3)
    reading.feed((decode("2.50") * 3).encode(), 1070.0)
    assert not reading.told(1071.0).useless_draft


def test_vllm_tells_the_same_in_two_lines() -> None:
    prefix = "(APIServer pid=4101) INFO 11-30 03:10:41 [loggers.py:335] "
    text = (
        "INFO:     Application startup complete.\n"
        + prefix + "Engine 000: Avg prompt throughput: 3.0 tokens/s, Avg generation throughput: 23.9 tokens/s, "
        "Running: 1 reqs, Waiting: 4 reqs, GPU KV cache usage: 0.4%, Prefix cache hit rate: 0.0%\n"
        + (prefix + "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted throughput: 0.0 tokens/s\n") * 3
    )  # fmt: skip
    view = serving(text, "vllm").told(1061.0)
    assert view.serving is not None
    assert (view.serving.running, view.serving.queued, view.serving.tokens_per_second) == (1, 4, 23.9)
    assert view.useless_draft


def test_a_request_that_was_answered_is_tokens_and_a_health_question_is_none() -> None:
    text = 'INFO:     127.0.0.1:35662 - "{} HTTP/1.1" 200 OK\n'
    assert serving(text.format("GET /health"), "vllm").told(1061.0).last_tokens is None
    assert serving(text.format("POST /v1/completions"), "vllm").told(1061.0).last_tokens == 1060.0


def test_the_engines_own_startup_timings_are_kept() -> None:
    reading = serving(sg.stamped(48, "Engine startup timings (s): load_weight=11.87, scheduler_e2e=41.20"))
    assert reading.fold.timings == "load_weight=11.87, scheduler_e2e=41.20"


def _spec(accept: str, drafted: int) -> str:
    return (
        "(APIServer pid=4101) INFO 05-30 02:30:09 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 3.1%, "
        f"Mean acceptance length: {accept}, Accepted: 31 tokens, Drafted: {drafted} tokens\n"
    )


@pytest.mark.parametrize(
    ("method", "lines", "useless"),
    [
        ("eagle3", _spec("1.12", 1000), True),
        ("eagle3", _spec("1.12", 400) * 3, True),
        ("eagle3", _spec("1.12", 400), False),  # too few to tell
        ("eagle3", _spec("1.12", 600) + _spec("2.9", 600) + _spec("1.15", 600), False),
        ("eagle3", _spec("1.45", 9000), False),  # weak, but it helps
        ("ngram", _spec("1.12", 9000), False),  # a text without repetitions
    ],
)
def test_a_draft_model_of_which_hardly_anything_is_accepted_is_useless(method: str, lines: str, useless: bool) -> None:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine="vllm"), 1000.0)
    args = f"{{'model': 'org/m', 'speculative_config': {{'method': '{method}', 'model': 'org/d'}}}}"
    reading.feed(f"(APIServer pid=4101) INFO 05-30 02:29:09 [utils.py:1] non-default args: {args}\n".encode(), 1001.0)
    reading.feed(b"(APIServer pid=4101) INFO:     Application startup complete.\n", 1002.0)
    reading.feed(lines.encode(), 1060.0)
    assert reading.told(1061.0).useless_draft is useless


def test_a_draft_model_that_does_nothing_is_warned_of_where_it_begins() -> None:
    """The alarm stands in the banner as long as it is so; a warning each second would hide all others."""
    reading = serving(decode("2.81") + decode("1.00") * 3 + decode("2.81") + decode("1.00") * 2)
    lines = reading.lines()
    kinds = [line.severity for line in lines.slice(lines.first, lines.end) if "Decode batch" in line.text]
    assert kinds == ["info", "warning", "info", "info", "info", "warning", "info"]


def test_a_prefill_is_a_milestone_once_and_routine_while_it_serves() -> None:
    """The lens shows what is not routine: after the warm-up each request writes such a line."""
    prefill = "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, #running-req: 0, #queue-req: 0, "
    reading = serving("".join(sg.stamped(50 + second, prefill, "TP0") for second in range(3)) + decode("2.81"))
    lines = reading.lines()
    kinds = [line.severity for line in lines.slice(lines.first, lines.end) if "Prefill batch" in line.text]
    assert kinds == ["milestone", "info", "info", "info"]
    assert reading.told(1061.0).serving is not None
