"""Faults of the link: what the user sees, how long recovery takes, that nothing of the log is lost or comes twice.

Run with `-s` for the figures of docs/FAULTS.md. The keepalive and the beats are ten times quicker here than in life,
where a silent link is noticed after 20 s and what runs on the host ends after 25; `-m slow` runs it at its true pace.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ssh.faults import Watched, alive, ours, say, threads, until
from tuimon.hosts import beating, dial, frames
from tuimon.hosts.errors import TransferFailed
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import Finding, Gap, LogReset, Unlinked
from tuimon.watch import sampling

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer, Sshd


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(dial, "KEEPALIVE", 0.5)
    monkeypatch.setattr(beating, "EVERY", 0.5)
    monkeypatch.setattr(frames, "PATIENCE", 2.5)
    monkeypatch.setattr(sampling, "PATIENCE", 2.5)


@pytest.fixture
def watched(sshd: Sshd, quick: None) -> Iterator[Watched]:
    sshd.trust()
    watched = Watched(sshd.host(), sshd.folder)
    yield watched
    watched.close()


def test_the_connection_is_reset(watched: Watched, sshd: Sshd) -> None:
    for pid in sshd.children():
        os.kill(pid, signal.SIGKILL)
    until(lambda: bool(watched.reasons()))
    assert watched.recovers("reset") < 10
    watched.whole()
    assert watched.count(LogReset) == 0
    assert [event.of for event in watched.events if isinstance(event, Gap)] == ["link"]


def test_the_host_reboots(watched: Watched, sshd: Sshd) -> None:
    links = sshd.children()
    sshd.close()
    for pid in links:
        os.kill(pid, signal.SIGKILL)
    until(lambda: any("refuses the connection" in reason for reason in watched.reasons()))
    assert watched.watch.view.verdict.state == "unreachable"
    sshd.start()
    sshd.wait_until_up()
    watched.recovers("reboot (refused, then back)")
    watched.whole()


def test_the_hosts_key_changes_while_it_is_away(watched: Watched, sshd: Sshd) -> None:
    links = sshd.children()
    sshd.close()
    for name in ("host_key", "host_key.pub"):
        (sshd.folder / name).unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(sshd.folder / "host_key")], check=True)
    sshd.start()
    sshd.wait_until_up()
    for pid in links:
        os.kill(pid, signal.SIGKILL)
    until(lambda: watched.watch.view.link.state == "refused")
    assert "HAS CHANGED" in (watched.watch.view.link.reason or "")
    tries = watched.count(Unlinked)
    time.sleep(1.5)
    assert watched.count(Unlinked) == tries  # only the user goes on from here


@pytest.mark.parametrize("which", ["probe", "tail"])
def test_one_of_our_programs_is_killed(watched: Watched, sshd: Sshd, which: str) -> None:
    # The tail has two threads, the probe four and more; the probe's NVML child has one.
    wanted = range(4, 10) if which == "probe" else range(2, 3)
    found: list[int] = []

    def seen() -> bool:
        found[:] = [pid for pid in ours(sshd.children()) if threads(pid) in wanted]
        return len(found) == 1

    until(seen)
    os.kill(found[0], signal.SIGKILL)
    watched.recovers(f"{which} killed")
    assert watched.reasons() == []
    watched.whole()


async def test_a_silent_link_is_noticed_and_what_runs_on_the_host_ends_by_itself(
    fake: FakeServer, quick: None, tmp_path: Path
) -> None:
    watched = await asyncio.to_thread(Watched, fake.host(), tmp_path)
    running = ours([os.getpid()])
    assert len(running) >= 2
    fake.relay.hold()
    began = time.monotonic()
    await asyncio.to_thread(until, lambda: bool(watched.reasons()))
    assert watched.reasons()[0] == "the host has stopped answering"
    noticed = time.monotonic() - began
    await asyncio.to_thread(until, lambda: not alive(running))
    say(f"silent link: noticed after {noticed:.1f} s, nothing left there after {time.monotonic() - began:.1f} s")
    fake.relay.release()
    await asyncio.to_thread(watched.recovers, "silent (half-open), then back")
    await asyncio.to_thread(watched.whole)
    await asyncio.to_thread(watched.close)


@pytest.mark.slow
async def test_a_silent_link_at_its_true_pace(fake: FakeServer, tmp_path: Path) -> None:
    watched = await asyncio.to_thread(Watched, fake.host(), tmp_path)
    running = ours([os.getpid()])
    fake.relay.hold()
    began = time.monotonic()
    await asyncio.to_thread(until, lambda: bool(watched.reasons()), 30)
    noticed = time.monotonic() - began
    await asyncio.to_thread(until, lambda: not alive(running), 30)
    say(f"silent link: noticed after {noticed:.1f} s, nothing left there after {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began < 30
    fake.relay.release()
    await asyncio.to_thread(watched.close)


async def test_two_seconds_of_delay_are_borne(fake: FakeServer, quick: None, tmp_path: Path) -> None:
    fake.relay.delay = 0.05
    watched = await asyncio.to_thread(Watched, fake.host(keepalive_interval=5), tmp_path)
    fake.relay.delay = 1.0  # each way
    await asyncio.to_thread(watched.recovers, "2 s round trip")
    assert watched.reasons() == []
    fake.relay.delay = 0.0
    await asyncio.to_thread(watched.whole)
    await asyncio.to_thread(watched.close)


async def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)  # noqa: ASYNC221  at once
    try:
        with pytest.raises(TransferFailed, match="No space left"):
            await LocalHost().put(b"x" * 1_000_000, str(small / "py-spy"), 0o700)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)  # noqa: ASYNC221  as above


class Net:
    """An sshd in a network of its own, behind a wire that can be spoilt."""

    def __init__(self, sshd: Sshd) -> None:
        self.space = f"tuimon{os.getpid()}"
        self.near, self.far = f"tm{os.getpid()}", f"tn{os.getpid()}"
        number = os.getpid() % 250
        self.address = f"10.213.{number}.2"
        self.run("ip", "netns", "add", self.space)
        self.run("ip", "link", "add", self.near, "type", "veth", "peer", self.far, "netns", self.space)
        self.run("ip", "addr", "add", f"10.213.{number}.1/30", "dev", self.near)
        self.run("ip", "link", "set", self.near, "up")
        self.inside("ip", "addr", "add", f"{self.address}/30", "dev", self.far)
        self.inside("ip", "link", "set", self.far, "up")
        self.inside("ip", "link", "set", "lo", "up")

    def run(self, *words: str) -> None:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(words)}: {done.stderr.strip()}")

    def inside(self, *words: str) -> None:
        self.run("ip", "netns", "exec", self.space, *words)

    def close(self) -> None:
        subprocess.run(["ip", "link", "del", self.near], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True, check=False)


@pytest.fixture
def net(sshd: Sshd, quick: None) -> Iterator[tuple[Net, Watched]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    net = Net(sshd)
    try:
        sshd.close()
        settings = sshd.folder / "sshd_config"
        settings.write_text(settings.read_text().replace("ListenAddress 127.0.0.1", f"ListenAddress {net.address}"))
        sshd.start(("ip", "netns", "exec", net.space))
        sshd.wait_until_up()
        key = (sshd.folder / "host_key.pub").read_text()
        sshd.known_hosts.write_text(f"[{net.address}]:{sshd.port} {key}")
        from tuimon.hosts.ssh import SshHost  # noqa: PLC0415  as the fixtures do

        watched = Watched(SshHost(f"{sshd.user}@{net.address}:{sshd.port}"), sshd.folder)
        yield net, watched
        watched.close()
    finally:
        net.close()


def test_the_wire_is_pulled_and_put_back(net: tuple[Net, Watched]) -> None:
    wire, watched = net
    wire.run("ip", "link", "set", wire.near, "down")
    until(lambda: bool(watched.reasons()))
    wire.run("ip", "link", "set", wire.near, "up")
    watched.recovers("link down, then up")
    watched.whole()


def test_the_route_turns_black_and_comes_back(net: tuple[Net, Watched]) -> None:
    wire, watched = net
    wire.inside("ip", "route", "add", "blackhole", wire.address[:-1] + "1/32")
    until(lambda: bool(watched.reasons()))
    wire.inside("ip", "route", "del", "blackhole", wire.address[:-1] + "1/32")
    watched.recovers("black hole, then back")
    watched.whole()


def test_a_third_of_all_packets_is_lost(net: tuple[Net, Watched]) -> None:
    wire, watched = net
    if shutil.which("iptables") is None:
        pytest.skip("no iptables")
    rule = ("INPUT", "-m", "statistic", "--mode", "random", "--probability", "0.3", "-j", "DROP")
    wire.inside("iptables", "-A", *rule)
    watched.recovers("30 % loss")
    time.sleep(3)
    wire.inside("iptables", "-D", *rule)
    watched.whole()


def test_a_line_of_64_kbit(net: tuple[Net, Watched]) -> None:
    wire, watched = net
    wire.inside("tc", "qdisc", "add", "dev", wire.far, "root", "tbf", "rate", "64kbit", "burst", "4kb", "latency", "2s")
    watched.recovers("64 kbit/s")
    time.sleep(3)
    wire.inside("tc", "qdisc", "del", "dev", wire.far, "root")
    watched.whole()
    assert not [event for event in watched.events if isinstance(event, Finding) and event.source == "tuimon"]
