"""The user's own ssh, or a wrapper called like it, instead of the built-in client."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tuimon.hosts import pick
from tuimon.hosts.errors import AccessDenied, BadSshConfig, HostUnreachable

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd


@pytest.fixture
def ssh(sshd: Sshd, tmp_path: Path) -> str:
    """An ssh that keeps to the test's home: it finds its own by the user's entry, not by HOME."""
    program = shutil.which("ssh")
    if program is None:
        pytest.skip("no ssh on this machine")
    sshd.trust()
    (tmp_path / "config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\nHost *\n  IdentityFile {sshd.key}\n"
        f"  UserKnownHostsFile {sshd.known_hosts}\n  ControlMaster auto\n  ControlPath {tmp_path}/c\n"
    )
    return f"{program} -F {tmp_path}/config"


async def test_commands_programs_files_and_logs_go_through_it(sshd: Sshd, ssh: str, tmp_path: Path) -> None:
    host = pick.host("gpu", ssh)
    await host.connect()
    assert host.detail.endswith("gpu")
    assert len(sshd.children()) == 1
    words = ["a  b", "it's", "!!", "a\nb", "\\", ""]
    assert (await host.run(["printf", "%s|", *words])).stdout.decode() == "|".join(words) + "|"
    await host.put(os.urandom(100_000), str(tmp_path / "put"), 0o600)
    assert (tmp_path / "put").stat().st_size == 100_000
    (tmp_path / "log").write_bytes(b"hello")
    pieces = host.follow(str(tmp_path / "log"), 0)
    async with asyncio.timeout(10):
        assert (await anext(pieces)).text == b"hello"
    assert len(sshd.children()) == 1  # the user's ControlMaster carries all of them
    await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise
    await host.close()
    async with asyncio.timeout(5):
        while sshd.children():  # noqa: ASYNC110  a process of another program gives no event
            await asyncio.sleep(0.02)


async def test_a_link_that_breaks_is_noticed(sshd: Sshd, ssh: str) -> None:
    host = pick.host("gpu", ssh)
    await host.connect()
    for pid in sshd.children():
        os.kill(pid, 9)
    async with asyncio.timeout(5):
        assert "gone" in await host.lost()
    await host.close()


async def test_what_ssh_says_is_told(sshd: Sshd, ssh: str) -> None:
    other = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text("")
    with pytest.raises(AccessDenied, match="host key is not trusted") as refusal:
        await pick.host("gpu", ssh).connect()
    assert "Try it by hand: " in refusal.value.advice
    sshd.known_hosts.write_text(other)
    (sshd.folder / "authorized").write_text("")
    with pytest.raises(AccessDenied, match="Permission denied"):
        await pick.host("gpu", ssh).connect()
    with pytest.raises(HostUnreachable, match="refused"):
        await pick.host("127.0.0.1:1", ssh).connect()


async def test_a_wrapper_is_given_host_and_command_alone(tmp_path: Path) -> None:
    wrapper = tmp_path / "corp"
    wrapper.write_text('#!/bin/sh\necho "$@" >&2\nshift 2\nexec sh -c "$*"\n')
    wrapper.chmod(0o755)
    host = pick.host("me@gpu-17", f"{wrapper} login")
    await host.connect()
    assert (await host.run(["echo", "a b"])).stdout == b"a b\n"
    await host.close()
    with pytest.raises(AccessDenied, match="cannot be run"):
        await pick.host("gpu-17", str(tmp_path / "none")).connect()
    for command in ("", "  ", "a 'b"):
        if command.strip():
            with pytest.raises(BadSshConfig):
                pick.host("gpu-17", command)
