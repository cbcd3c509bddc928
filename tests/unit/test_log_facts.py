"""What a launch was told to do: argument dumps in every format, command lines, and what must come then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.launch.expectations import expected
from tuimon.launch.facts import Facts, from_argv, from_log

ROWS = (Path(__file__).parent / "data" / "log_lines" / "sglang.jsonl").read_text().splitlines()
DUMPS = [row["shape"] for row in map(json.loads, ROWS) if row["milestone"] == "server_args_dump"]


def phases(engine: str, facts: Facts | None) -> list[str]:
    return [part.phase for part in expected(engine, facts)]


@pytest.mark.parametrize("number", range(len(DUMPS)))
def test_sglangs_dump_is_read_in_all_its_formats(number: int) -> None:
    facts = from_log(DUMPS[number].partition("] ")[2])
    assert facts is not None
    assert facts.model == "/models/target-8b"
    assert facts.get("port") == 30000
    assert len(facts.values) > 100


def test_a_dump_that_python_cannot_parse_still_tells_what_matters() -> None:
    facts = from_log(
        "server_args=ServerArgs(model_path='/m', tp_size=8, odd=<object at 0x7f>, speculative_algorithm='EAGLE3', x="
    )
    assert facts is not None
    assert (facts.model, facts.ranks, facts.speculation) == ("/m", 8, ("speculative_algorithm", "EAGLE3"))


def test_vllms_two_lines_are_read() -> None:
    facts = from_log(
        "non-default args: {'model_tag': 'org/m', 'tensor_parallel_size': 2, 'served_model_name': ['tiny']}"
    )
    assert facts is not None
    assert (facts.model, facts.ranks, facts.shape) == ("tiny", 2, "tp 2")
    facts = from_log(
        "Initializing a V1 LLM engine (v0.32.0) with config: model='org/m', speculative_config=SpeculativeConfig("
        "method='eagle3', model='org/d', num_spec_tokens=3), tokenizer='org/m', tensor_parallel_size=4, dtype=half"
    )
    assert facts is not None
    assert (facts.ranks, facts.shape, facts.draft) == (4, "tp 4 · eagle3", True)


def test_a_line_that_is_no_dump_tells_nothing() -> None:
    assert from_log("Load weight begin. avail mem=78.31 GB") is None


@pytest.mark.parametrize(
    ("argv", "model", "ranks", "shape"),
    [
        ("sglang.launch_server --model-path /m --tp-size 8 --speculative-algorithm EAGLE3", "/m", 8, "tp 8 · EAGLE3"),
        ("sglang serve --model-path=/m --tp=4 --dp-size 2 --enable-dp-attention", "/m", 4, "tp 4 · dp 2"),
        ("python -m sglang.launch_server --model /m --tp 16 --nnodes 2 --node-rank 1", "/m", 8, "tp 16 · node 2 of 2"),
        ("vllm serve org/m -tp 2 --port 8000 --enforce-eager", "org/m", 2, "tp 2"),
        ("""vllm serve org/m --speculative-config {"method":"ngram"}""", "org/m", 1, "ngram"),
        ("torchrun --nproc-per-node=8 train.py", None, 8, None),
    ],
)  # fmt: skip
def test_a_command_line_tells_the_same(argv: str, model: str | None, ranks: int, shape: str | None) -> None:
    facts = from_argv(argv.split())
    assert facts is not None
    assert (facts.model, facts.ranks, facts.shape) == (model, ranks, shape)


@given(st.lists(st.text(max_size=20), max_size=12))
def test_any_command_line_can_be_read(argv: list[str]) -> None:
    facts = from_argv(argv)
    if facts is not None:
        assert facts.ranks is not None
        phases("sglang", facts)
        phases("vllm", facts)


@given(st.text(max_size=200))
def test_any_dump_can_be_read(text: str) -> None:
    for head in ("server_args=ServerArgs(", "server_args={", "non-default args: {", "LLM engine (v1) with config: "):
        facts = from_log(head + text)
        if facts is not None:
            phases("sglang", facts)


def given_args(**values: object) -> Facts:
    return Facts(dict(values), "log")


def test_speculation_makes_a_draft_model_expected() -> None:
    eagle = given_args(tp_size=8, speculative_algorithm="EAGLE3", speculative_num_steps=3)
    assert phases("sglang", eagle)[3:7] == ["KV cache", "CUDA graphs", "draft model load", "draft graphs"]
    assert "draft model load" not in phases("sglang", given_args(speculative_algorithm="NGRAM"))
    one_step = given_args(speculative_algorithm="EAGLE3", speculative_num_steps=1)
    assert "draft graphs" not in phases("sglang", one_step)
    draft = given_args(speculative_config={"method": "draft_model", "model": "/d"})
    assert "draft model load" in phases("vllm", draft)


def test_graphs_that_are_switched_off_are_not_expected() -> None:
    off = {"decode": {"backend": "disabled"}}
    for facts in (
        given_args(disable_cuda_graph=True), given_args(cuda_graph_config=off), given_args(is_embedding=True),
        given_args(disaggregation_mode="prefill"), given_args(device="cpu"),
    ):  # fmt: skip
        assert "CUDA graphs" not in phases("sglang", facts)


def test_without_warm_up_none_is_expected() -> None:
    assert "warm-up" not in phases("sglang", given_args(skip_server_warmup=True))


def test_an_unknown_engine_has_what_its_grammar_names() -> None:
    assert [part.phase for part in expected("mine", None, ("a", "b"))] == ["a", "b"]
