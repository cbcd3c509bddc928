"""What administrators set in sshd_config: banners, few sessions, one command for everybody."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ssh.conftest import start_sshd
from tests.ssh.faults import until
from tuimon.config import Settings
from tuimon.hosts import dial
from tuimon.hosts.errors import ChannelRefused
from tuimon.hosts.ssh import SshHost
from tuimon.hosts.turns import Turns
from tuimon.launch.events import AnyEvent, Finding, LogText, Sample
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd

Start = Callable[..., "Sshd"]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts an sshd with further lines in its configuration."""
    running: list[Sshd] = []

    def start(*lines: str) -> Sshd:
        running.append(start_sshd(tmp_path, *lines))
        running[0].trust()
        monkeypatch.setenv("HOME", str(running[0].home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        return running[0]

    yield start
    for one in running:
        one.close()


async def test_a_banner_is_not_the_commands_output_and_reaches_no_terminal(
    started: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "banner").write_bytes(b"\x1b[2J\x1b]0;pwned\x07AUTHORIZED USE ONLY\n" * 500)
    host = started(f"Banner {tmp_path}/banner", "PrintMotd yes").host()
    await host.connect()
    assert (await host.run(["echo", "hello"])).stdout == b"hello\n"
    await host.close()
    assert "AUTHORIZED" not in "".join(capfd.readouterr())


async def test_one_session_at_a_time_is_said_and_the_link_stays(started: Start) -> None:
    host = started("MaxSessions 1").host()
    await host.connect()
    channel = await host.start(["cat"])
    with pytest.raises(ChannelRefused, match="opens no further session") as refusal:
        await host.run(["true"])
    assert "MaxSessions" in refusal.value.advice
    channel.end_input()
    await channel.wait()
    assert await runs(host)
    await host.close()


async def runs(host: SshHost) -> bool:
    """Whether a command can be run again: sshd takes a moment to notice that the session before has ended."""
    for _ in range(100):
        try:
            return (await host.run(["true"])).exit == 0
        except ChannelRefused:
            await asyncio.sleep(0.05)
    return False


def test_two_sessions_are_enough_for_samples_and_the_log(started: Start, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"hello\n")
    events: list[AnyEvent] = []
    watch = LiveWatch(
        started("MaxSessions 2").name, Settings(log=str(tmp_path / "log"), pid=os.getpid(), history=False)
    )
    watch.on_event(events.append)
    watch.start()
    try:
        until(lambda: any(isinstance(event, Sample) for event in events))
        until(lambda: any(isinstance(event, LogText) for event in events))
        until(lambda: watch.view.link.state == "up")
    finally:
        watch.stop()


def test_an_account_that_may_only_copy_files_is_said_in_its_own_words(started: Start, tmp_path: Path) -> None:
    events: list[AnyEvent] = []
    watch = LiveWatch(started("ForceCommand echo This account is for backups only; exit 1").name, Settings())
    watch.on_event(events.append)
    watch.start()
    try:
        until(lambda: any(isinstance(event, Finding) for event in events))
        (said,) = [event.text for event in events if isinstance(event, Finding)]
        assert said.endswith("ended (exit 1): This account is for backups only")
        until(lambda: watch.view.link.state == "up")
    finally:
        watch.stop()


async def test_of_many_hosts_behind_one_sshd_none_is_refused_for_coming_all_at_once(
    started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jump host that all share; its MaxStartups, 10 unless someone changed it, counts those not logged in yet."""
    hosts = [started("MaxStartups 10").host()]
    hosts += [SshHost(hosts[0].name) for _ in range(23)]
    monkeypatch.setattr(dial, "HANDSHAKES", Turns(8))  # however slow this machine is
    try:
        assert await asyncio.gather(*(host.connect() for host in hosts)) == [None] * 24
    finally:
        await asyncio.gather(*(host.close() for host in hosts))
