"""Where output goes that is no file: told by the process's cgroup."""

# mypy: allow-untyped-calls

from __future__ import annotations

import pytest

from tuimon.probe.program.output import Outputs

ID = "0123456789abcdef" * 4


class Cgroup:
    """A host on which every process is in one cgroup."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, path: str, limit: int = 0, whole: bool = False) -> bytes:
        return f"0::{self._path}\n".encode()


@pytest.mark.parametrize(
    "path",
    [
        f"/system.slice/docker-{ID}.scope", f"/docker/{ID}", f"/user.slice/libpod-{ID}.scope/container",
        f"/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{ID}.scope", f"/kubepods/besteffort/pod1-2/{ID}",
    ],
)  # fmt: skip
def test_a_containers_output_is_followed_by_its_id(path: str) -> None:
    found = Outputs(Cgroup(path), None).container(1)
    assert found.path == f"docker:{ID}"
    assert ID[:12] in found.note


def test_a_container_without_a_name_is_a_sentence() -> None:
    assert Outputs(Cgroup("/"), None).container(1).path is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/system.slice/sglang.service", "journal:sglang.service"),
        ("/system.slice/system-vllm.slice/vllm@0.service", "journal:vllm@0.service"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service", "journal:user/llm.service"),
        ("/system.slice/ssh.service", None),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/tmux.scope", None),
        ("/user.slice/user-0.slice/session-3.scope", None),
        ("/system.slice/docker.service", None),
    ],
)
def test_a_sockets_other_end_is_the_journal_only_for_a_unit_of_its_own(path: str, expected: str | None) -> None:
    found = Outputs(Cgroup(path), None).socket(1)
    assert found.path == expected
    assert found.note
