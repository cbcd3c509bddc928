"""The demo as a host: a real SSH server in this process, and an end that leaves nothing, however it comes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tuimon.demo.errors import UnknownScenario
from tuimon.demo.host import DemoHost
from tuimon.hosts.errors import HostUnreachable
from tuimon.hosts.host import Host

PACE = "0.05"
SERVE = "import sys; from tuimon.demo.serve import serve; sys.exit(serve(*sys.argv[1:]))"


def state(pid: int) -> str:
    """The letter of a process's state; Z where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "Z"


def exists(pid: int) -> bool:
    """True for a living process; a zombie that we have not buried is gone."""
    return state(pid) != "Z"


def wait_for_nothing(pids: list[int], folder: Path, within: float = 8.0) -> None:
    """Wait until no process of the launch and no file is left."""
    deadline = time.monotonic() + within
    while left := [*(pid for pid in pids if exists(pid)), *([folder] if folder.exists() else [])]:
        assert time.monotonic() < deadline, f"left after {within} s: {left}"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def serving(scenario: str = "silent-stall") -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """`demo --serve` as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, scenario, PACE], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.stdout.close()
        process.kill()
        process.wait()


def access(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "port": told["port"], "username": told["user"], "known_hosts": told["known_hosts"],
        "client_keys": [told["key"]], "config": None, "agent_path": None,
    }  # fmt: skip


@pytest.fixture
async def host() -> AsyncIterator[DemoHost]:
    host = DemoHost("silent-stall", PACE)
    await host.connect()
    yield host
    await host.close()


async def test_it_is_a_host_like_any_other(host: DemoHost) -> None:
    as_host: Host = host
    assert as_host.name == "demo:silent-stall"
    assert as_host.detail.startswith("demo@127.0.0.1:")
    done = await host.run(["sh", "-c", "cat; echo wrong >&2; exit 7"], stdin=b"\xff\x00 bytes")
    assert (done.exit, done.stdout, done.stderr) == (7, b"\xff\x00 bytes", b"wrong\n")


async def test_output_arrives_whole_every_time(host: DemoHost) -> None:
    for _ in range(5):
        done = await host.run(["head", "-c", "3000000", "/dev/zero"], limit=1 << 22)
        assert (done.exit, len(done.stdout)) == (0, 3_000_000)


async def test_the_probe_is_told_where_the_launch_and_its_gpus_are(host: DemoHost) -> None:
    assert host.launch is not None
    assert host.probe_within == host.launch.within
    assert host.probe_nvml == host.launch.pynvml.read_bytes()
    done = await host.run(["env"])
    told = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert told["TUIMON_WITHIN"] == str(host.probe_within)
    assert told["TUIMON_PYNVML"] == str(host.launch.pynvml)


async def test_the_log_can_be_followed(host: DemoHost) -> None:
    assert host.launch is not None
    text = b""
    async with asyncio.timeout(15):
        async for piece in host.follow(str(host.launch.log), 0):
            text += piece.text
            if b"Load weight end" in text:
                break


async def test_a_second_connect_goes_to_the_same_launch(host: DemoHost) -> None:
    assert host.launch is not None
    before = host.launch.pids
    await host.connect()
    assert host.launch.pids == before
    assert (await host.run(["true"])).exit == 0


async def test_what_a_client_started_ends_with_its_connection(host: DemoHost) -> None:
    assert host.server is not None
    async with asyncssh.connect("127.0.0.1", host.server.port, username="demo", **host.server.access) as link:
        process = await link.create_process("echo $$; exec sleep 1000", encoding=None)
        pid = int(await process.stdout.readline())
        assert exists(pid)
        link.abort()
    deadline = time.monotonic() + 5
    while exists(pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_another_key_is_refused(host: DemoHost) -> None:
    assert host.server is not None
    stranger = {**host.server.access, "client_keys": [asyncssh.generate_private_key("ssh-ed25519")]}
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect("127.0.0.1", host.server.port, username="demo", **stranger)


async def test_close_leaves_no_process_and_no_file_also_twice() -> None:
    host = DemoHost("dead-storage", PACE)
    await host.connect()
    assert host.launch is not None
    folder, pids = host.launch.folder, [*host.launch.pids, host.launch.within]
    deadline = time.monotonic() + 10
    while "D" not in [state(pid) for pid in pids]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    pids += children(host.launch.pids[6])
    os.kill(host.launch.pids[1], signal.SIGSTOP)  # what is stopped must go too
    await host.close()
    await host.close()
    wait_for_nothing(pids, folder, within=0.5)
    with pytest.raises(HostUnreachable):
        await host.run(["true"])


def test_an_unknown_scenario_is_refused_before_anything_starts() -> None:
    with pytest.raises(UnknownScenario, match="nonsense"):
        DemoHost("nonsense")


def test_serving_says_where_in_one_line_and_a_stranger_can_use_it() -> None:
    with serving() as (process, told):
        assert set(told) == {"port", "user", "key", "known_hosts", "log", "pids", "trouble_at_s"}
        assert len(told["pids"]) == 10
        assert told["trouble_at_s"] == pytest.approx(31.5 * float(PACE))
        assert stat.S_IMODE(Path(told["key"]).stat().st_mode) == 0o600

        async def visit() -> str:
            async with asyncssh.connect("127.0.0.1", **access(told)) as link:
                done = await link.run('echo "$TUIMON_WITHIN $TUIMON_PYNVML"')
                return str(done.stdout)

        within, pynvml = asyncio.run(visit()).split()
        assert Path(pynvml).parent == Path(told["log"]).parent
        assert told["pids"][0] in children(int(within))
        process.send_signal(signal.SIGTERM)
        assert process.wait(8) == 0
        wait_for_nothing(told["pids"], Path(told["log"]).parent, within=0.5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_however_the_owner_ends_nothing_is_left(number: signal.Signals) -> None:
    with serving("slow-compile") as (process, told):
        rank = told["pids"][1]
        deadline = time.monotonic() + 10
        while not children(rank):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        ninja = children(rank)
        process.send_signal(number)
        assert process.wait(8) == (-9 if number == signal.SIGKILL else 0)
        wait_for_nothing([*told["pids"], *ninja], Path(told["log"]).parent)


def test_commands_of_strangers_die_with_a_killed_owner_too() -> None:
    with serving() as (process, told):

        async def visit() -> int:
            async with asyncssh.connect("127.0.0.1", **access(told)) as link:
                sleeper = await link.create_process("echo $$; exec sleep 1000")
                pid = int(await sleeper.stdout.readline())
                process.kill()
                return pid

        pid = asyncio.run(visit())
        process.wait(8)
        wait_for_nothing([*told["pids"], pid], Path(told["log"]).parent)
