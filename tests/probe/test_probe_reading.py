"""The probe's pure parts: command lines, secrets, metrics, /proc formats. Anything may come in."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.probe.program import machine, metrics, processes, procfs, recognise, redact, sockets, speech

LAUNCHES = [
    ("python3 -m sglang.launch_server --model-path /m --port 31000", ("sglang", 31000, "/m")),
    ("/opt/venv/bin/python3 -W ignore -u -m sglang.launch_server --model-path=/m", ("sglang", 30000, "/m")),
    ("/usr/bin/python3 /usr/local/bin/sglang serve /m --tp 8", ("sglang", 30000, "/m")),
    ("python /srv/sglang/python/sglang/launch_server.py --model /m", ("sglang", 30000, "/m")),
    ("/opt/venv/bin/python /opt/venv/bin/vllm serve meta/llama -tp 2 --port 9000", ("vllm", 9000, "meta/llama")),
    ("python3.12 -m vllm.entrypoints.openai.api_server --model m", ("vllm", 8000, "m")),
    ("python3 /usr/local/bin/trtllm-serve serve m --backend pytorch", ("trtllm", 8000, "m")),
    ("trtllm-serve m --port 8001", ("trtllm", 8001, "m")),
    ("./llama-server -m /m.gguf -c 4096", ("llamacpp", 8080, "/m.gguf")),
    ("text-generation-launcher --model-id m -p 80", ("tgi", 80, "m")),
    ("python3 /usr/bin/lmdeploy serve api_server m --server-port 1234", ("lmdeploy", 1234, "m")),
    ("/opt/venv/bin/python3 /opt/venv/bin/torchrun --nproc_per_node 8 train.py", ("torchrun", None, None)),
    ("python -m torch.distributed.run --nproc-per-node 8 train.py", ("torchrun", None, None)),
    ("python /usr/bin/accelerate launch train.py", ("accelerate", None, None)),
]


@pytest.mark.parametrize(("line", "expected"), LAUNCHES, ids=[line for line, _expected in LAUNCHES])
def test_known_servers(line: str, expected: tuple[str, int | None, str | None]) -> None:
    argv = line.split()
    engine, start = recognise.launch(argv)
    assert (engine, recognise.port(engine, argv), recognise.model(engine, argv, start)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "bash -c sglang serve /m", "sh -c exec vllm serve m", "grep sglang.launch_server", "vim launch_server.py",
        "ssh host vllm serve m", "docker run img vllm serve m", "sudo vllm serve m", "tail -f vllm.log",
        "python -c import sglang.launch_server", "python -m pytest -m sglang.launch_server", "vllm bench serve",
        "vllm chat", "sglang", "python3 -I -u -c tuimon", "tuimon localhost", "accelerate config", "python", "",
        "tmux new -d sglang serve /m", "python -", "uv run vllm serve m", "journalctl -u vllm",
    ],
)  # fmt: skip
def test_no_servers(line: str) -> None:
    assert recognise.launch(line.split()) is None


@pytest.mark.parametrize(
    ("title", "rank"),
    [
        ("sglang::scheduler_TP3", "TP3"), ("sglang::scheduler_DP0_TP1_EP1", "DP0 TP1 EP1"),
        ("sglang::scheduler", "TP0"),
        ("sglang::scheduler_PP0_TP0", "PP0 TP0"), ("sglang::detokenizer", None), ("VLLM::Worker_TP0", "TP0"),
        ("VLLM::Worker", "Worker"), ("VLLM::EngineCore", "EngineCore"), ("VLLM::EngineCore_DP1", "EngineCore DP1"),
        ("VLLM::DPEngineCore_0", "EngineCore DP0"), ("VLLM::Worker_DP1_TP3_EP3", "DP1 TP3 EP3"), ("python3", None),
        ("VLLM::APIServer_0", None), ("sglang::data_parallel_controller", None),
    ],
)  # fmt: skip
def test_ranks(title: str, rank: str | None) -> None:
    assert recognise.rank(title) == rank


@pytest.mark.parametrize(
    ("bound", "asked"),
    [("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::", "::1"), ("10.1.2.3", "10.1.2.3"), ("[::1]", "::1")],
)
def test_addresses(bound: str, asked: str) -> None:
    assert recognise.address("sglang", ["sglang", "serve", "--host", bound]) == asked


@pytest.mark.parametrize(
    "argv",
    [
        ["--api-key", "S3CRET"], ["--api-key=S3CRET"], ["--api_key", "S3CRET"], ["--admin-api-key", "S3CRET"],
        ["--api-key", "S3CRET", "S3CRET2"], ["--hf-token", "S3CRET"], ["HF_TOKEN=S3CRET"],
        ["env", "VLLM_API_KEY=S3CRET"],
        ["--ssl-keyfile-password", "S3CRET"], ["--json", '{"api_key": "S3CRET", "x": 1}'], ["hf_S3CRETS3CRETS3CRETS3"],
        ["sk-S3CRETS3CRETS3CRETS3"], ["https://me:S3CRET@host/x"], ["--header", "Authorization: Bearer S3CRET"],
        ["sh", "-c", "HF_TOKEN=S3CRET vllm serve m --api-key S3CRET --port 1"], ["--secret", "S3CRET"],
    ],
)  # fmt: skip
def test_secrets_are_hidden(argv: list[str]) -> None:
    clean = redact.arguments(argv)
    assert "S3CRET" not in " ".join(clean)
    assert len(clean) == len(argv)


def test_what_only_sounds_like_a_secret_is_kept() -> None:
    argv = [
        "--tokenizer-path",
        "/t",
        "--max-total-tokens",
        "32768",
        "--token-usage",
        "1",
        "--max-tokens=5",
        "--ssl-keyfile",
        "/k",
    ]
    assert redact.arguments(argv) == argv


@given(st.lists(st.text(max_size=60), max_size=12))
def test_any_command_line_is_survived(argv: list[str]) -> None:
    told = recognise.launch(argv)
    if told:
        recognise.model(told[0], argv, told[1])
    for engine in (*recognise.PORTS, None):
        recognise.port(engine, argv)
        recognise.address(engine, argv)
    assert len(redact.arguments(argv)) == len(argv)


@given(st.binary(max_size=400))
def test_any_bytes_for_stat_status_cgroup_net_and_requests(content: bytes) -> None:
    with contextlib.suppress(ValueError, IndexError):
        procfs.Stat(content)
    procfs.number_after(content, b"x:")
    procfs.arguments(content)
    processes.freezers(content)
    machine.network(content)
    speech.parse(content)
    sockets.rows(lambda *_path, **_how: b"head\n" + content, 1)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_metrics_are_survived_however_they_are_cut(pieces: list[bytes]) -> None:
    reader = metrics.Reader()
    for piece in pieces:
        reader.feed(piece)
    for value in reader.values().values():
        assert math.isfinite(value)


def test_metrics_do_not_depend_on_where_the_pieces_are_cut() -> None:
    text = b'vllm:num_requests_running{engine="0"} 1.0\nvllm:num_requests_running{engine="1"} 2.0 1700000000\n'
    for size in range(1, len(text)):
        reader = metrics.Reader()
        for start in range(0, len(text), size):
            reader.feed(text[start : start + size])
        assert reader.values() == {"running": 3.0}


def test_vllms_acceptance_length_is_the_mean_since_the_last_look() -> None:
    first = {"drafts": 100.0, "accepted": 200.0}
    before = metrics.acceptance(first, None)
    assert first == {}
    second = {"drafts": 110.0, "accepted": 205.0}
    metrics.acceptance(second, before)
    assert second == {"accept_length": 1.5}


def test_a_command_name_may_hold_anything() -> None:
    stat = procfs.Stat(b"12 (a) b (c\n) S 7 8 9 " + b" ".join(b"%d" % n for n in range(40)))
    assert (stat.comm, stat.state, stat.ppid, stat.pgid, stat.session) == ("a) b (c\n", "S", 7, 8, 9)


def test_both_kinds_of_freezer_are_known() -> None:
    assert processes.freezers(b"3:cpu,freezer:/a/b\n0::/x.slice\n") == [
        "/sys/fs/cgroup/freezer/a/b/freezer.state",
        "/sys/fs/cgroup/x.slice/cgroup.events",
        "/sys/fs/cgroup/unified/x.slice/cgroup.events",
    ]
