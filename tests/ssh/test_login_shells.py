"""Commands through the login shells that hosts have, and what these print of their own accord."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tuimon.hosts.loginshell import for_login_shell
from tuimon.hosts.ssh import SshHost
from tuimon.probe import send

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer

SHELLS = (
    ("sh",), ("bash",), ("rbash",), ("csh", "-f"), ("tcsh", "-f"), ("fish", "--no-config"), ("busybox", "sh"),
    ("zsh", "-f"),
)  # fmt: skip
WORDS = ["a  b", "$HOME", "`id`", "it's", '"', "\\", "\\\\'x", "*", "", "ünï", "-n", "a\nb", "!!", "wow!", "~", "{a,b}"]


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
async def host(fake: FakeServer, request: pytest.FixtureRequest) -> AsyncIterator[SshHost]:
    program = shutil.which(request.param[0])
    if program is None:
        pytest.skip(f"no {request.param[0]} on this machine")
    fake.shell = (program, *request.param[1:])
    host = fake.host()
    await host.connect()
    yield host
    await host.close()


async def test_every_login_shell_passes_arguments_on_untouched(host: SshHost) -> None:
    done = await host.run(["printf", "%s|", *WORDS])
    assert done.stdout.decode() == "|".join(WORDS) + "|"
    assert (await host.run(["sh", "-c", "echo bad >&2; exit 7"])).exit == 7


async def test_our_programs_run_under_every_login_shell_and_end_with_their_stdin(host: SshHost, tmp_path: Path) -> None:
    log = tmp_path / "it's a log"
    log.write_bytes(b"hello")
    pieces = host.follow(str(log), 0)
    async with asyncio.timeout(10):
        assert (await anext(pieces)).text == b"hello"
    await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise
    await host.put(b"x" * 100_000, str(tmp_path / "put"), 0o600)
    assert (tmp_path / "put").stat().st_size == 100_000


async def test_what_a_login_shell_prints_is_not_the_commands_output(fake: FakeServer) -> None:
    fake.noise = b"\x1b]0;gpu-17\x07Welcome to GPU-17!\nUnfinished line"
    host = fake.host()
    await host.connect()
    assert (await host.run(["echo", "hello"])).stdout == b"hello\n"
    assert (await host.run(["cat"], stdin=b"fed")).stdout == b"fed"
    assert (await host.run(["yes"], limit=100)).stdout == b"y\n" * 50
    fake.noise = os.urandom(200_000).replace(b"--tuimon--", b"")
    assert (await host.run(["echo", "hello"])).stdout == b"hello\n"
    await host.close()


async def test_an_account_that_runs_no_commands_is_quoted(fake: FakeServer, tmp_path: Path) -> None:
    shell = tmp_path / "nologin"
    shell.write_text("#!/bin/sh\necho This account is currently not available.\nexit 1\n")
    shell.chmod(0o755)
    fake.shell = (str(shell),)
    host = fake.host()
    await host.connect()
    done = await host.run(["echo", "hello"])
    assert (done.exit, done.stdout, done.stderr) == (1, b"", b"This account is currently not available.\n")
    await host.close()


def test_what_a_host_lists_stays_readable() -> None:
    assert for_login_shell(send.command("python3")).startswith('python3 -I -S -u -c \'"tuimon-probe"')
    assert for_login_shell(["echo", "two words"]) == "echo 'two words'"


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_words_reach_the_command_through_the_strangest_shells(words: list[str]) -> None:
    import subprocess  # noqa: PLC0415  only here

    line = for_login_shell(["printf", "%s|", *words])
    for shell in (("fish", "--no-config"), ("tcsh", "-f"), ("sh",)):
        if shutil.which(shell[0]):
            done = subprocess.run([*shell, "-c", line], capture_output=True, check=True)
            assert done.stdout == ("|".join(words) + "|").encode()
