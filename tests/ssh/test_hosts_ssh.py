"""SshHost against a server in this process: what it does, and what it says when things go wrong."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import pytest

from tests.ssh.pieces import next_of, text_of
from tuimon.hosts.address import Address
from tuimon.hosts.errors import (
    AccessDenied,
    BadSshConfig,
    ChannelRefused,
    CommandTimedOut,
    HostKeyUnknown,
    HostUnreachable,
    TransferFailed,
)
from tuimon.hosts.ssh import SshHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.ssh.conftest import FakeServer


@pytest.fixture
async def host(fake: FakeServer) -> AsyncIterator[SshHost]:
    host = fake.host()
    await host.connect()
    yield host
    await host.close()


async def test_a_command_gets_its_arguments_untouched_and_its_exit_is_told(host: SshHost) -> None:
    words = ["a  b", "$HOME", "`id`", "it's", '"', "\\", "*", "", "ünï", "-n", "a\nb"]
    done = await host.run(["printf", "%s|", *words])
    assert done.stdout.decode() == "|".join(words) + "|"
    assert (await host.run(["sh", "-c", "echo bad >&2; exit 7"])) == type(done)(7, b"", b"bad\n")


async def test_a_program_that_does_not_exist_exits_with_127(host: SshHost) -> None:
    assert (await host.run(["no-such-program"])).exit == 127


async def test_input_is_given_exactly_and_ends(host: SshHost) -> None:
    content = os.urandom(300_000)
    assert (await host.run(["cat"], stdin=content)).stdout == content


async def test_bytes_that_are_no_text_do_not_break_the_connection(host: SshHost) -> None:
    done = await host.run(["printf", r"\377\376\000\200"])
    assert done.stdout == b"\xff\xfe\x00\x80"
    assert (await host.run(["true"])).exit == 0


async def test_endless_output_is_cut_and_the_command_ended(host: SshHost, tmp_path: Path) -> None:
    done = await host.run(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec yes"], limit=10_000)
    assert done.truncated
    assert len(done.stdout) == 10_000
    await _gone(int((tmp_path / "pid").read_text()))


async def test_a_command_that_takes_too_long_is_ended_there_too(host: SshHost, tmp_path: Path) -> None:
    with pytest.raises(CommandTimedOut, match=r"sh did not end within 0\.3 s"):
        await host.run(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"], timeout=0.3)
    await _gone(int((tmp_path / "pid").read_text()))


async def test_a_program_is_spoken_with_and_ends_with_its_stdin(host: SshHost) -> None:
    channel = await host.start(["sh", "-c", "cat; echo last words >&2; exit 3"])
    channel.write(b"hello")
    assert await channel.read() == b"hello"
    channel.end_input()
    assert await channel.read() == b""
    assert await channel.wait() == 3
    assert channel.errors() == "last words\n"
    channel.write(b"too late")


async def test_four_channels_at_a_time_and_a_fifth_waits_its_turn(host: SshHost, fake: FakeServer) -> None:
    channels = [await host.start(["cat"]) for _ in range(4)]
    with pytest.raises(CommandTimedOut):
        await host.run(["true"], timeout=0.3)
    assert fake.sessions == 4
    channels[0].end_input()
    assert (await host.run(["true"])).exit == 0


async def test_a_refused_session_is_not_a_broken_link(host: SshHost, fake: FakeServer) -> None:
    fake.most_sessions = 0
    with pytest.raises(ChannelRefused, match="opens no further session") as refusal:
        await host.start(["cat"])
    assert "MaxSessions" in refusal.value.advice
    fake.most_sessions = 100
    assert (await host.run(["true"])).exit == 0


async def test_a_dropped_link_ends_every_reader_with_words(host: SshHost, fake: FakeServer) -> None:
    channel = await host.start(["cat"])
    running = asyncio.create_task(host.run(["sleep", "60"]))
    lost = asyncio.create_task(host.lost())
    await asyncio.sleep(0.1)
    fake.drop()
    async with asyncio.timeout(2):
        assert await lost == "the connection broke"
        with pytest.raises(HostUnreachable, match="broke"):
            await channel.read()
        with pytest.raises(HostUnreachable, match="broke"):
            await running
        with pytest.raises(HostUnreachable):
            await host.run(["true"])


async def test_after_a_loss_the_same_host_connects_again(host: SshHost, fake: FakeServer) -> None:
    fake.drop()
    await host.lost()
    await host.connect()
    assert (await host.run(["echo", "back"])).stdout == b"back\n"


async def test_a_silent_link_holds_up_neither_a_command_nor_the_end(host: SshHost, fake: FakeServer) -> None:
    await host.start(["cat"])
    fake.relay.hold()
    with pytest.raises(CommandTimedOut):
        await host.run(["true"], timeout=0.3)
    began = time.monotonic()
    await host.close()
    assert time.monotonic() - began < 1.5
    await host.close()


async def test_a_silent_link_is_noticed_by_the_keepalive(fake: FakeServer) -> None:
    host = fake.host(keepalive_interval=0.1)
    await host.connect()
    fake.relay.hold()
    async with asyncio.timeout(10):
        assert await host.lost() == "the host has stopped answering"
    await host.close()


async def test_nobody_listening_says_refused_and_what_to_check(fake: FakeServer) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        host = SshHost("gpu-17", Address("127.0.0.1", None, nobody.getsockname()[1]), config=None)
        with pytest.raises(HostUnreachable, match="refuses the connection") as refusal:
            await host.connect()
    assert "sshd" in refusal.value.advice


async def test_a_server_that_says_nothing_is_given_up_after_the_connect_timeout(fake: FakeServer) -> None:
    fake.relay.hold()
    with pytest.raises(HostUnreachable, match="does not answer"):
        await fake.host(connect_timeout=0.3).connect()


async def test_something_that_is_no_ssh_server_says_so() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(HostUnreachable, match="No connection to web"):
        await SshHost("web", Address("127.0.0.1", None, port), config=None).connect()
    server.close()


async def test_a_name_that_does_not_resolve_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    with pytest.raises(HostUnreachable, match=r"gpu-99.* cannot be resolved"):
        await SshHost("gpu-99", config=None, agent_path=None).connect()


async def test_a_key_that_is_not_accepted_says_for_which_user(fake: FakeServer) -> None:
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(AccessDenied, match="none of your keys for the user tester"):
        await fake.host(client_keys=[stranger]).connect()


async def test_a_file_arrives_whole_with_its_mode_and_nothing_beside_it(host: SshHost, tmp_path: Path) -> None:
    content = os.urandom(1_000_000)
    target = tmp_path / "new folder" / "it's"
    await host.put(content, str(target), 0o700)
    assert target.read_bytes() == content
    assert target.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in target.parent.iterdir()] == ["it's"]


async def test_a_file_that_cannot_be_written_says_why_and_leaves_nothing(host: SshHost, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TransferFailed, match="could not be written"):
        await host.put(b"x", str(tmp_path / "file" / "below"), 0o600)


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_log_is_followed_through_growth_truncation_and_rotation(
    host: SshHost, fake: FakeServer, tmp_path: Path, slowly: bool
) -> None:
    fake.slowly = slowly
    fake.noise = b"Welcome to GPU-17!\n{}\n"
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    pieces = host.follow(str(log), -1)
    assert await text_of(pieces, 4) == b"one\n"
    with log.open("ab") as file:
        file.write(b"two \xff\n")
    assert await text_of(pieces, 6) == b"two \xff\n"
    log.write_bytes(b"3\n")
    assert (await next_of(pieces)).kind == "truncated"
    assert await text_of(pieces, 2) == b"3\n"
    log.rename(tmp_path / "server.log.1")
    log.write_bytes(b"four\n")
    assert (await next_of(pieces)).kind == "rotated"
    assert await text_of(pieces, 5) == b"four\n"
    await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise


async def test_a_log_is_resumed_at_the_byte_unless_it_is_another_file_now(host: SshHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"0123456789")
    inode = log.stat().st_ino
    pieces = host.follow(str(log), 4, inode)
    assert await text_of(pieces, 6) == b"456789"
    await pieces.aclose()  # type: ignore[attr-defined]  # as above
    log.rename(tmp_path / "old")
    log.write_bytes(b"a longer new file")
    pieces = host.follow(str(log), 10, inode)
    assert (await next_of(pieces)).kind == "rotated"
    assert await text_of(pieces, 17) == b"a longer new file"
    await pieces.aclose()  # type: ignore[attr-defined]  # as above


async def test_checking_of_host_keys_cannot_be_switched_off_by_the_config(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("none", "/dev/null"):
        config = tmp_path / "config"
        config.write_text(f"Host *\n  UserKnownHostsFile {value}\n  StrictHostKeyChecking no\n")
        host = SshHost(
            "fake", Address("127.0.0.1", "tester", fake.port), config=[str(config)], client_keys=[fake.user_key]
        )
        with pytest.raises(HostKeyUnknown, match="not known yet"):
            await host.connect()


async def test_what_a_config_says_for_people_at_a_terminal_is_not_for_us(fake: FakeServer, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  RemoteCommand tmux attach\n  RequestTTY force\n  ForwardAgent yes\n")
    host = fake.host(config=[str(config)])
    await host.connect()
    assert (await host.run(["sh", "-c", "test -t 1; echo $?"])).stdout == b"1\n"
    await host.close()


async def test_a_config_that_makes_no_sense_says_where(fake: FakeServer, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  Port many\n")
    with pytest.raises(BadSshConfig, match=r"line 2.*Port"):
        await SshHost("gpu-17", config=[str(config)]).connect()


async def test_jump_hosts_in_a_circle_are_named_as_such(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    with pytest.raises(BadSshConfig, match="circle"):
        await SshHost("a", config=[str(config)]).connect()


def test_nothing_of_asyncssh_is_imported_before_the_first_connect() -> None:
    code = (
        "import sys; from tuimon.config import Settings; from tuimon.hosts.pick import host; import tuimon.watch.live;"
        "host('gpu-17'); host('localhost'); sys.exit('asyncssh' in sys.modules or 'watchfiles' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def _gone(pid: int) -> None:
    """Wait until a process has ended."""
    async with asyncio.timeout(5):
        while _lives(pid):  # noqa: ASYNC110  a process of another program gives no event
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
