"""LiveWatch over a real sshd with the real probe: lost links, resumed logs, silent links, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tuimon.config import Settings
from tuimon.hosts.ssh import SshHost
from tuimon.launch.events import AnyEvent, Finding, Gap, LogReset, LogText, Sample, ServerFound, Unlinked
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer, Sshd


class Watched:
    """A watch, with what it heard."""

    def __init__(self, host: SshHost, log: Path) -> None:
        self.events: list[AnyEvent] = []
        self.watch = LiveWatch(host, Settings(log=str(log), pid=os.getpid()))  # not some launch of this machine
        self.watch.on_event(self.events.append)
        self.watch.start()

    def text(self) -> bytes:
        """What was told to the launch: a log that was read before the server was found is told again then."""
        events = list(self.events)
        found = next((at for at, event in enumerate(events) if isinstance(event, ServerFound)), len(events))
        return b"".join(event.text for event in events[found:] if isinstance(event, LogText))

    def samples(self) -> int:
        return sum(isinstance(event, Sample) for event in self.events)

    def findings(self) -> list[str]:
        # Other launches of this machine are the probe's to tell and none of this test's business.
        return [event.text for event in self.events if isinstance(event, Finding) and event.source == "tuimon"]


@pytest.fixture
def watched(sshd: Sshd) -> Iterator[Watched]:
    sshd.trust()
    log = sshd.folder / "server.log"
    log.write_bytes(b"0123456789")
    watched = Watched(sshd.host(), log)
    _until(lambda: watched.samples() > 0 and len(watched.text()) == 10)
    yield watched
    watched.watch.stop()


def test_after_a_killed_link_the_log_goes_on_at_the_byte_and_nothing_is_read_twice(
    watched: Watched, sshd: Sshd
) -> None:
    _kill_links(sshd)
    _until(lambda: any(isinstance(event, Unlinked) for event in watched.events))
    with (sshd.folder / "server.log").open("ab") as file:
        file.write(b"written meanwhile")
    _until(lambda: watched.text() == b"0123456789written meanwhile")
    before = watched.samples()
    _until(lambda: watched.samples() > before)
    assert watched.watch.view.link.state == "up"
    assert [event.of for event in watched.events if isinstance(event, Gap)] == ["link"]
    assert not [event for event in watched.events if isinstance(event, LogReset)]
    assert watched.findings() == []


def test_a_log_rotated_while_the_link_was_down_is_read_from_its_start(watched: Watched, sshd: Sshd) -> None:
    log = sshd.folder / "server.log"
    _kill_links(sshd)
    log.rename(sshd.folder / "server.log.1")
    log.write_bytes(b"a new file, longer than the old one")
    _until(lambda: watched.text().endswith(b"0123456789a new file, longer than the old one"))
    assert [event.why for event in watched.events if isinstance(event, LogReset)] == ["rotated"]


def test_nothing_is_left_on_the_host_after_the_end(watched: Watched, sshd: Sshd) -> None:
    links = sshd.children()
    programs = [pid for link in links for pid in _descendants(link)]
    assert programs
    began = time.monotonic()
    watched.watch.stop()
    assert time.monotonic() - began < 3
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in links + programs))


def test_nothing_is_left_on_the_host_when_tuimon_is_killed(sshd: Sshd) -> None:
    sshd.trust()
    client = subprocess.Popen([sys.executable, "-c", _CLIENT, sshd.name], stdout=subprocess.PIPE)
    assert client.stdout
    assert client.stdout.readline() == b"sampling\n"
    links = sshd.children()
    programs = [pid for link in links for pid in _descendants(link)]
    assert programs
    client.kill()
    client.wait()
    client.stdout.close()
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in links + programs))


@pytest.mark.parametrize("moment", ["connecting", "up"])
async def test_it_stops_within_three_seconds_on_a_link_that_has_fallen_silent(
    fake: FakeServer, tmp_path: Path, moment: str
) -> None:
    if moment == "connecting":
        fake.relay.hold()
    watched = Watched(fake.host(), tmp_path / "server.log")
    if moment == "up":
        await asyncio.to_thread(_until, lambda: watched.samples() > 0)
        fake.relay.hold()
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await asyncio.to_thread(watched.watch.stop)
    assert time.monotonic() - began < 3
    assert not watched.watch._thread.is_alive()
    assert watched.findings() == []


async def test_twenty_lost_links_cost_no_descriptor(sshd: Sshd) -> None:
    sshd.trust()
    host = sshd.host()
    before = 0
    for _ in range(21):
        await host.connect()
        await host.start(["cat"])
        _kill_links(sshd)
        await host.lost()
        before = before or len(os.listdir("/proc/self/fd"))
    await host.close()
    assert len(os.listdir("/proc/self/fd")) <= before


_CLIENT = """
import sys, time
from tuimon.config import Settings
from tuimon.watch.live import LiveWatch
watch = LiveWatch(sys.argv[1], Settings())
watch.start()
watch.wait_for(lambda view: view.data_age is not None, 20)
print("sampling", flush=True)
time.sleep(60)
"""


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def _kill_links(sshd: Sshd) -> None:
    for pid in sshd.children():
        os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False)
    children = [int(word) for word in found.stdout.split()]
    return children + [deeper for child in children for deeper in _descendants(child)]
