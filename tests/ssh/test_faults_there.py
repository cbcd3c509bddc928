"""Faults on the host itself, for docs/FAULTS.md: its files, its clock, its driver, our own programs there."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ssh.faults import Watched, odd_python, ours, say, threads, until
from tuimon.hosts.errors import TransferFailed
from tuimon.launch.events import LogUnreadable, Sample, ServerFound
from tuimon.launch.view import LaunchView

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer

Start = Callable[[], Awaitable[Watched]]
HELD = "no word: it held"
STANDIN = Path(__file__).parent.parent / "probe" / "standin_pynvml.py"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on the host's PATH."""
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
async def watch(fake: FakeServer, there: Path, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts the watch, once the host is as odd as the test wants it."""
    running: list[Watched] = []

    async def start() -> Watched:
        running.append(await asyncio.to_thread(Watched, fake.host(), tmp_path))
        return running[0]

    yield start
    for one in running:
        await asyncio.to_thread(one.close)


def renamed(log: Path) -> None:
    log.rename(log.with_suffix(".1"))


def copied_and_truncated(log: Path) -> None:
    shutil.copy(log, log.with_suffix(".1"))
    os.truncate(log, 0)


def replaced(log: Path) -> None:
    new = log.with_suffix(".new")
    new.touch()
    new.replace(log)


@pytest.mark.parametrize("how", [renamed, copied_and_truncated, Path.unlink, replaced])
async def test_the_log_is_rotated_and_no_line_is_lost_or_comes_twice(watch: Start, how: Callable[[Path], None]) -> None:
    watched = await watch()
    # A log shorter than what is written between two looks may be as long again before anybody looks.
    await asyncio.to_thread(until, lambda: watched.log.written().count(b"\n") > 100)
    # What is written in the last 0.2 s before a truncation nobody can read: the test keeps the log silent for so long.
    with watched.log.quiet:
        await asyncio.to_thread(until, lambda: watched.text() == watched.log.written())
        how(watched.log.path)
    word = "truncated" if how is copied_and_truncated else "rotated"
    await asyncio.to_thread(watched.recovers, f"log {how.__name__}", f"log {word}, goes on")
    assert watched.resets() == [word]
    await asyncio.to_thread(watched.whole)
    assert watched.reasons() == []


NFS = """
def stale(call):
    def checked(fd, *rest):
        if isinstance(fd, int) and os.readlink("/proc/self/fd/%d" % fd).endswith(" (deleted)"):
            raise OSError(errno.ESTALE, "Stale file handle")
        return call(fd, *rest)
    return checked
os.fstat, os.pread = stale(os.fstat), stale(os.pread)
"""


async def test_a_log_on_nfs_is_replaced_by_another_machine(watch: Start, there: Path) -> None:
    odd_python(there, NFS)
    watched = await watch()
    with watched.log.quiet:
        await asyncio.to_thread(until, lambda: watched.text() == watched.log.written())
        watched.log.path.unlink()
        await asyncio.to_thread(until, lambda: watched.count(LogUnreadable) > 0)
    await asyncio.to_thread(watched.recovers, "log on NFS: ESTALE", "log missing, then rotated, goes on")
    # Which of the two hangs on the inode number, that may be given away again at once.
    assert watched.resets() in (["rotated"], ["truncated"])
    await asyncio.to_thread(watched.whole)


CLOCK = """
jumped, real = {path!r}, time.time
def now():
    try:
        return real() + float(open(jumped).read())
    except (OSError, ValueError):
        return real()
time.time = now
"""


def believed(view: LaunchView) -> tuple[object, ...]:
    """Everything that stays the same while the log is silent; instants are tuimon's own."""
    log = next(sign for sign in view.signs if sign.name == "log")
    server = view.server
    assert server is not None
    return (
        (view.verdict.state, view.verdict.kind, view.verdict.since, view.link, len(view.episodes)),
        (view.growth.last_line, view.growth.last_growth, log.last, log.visible),
        (server.pid, server.launch, round(server.started or 0), tuple(phase.start for phase in view.phases)),
    )


@pytest.mark.parametrize("hours", [1, -1])
async def test_the_hosts_wall_clock_jumps(fake: FakeServer, watch: Start, there: Path, hours: int) -> None:
    odd_python(there, CLOCK.format(path=str(there / "jump")))
    watched = await watch()
    with watched.log.quiet:  # silent: its age is the one that a wrong clock would show
        await asyncio.to_thread(until, lambda: watched.text() == watched.log.written())
        await asyncio.sleep(1.5)
        before, samples = watched.watch.view, watched.count(Sample)
        (there / "jump").write_text(str(3600 * hours))
        os.utime(watched.log.path, (time.time(), watched.log.path.stat().st_mtime + 3600 * hours))
        await asyncio.to_thread(until, lambda: watched.count(Sample) >= samples + 3)
        assert believed(watched.watch.view) == believed(before)
        # A probe that starts now knows the new clock alone, and tells the server anew.
        servers = watched.count(ServerFound)
        os.kill(next(pid for pid in ours([os.getpid()]) if threads(pid) >= 4), signal.SIGKILL)
        await asyncio.to_thread(until, lambda: watched.count(ServerFound) > servers)
        samples = watched.count(Sample)
        await asyncio.to_thread(until, lambda: watched.count(Sample) >= samples + 2)
        assert believed(watched.watch.view) == believed(before)
        told = [event for event in watched.events if isinstance(event, Sample)]
        assert abs((told[-1].host_time or 0) - (told[0].host_time or 0) - 3600 * hours) < 60
        rates = [process.cpu for process in watched.watch.view.processes or ()]
        assert all(rate is None or 0 <= rate < 1000 for rate in rates)
    await asyncio.to_thread(watched.recovers, f"host's clock {hours:+d} h", "nothing: no age, rate or verdict moves")
    assert 0 < (watched.watch.view.growth.rate or 1) < 1e6
    await asyncio.to_thread(watched.whole)


TORN = """
real, count = os.write, [0]
def write(fd, content):
    text = bytes(content)
    count[0] += text.startswith(b'{"event":"Sample"')
    if count[0] % 3 == 2 and text.startswith(b'{"event":"Sample"'):
        real(fd, text[: len(text) // 2])
        return len(text)
    return real(fd, content)
os.write = write
"""


async def test_every_third_line_of_the_probe_is_torn(watch: Start, there: Path) -> None:
    odd_python(there, TORN)
    watched = await watch()
    await asyncio.to_thread(until, lambda: len(watched.findings()) > 0)
    (said,) = watched.findings()
    assert said.kind == "probe_garbage"
    await asyncio.to_thread(watched.recovers, "truncated JSON from the probe", said.text[:44])
    assert watched.gaps() == []
    await asyncio.to_thread(watched.whole)


HANG = """
read = nvmlDeviceGetUtilizationRates
def nvmlDeviceGetUtilizationRates(handle):
    import os, time
    while handle == 3 and os.path.exists({flag!r}):
        time.sleep(0.05)
    return read(handle)
"""


async def test_nvml_hangs_and_the_rest_goes_on(
    watch: Start, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = HANG.format(flag=str(there / "hang"))
    (there / "pynvml.py").write_text(STANDIN.read_text() + "\n" + hang)
    monkeypatch.setenv("TUIMON_PYNVML", str(there / "pynvml.py"))
    watched = await watch()
    await asyncio.to_thread(watched.watch.wait_for, lambda view: bool(view.gpus), 10)
    (there / "hang").touch()
    await asyncio.to_thread(until, lambda: any(finding.kind == "nvml_hung" for finding in watched.findings()))
    await asyncio.to_thread(watched.recovers, "NVML hangs: the rest", "GPU 3: NVML does not answer for 5 s")
    view = await asyncio.to_thread(watched.watch.wait_for, lambda view: bool(view.gpu_note), 5)
    assert "NVML does not answer" in (view.gpu_note or "")
    assert view.gpus is None  # unknown, not zero
    (there / "hang").unlink()
    began = time.monotonic()
    view = await asyncio.to_thread(watched.watch.wait_for, lambda view: bool(view.gpus), 20)
    say(f"{'NVML answers again: its GPUs':34} | {HELD:44} | {time.monotonic() - began:5.1f} s")
    assert view.gpus
    await asyncio.to_thread(watched.whole)


async def test_the_disk_is_full_there_and_no_half_file_is_left(fake: FakeServer, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    small = tmp_path / "small"
    small.mkdir()
    await asyncio.to_thread(subprocess.run, ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    host = fake.host()
    await host.connect()
    try:
        began = time.monotonic()
        with pytest.raises(TransferFailed, match="No space left"):
            await host.put(b"x" * 1_000_000, str(small / "py-spy"), 0o700)
        took = time.monotonic() - began
        assert list(small.iterdir()) == []
        assert (await host.run(["true"])).exit == 0
        say(f"{'disk full there':34} | {'could not be written: No space left on device':44} | {took:5.1f} s")
    finally:
        await host.close()
        await asyncio.to_thread(subprocess.run, ["umount", str(small)], check=True)


async def test_a_slow_handshake_is_borne(fake: FakeServer, watch: Start, there: Path) -> None:
    fake.relay.delay = 0.2  # each way, each of a dozen messages
    began = time.monotonic()
    watched = await watch()
    took = time.monotonic() - began
    say(f"{'slow handshake (0.4 s round trip)':34} | {'connecting…':44} | {took:5.1f} s")
    assert watched.reasons() == []
    fake.relay.delay = 0.0
    await asyncio.to_thread(watched.whole)
