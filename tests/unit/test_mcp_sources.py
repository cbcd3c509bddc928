"""What an assistant names as the source of a timeline: a host, or a file here."""

from __future__ import annotations

import pytest

from tuimon.headless.mcp_tools import is_path


@pytest.mark.parametrize(
    "host",
    ["gpu-17", "root@[fe80::1]:22", "demo:healthy", "docker:vllm", "gpu-17/docker:vllm", "k8s:web/one", "a/k8s:b/c"],
)
def test_a_scheme_wins_over_a_path(host: str) -> None:
    assert not is_path(host)


@pytest.mark.parametrize(
    "path", ["/var/log/vllm.log", "./gpu-17", "logs/server.log", "/x/docker:vllm", "../docker:vllm"]
)
def test_a_slash_names_a_file_and_at_the_front_it_forces_one(path: str) -> None:
    assert is_path(path)
