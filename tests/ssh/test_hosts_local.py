"""This machine as a host, and what may be written as HOST."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from tests.ssh.pieces import next_of, text_of
from tuimon.hosts import pick, tail
from tuimon.hosts.address import Address, parse
from tuimon.hosts.errors import BadAddress, CannotStart, CommandTimedOut, HostError, TransferFailed
from tuimon.hosts.host import LogPiece
from tuimon.hosts.inside import Inside
from tuimon.hosts.local import LocalHost
from tuimon.hosts.ssh import SshHost


@pytest.fixture
async def host() -> AsyncIterator[LocalHost]:
    host = LocalHost()
    await host.connect()
    yield host
    await host.close()


async def test_a_command_is_run_as_over_ssh(host: LocalHost) -> None:
    done = await host.run(["sh", "-c", "cat; echo bad >&2; exit 7"], stdin=b"\xff\x00in")
    assert (done.exit, done.stdout, done.stderr) == (7, b"\xff\x00in", b"bad\n")
    assert (await host.run(["no-such-program"])).exit == 127


async def test_a_command_that_takes_too_long_is_ended(host: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(CommandTimedOut):
        await host.run(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"], timeout=0.3)
    await _gone(int(_read(tmp_path / "pid")))


async def test_endless_output_is_cut(host: LocalHost) -> None:
    done = await host.run(["yes"], limit=1000)
    assert done.truncated
    assert len(done.stdout) == 1000


async def test_a_program_ends_with_its_stdin_and_one_that_does_not_is_ended_at_the_close(tmp_path: Path) -> None:
    host = LocalHost()
    polite = await host.start(["sh", "-c", "cat; echo bye >&2"])
    polite.write(b"hello")
    assert await polite.read() == b"hello"
    polite.end_input()
    assert await polite.read() == b""
    assert await polite.wait() == 0
    assert polite.errors() == "bye\n"
    await host.start(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"])
    async with asyncio.timeout(5):
        while not _read(tmp_path / "pid"):  # noqa: ASYNC110  another program gives no event
            await asyncio.sleep(0.01)
    began = time.monotonic()
    await host.close()
    assert time.monotonic() - began < 2.5
    assert not _lives(int(_read(tmp_path / "pid")))


async def test_a_program_that_does_not_exist_says_so(host: LocalHost) -> None:
    with pytest.raises(HostError, match="cannot be started"):
        await host.start(["no-such-program"])


async def test_a_file_is_put_with_its_mode_and_nothing_beside_it(host: LocalHost, tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    await host.put(b"content", str(target), 0o700)
    assert target.read_bytes() == b"content"
    assert target.stat().st_mode & 0o777 == 0o700
    assert len(list(target.parent.iterdir())) == 1
    with pytest.raises(TransferFailed, match="could not be written"):
        await host.put(b"x", str(target / "below"), 0o600)


async def test_this_machine_is_never_lost(host: LocalHost) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await host.lost()


async def test_a_log_is_followed_through_all_that_can_happen_to_it(host: LocalHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    pieces = host.follow(str(log), -1)
    assert (await next_of(pieces)).kind == "missing"
    log.write_bytes(b"one\n")
    assert await text_of(pieces, 4) == b"one\n"
    with log.open("ab") as file:
        file.write(b"two \xff\n")
    assert await text_of(pieces, 6) == b"two \xff\n"
    log.write_bytes(b"3\n")
    assert (await next_of(pieces)).kind == "truncated"
    assert await text_of(pieces, 2) == b"3\n"
    with log.open("ab") as file:
        file.write(b"last of the old\n")
        log.rename(tmp_path / "server.log.1")
    log.write_bytes(b"four\n")
    assert await text_of(pieces, 16) == b"last of the old\n"
    assert (await next_of(pieces)).kind == "rotated"
    piece = await next_of(pieces)
    assert (piece.text, piece.inode) == (b"four\n", log.stat().st_ino)
    await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise


async def test_new_text_wakes_the_reader_well_before_the_next_poll(host: LocalHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"first\n")
    pieces = host.follow(str(log), -1)
    await next_of(pieces)
    waits = []
    for _ in range(4):
        reading = asyncio.create_task(next_of(pieces))
        await asyncio.sleep(0.3)
        with log.open("ab") as file:
            file.write(b"more\n")
        began = time.monotonic()
        await reading
        waits.append(time.monotonic() - began)
    assert min(waits) < 0.35, waits
    await pieces.aclose()  # type: ignore[attr-defined]  # as above


async def test_a_large_log_is_shown_by_its_head_and_tail_with_a_marked_gap(host: LocalHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"head\n" + b"x" * 10_000_000 + b"tail\n")
    pieces = host.follow(str(log), -1)
    kinds, size, last = set(), 0, b""
    while not last.endswith(b"tail\n"):
        piece = await next_of(pieces)
        kinds.add(piece.kind)
        size += len(piece.text) + piece.skipped
        last = piece.text or last
    assert kinds == {"text", "skipped"}
    assert size == log.stat().st_size
    await pieces.aclose()  # type: ignore[attr-defined]  # as above


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_log_without_rights_says_so(host: LocalHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.touch(mode=0o000)
    assert (await next_of(host.follow(str(log), 0))).kind == "denied"


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ("gpu-17", Address("gpu-17")),
        ("root@10.1.230.174:2222", Address("10.1.230.174", "root", 2222)),
        ("me@corp@gpu", Address("gpu", "me@corp")),
        ("[fe80::1%eth0]:22", Address("fe80::1%eth0", None, 22)),
        ("root@[::1]", Address("::1", "root")),
        ("::1", Address("::1")),
    ],
)
def test_an_address_is_taken_apart(spec: str, address: Address) -> None:
    assert parse(spec) == address


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "@gpu",
        "gpu:",
        "gpu:0",
        "gpu:70000",
        "gpu:ssh",
        "gpu:²",
        "[::1",
        "[::1]22",
        "-oProxyCommand=x",
        "a b",
        "a\nb",
        # What a `Match exec` or a ProxyCommand of the user's would hand to a shell, or ssh take for an option.
        "gpu;id",
        "$(id)",
        "`id`",
        "gpu|id",
        "gpu&id",
        "gpu'",
        'gpu"',
        "a\\b",
        "-oProxyCommand=id@gpu",
        "$(id)@gpu",
        "me;id@gpu",
        "me`id`@gpu",
    ],
)
def test_what_is_no_address_says_what_one_is(spec: str) -> None:
    with pytest.raises(BadAddress) as refusal:
        parse(spec)
    assert "[user@]name[:port]" in refusal.value.advice


@pytest.mark.parametrize("user", ["me", "DOM\\me", "machine$", "first.last@corp", "a_b-c", "me+x"])
def test_names_of_users_are_taken_as_they_are(user: str) -> None:
    assert parse(f"{user}@gpu-17:22").user == user


def test_hosts_are_picked_by_what_the_user_wrote() -> None:
    assert isinstance(pick.host("localhost"), LocalHost)
    for spec in ("gpu-17", "me@localhost", "localhost:2222", "127.0.0.1"):
        picked = pick.host(spec)
        assert isinstance(picked, SshHost)
        assert picked.name == spec
    assert pick.host("demo:healthy").name == "demo:healthy"
    for spec in ("docker:sglang", "gpu-17/docker:sglang", "k8s:prod/sglang-0", "gpu-17/k8s:prod/sglang-0/main"):
        assert isinstance(pick.host(spec), Inside)
        assert pick.host(spec).name == spec
    assert isinstance(pick.host("gpu-17", "ssh -F config"), Inside)
    with pytest.raises(BadAddress):
        pick.host(" ")


async def test_a_log_on_dead_storage_holds_up_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_bytes(b"first\n")
    answers, looks = threading.Event(), threading.Event()
    real = tail.Follower.look_on

    def look_on(follower: tail.Follower) -> list[LogPiece]:
        looks.set()
        answers.wait(20)
        return real(follower)

    monkeypatch.setattr(tail.Follower, "look_on", look_on)
    pieces = LocalHost().follow(str(tmp_path / "log"), 0)
    waiting = asyncio.create_task(next_of(pieces))
    assert await asyncio.to_thread(looks.wait, 5)
    assert not waiting.done()  # and this loop runs
    answers.set()
    assert (await waiting).text == b"first\n"
    open_files = len(os.listdir("/proc/self/fd"))
    answers.clear()
    looks.clear()
    again = asyncio.create_task(next_of(pieces))
    assert await asyncio.to_thread(looks.wait, 5)
    again.cancel()
    await asyncio.wait({again})
    await cast("AsyncGenerator[LogPiece]", pieces).aclose()
    answers.set()  # it comes back when nobody waits any more, and gives its file back
    async with asyncio.timeout(5):
        while len(os.listdir("/proc/self/fd")) >= open_files:  # noqa: ASYNC110  a thread of its own
            await asyncio.sleep(0.01)


async def test_where_nothing_more_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_argv: object, **_more: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", full)
    with pytest.raises(CannotStart, match="Too many open files"):
        await LocalHost().run(["true"])
    with pytest.raises(CannotStart, match="Too many open files"):
        await LocalHost().start(["true"])


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def _gone(pid: int) -> None:
    async with asyncio.timeout(5):
        while _lives(pid):  # noqa: ASYNC110  another program gives no event
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
