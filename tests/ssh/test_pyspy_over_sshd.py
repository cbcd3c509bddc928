"""Stacks through a real sshd: our py-spy is sent where there is none, and is there the next time."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tuimon.diagnose import stacks
from tuimon.diagnose.groups import group
from tuimon.diagnose.targets import Target
from tuimon.hosts.host import Completed
from tuimon.hosts.ssh import SshHost

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd

SYSTEM_PYTHON = "/usr/bin/python3"
HANG = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"


class Bare(SshHost):
    """A host whose user has an empty home and no py-spy on the PATH (sshd would give the real home)."""

    home: Path

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        bare = ["env", f"HOME={self.home}", "PATH=/usr/bin:/bin", *argv]
        return await super().run(bare, stdin=stdin, timeout=timeout, limit=limit)


@pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason="needs a Python without py-spy beside it")
async def test_a_host_without_py_spy_gets_ours_through_the_link_and_keeps_it(sshd: Sshd, tmp_path: Path) -> None:
    sshd.trust()
    host = Bare(sshd.name)
    host.home = tmp_path
    rank = subprocess.Popen([SYSTEM_PYTHON, "-c", HANG])  # noqa: ASYNC220  returns at once
    try:
        await host.connect()
        first = await stacks.dump(host, [Target(rank.pid, "TP0")])
        second = await stacks.dump(host, [Target(rank.pid, "TP0")])
    finally:
        rank.kill()
        rank.wait()
        await host.close()

    assert [item.label for item in group(first)] == ["TP0"], first.unread
    assert len(list((tmp_path / ".cache" / "tuimon").iterdir())) == 1
    assert len(second.ranks) == 1
