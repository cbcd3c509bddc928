"""Secrets never reach the screen, a recording or a report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.launch import redact as redacting
from tuimon.launch.redact import PIECE, redact, redact_argv, redact_bytes

SECRET = "s3cr3t-Value_1234567890abcdef"


@pytest.mark.parametrize(
    "line",
    [
        f"server_args=ServerArgs(model_path='/m', api_key='{SECRET}', admin_api_key=None)",
        f"server_args={{'model_path': '/m', 'api_key': '{SECRET}', 'port': 30000}}",
        f"non-default args: {{'model': 'org/m', 'api_key': ['{SECRET}', '{SECRET}2']}}",
        f"python -m sglang.launch_server --api-key {SECRET} --tp 8",
        f"vllm serve m --api-key={SECRET}",
        f"HF_TOKEN={SECRET} vllm serve m",
        f'{{"token": "{SECRET}", "model": "m"}}',
        f"Authorization: Bearer {SECRET}",
        f"headers={{'authorization': 'Bearer {SECRET}'}}",
        f'curl -H "Authorization: Bearer {SECRET}" http://127.0.0.1',
        f"password={SECRET}",
        f"downloading from https://user:{SECRET}@hub.example/m",
        "using hf_abcdefghijklmnopqrstuvwxyz0123 for the hub",
        "openai key sk-abcdefghijklmnopqrstuvwxyz123456",
    ],
)
def test_a_secret_is_replaced(line: str) -> None:
    hidden = redact(line)
    assert SECRET not in hidden
    assert "abcdefghijklmnopqrstuvwxyz" not in hidden
    assert "***" in hidden
    assert redact(hidden) == hidden, "redacting twice changes nothing"


@pytest.mark.parametrize(
    "line",
    [
        "server_args=ServerArgs(model_path='/m', api_key=None, tokenizer_path='/m')",
        "Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0",
        "max_total_num_tokens=812345, chunked_prefill_size=8192",
        "GPU KV cache size: 162,704 tokens",
        "Eagle3 MLA: skipping unexpected weight layers.0.self_attn.rotary_emb.inv_freq",
        "security: no API key is set and CORS allows all origins",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert redact(line) == line


def test_a_command_line_is_redacted_word_by_word() -> None:
    argv = ("vllm", "serve", "m", "--api-key", SECRET, "--port", "8000", f"--hf-token={SECRET}")
    assert redact_argv(argv) == ("vllm", "serve", "m", "--api-key", "***", "--port", "8000", "--hf-token=***")


@given(st.binary(max_size=300))
def test_bytes_that_are_no_text_survive(line: bytes) -> None:
    if b"***" not in redact_bytes(line):
        assert redact_bytes(line) == line


def test_a_busy_log_is_searched_some_lines_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def look(text: str) -> str:
        searched.append(text)
        return redact(text)

    monkeypatch.setattr(redacting, "redact", look)
    lines = [f"{number} token usage: 0.05, api_key='{SECRET}'\n" for number in range(5000)]
    clean = redact_bytes("".join(lines).encode()).decode()
    assert SECRET not in clean
    assert clean.splitlines() == [redact(line).rstrip("\n") for line in lines]
    assert max(map(len, searched)) <= PIECE + len(lines[-1])
    assert all(piece.endswith("\n") for piece in searched)
