"""Containers and pods as hosts: a stand-in for docker and kubectl over real namespaces (no engine runs here)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tuimon.config import Settings
from tuimon.hosts import pick, ways
from tuimon.hosts.errors import AccessDenied, BadAddress, HostUnreachable
from tuimon.hosts.host import Host
from tuimon.hosts.inside import Inside
from tuimon.launch.events import AnyEvent, Linked, LogText, Sample, ServerFound, ServerGone, Unlinked
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer

SERVER = """
    import itertools, time
    for number in itertools.count():
        print("line %d of {name}" % number, flush=True)
        time.sleep(0.05)
"""

WAITS_FOR_ITS_PID = """
import os, time
while not os.path.exists(os.environ["PYTHONPATH"] + ".pid"): time.sleep(0.005)
"""


class Engine:
    """The containers of one machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stamping: dict[str, threading.Thread] = {}

    def run(self, name: str, program: str = SERVER) -> None:
        """Start a container whose first process is a server; what it prints is stamped, as an engine does."""
        package = self.folder / name / "sglang"
        package.mkdir(parents=True, exist_ok=True)
        # One that ends at once would be gone before its pid can be read.
        (self.folder / f"{name}.pid").unlink(missing_ok=True)
        program = WAITS_FOR_ITS_PID + textwrap.dedent(program.replace("{name}", name))
        (package / "launch_server.py").write_text(program)
        child = subprocess.Popen(
            ["unshare", "-m", "-p", "-n", "-f", "--mount-proc", "--kill-child", sys.executable, "-m",
             "sglang.launch_server", "--port", "30000"],
            env={**os.environ, "PYTHONPATH": str(package.parent)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._running[name] = child
        (self.folder / f"{name}.log").touch()
        self._stamping[name] = threading.Thread(target=self._stamp, args=(name, child), daemon=True)
        self._stamping[name].start()
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        until(lambda: bool(children.read_text()))
        (self.folder / f"{name}.pid").write_text(children.read_text().strip())

    def _stamp(self, name: str, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout
        with (self.folder / f"{name}.log").open("ab") as file:
            for line in child.stdout:
                stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z "
                file.write(stamp.encode() + line)
                file.flush()

    def stop(self, name: str) -> None:
        """Stop it, as `docker stop` does."""
        child = self._running.pop(name)
        os.kill(int((self.folder / f"{name}.pid").read_text()), signal.SIGKILL)
        child.wait()
        self._stamping.pop(name).join()  # it reads to the end before its pipe is closed
        if child.stdout:
            child.stdout.close()

    def let_end(self, name: str) -> None:
        """Wait for its server to end by itself; the engine knows how."""
        child = self._running.pop(name)
        (self.folder / f"{name}.exit").write_text(str(child.wait()))
        self._stamping.pop(name).join()
        if child.stdout:
            child.stdout.close()

    def inside(self, name: str) -> list[str]:
        """The command lines of all processes in a container."""
        space = os.readlink(f"/proc/{(self.folder / f'{name}.pid').read_text()}/ns/pid")
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "ns/pid") == space:
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def close(self) -> None:
        for name in list(self._running):
            self.stop(name)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    if (
        not shutil.which("nsenter")
        or subprocess.run(["unshare", "-m", "-p", "-n", "-f", "true"], check=False).returncode
    ):
        pytest.skip("no namespaces for us on this machine")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("docker", "kubectl"):
        shutil.copy(Path(__file__).parent / "standin_docker.py", programs / name)
        text = (programs / name).read_text()
        (programs / name).write_text(f"#!{sys.executable}\n{text}")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TUIMON_CONTAINERS", str(tmp_path))
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    engine = Engine(tmp_path)
    yield engine
    engine.close()


class Watched:
    """A watch, with what it heard."""

    def __init__(self, host: str | Host) -> None:
        self.events: list[AnyEvent] = []
        self.watch = LiveWatch(host, Settings())
        self.watch.on_event(self.events.append)
        self.watch.start()

    def text(self) -> bytes:
        return b"".join(event.text for event in list(self.events) if isinstance(event, LogText))

    def seen(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        return [event for event in list(self.events) if isinstance(event, kind)]


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def numbers(text: bytes) -> list[int]:
    """The numbers of the server's lines, whole lines only."""
    return [int(line.split()[1]) for line in text.split(b"\n")[:-1] if line.startswith((b"line", b"again"))]


@pytest.mark.parametrize("spec", ["docker:one", "k8s:web/one"])
def test_a_container_is_watched_from_inside_and_its_log_from_outside(engine: Engine, spec: str) -> None:
    engine.run("one")
    watched = Watched(spec)
    try:
        until(lambda: bool(watched.seen(ServerFound)) and len(watched.text()) > 100)
        (found, *_) = watched.seen(ServerFound)
        assert isinstance(found, ServerFound)
        assert (found.pid, found.engine, found.log) == (1, "sglang", spec)
        until(lambda: any(isinstance(e, Sample) and e.processes and e.processes[0].pid == 1 for e in watched.events))
        assert watched.watch.view.link.state == "up"
        assert "one on this machine" in (watched.watch.view.link.detail or "")
    finally:
        watched.watch.stop()
    assert numbers(watched.text())[:3] == [0, 1, 2]
    until(lambda: len(engine.inside("one")) == 1)  # the server alone: nothing of ours is left in there


def test_a_container_that_stops_and_comes_again_is_lost_and_found_and_no_line_comes_twice(engine: Engine) -> None:
    engine.run("one")
    watched = Watched("docker:one")
    try:
        until(lambda: len(watched.text()) > 100)
        engine.stop("one")
        until(lambda: bool(watched.seen(Unlinked)))
        assert "the container one is gone" in watched.seen(Unlinked)[0].reason  # type: ignore[union-attr]  # an Unlinked
        engine.run("one", SERVER.replace("line %d", "again %d"))
        until(lambda: b"again 3 " in watched.text(), 40)
        assert len(watched.seen(Linked)) >= 2
    finally:
        watched.watch.stop()
    old, _, new = watched.text().partition(b"again 0")
    assert numbers(old) == list(range(len(numbers(old))))
    assert numbers(b"again 0" + new) == list(range(len(numbers(b"again 0" + new))))


def test_a_container_that_ends_with_its_server_is_a_crash_with_its_last_words_and_no_lost_link(engine: Engine) -> None:
    engine.run(
        "one", SERVER.replace("time.sleep(0.05)", "time.sleep(0.05)\n        if number > 60: raise ValueError('no')")
    )
    watched = Watched("docker:one")
    try:
        until(lambda: bool(watched.seen(ServerFound)))
        engine.let_end("one")
        view = watched.watch.wait_for(lambda view: view.verdict.state == "crashed", 20)
        assert (view.verdict.state, view.link.state) == ("crashed", "up")
        assert view.verdict.headline == "ended before it was ready: ValueError: no"
        assert [gone.exit for gone in watched.seen(ServerGone)] == [1]  # type: ignore[union-attr]  # a ServerGone
        assert any(finding.startswith("Docker:one ended with 1 on 20") for finding in view.findings)
        assert watched.seen(Unlinked) == []
        engine.run("one", SERVER.replace("line %d", "again %d"))
        until(lambda: b"again 3 " in watched.text(), 40)
        assert watched.watch.wait_for(lambda view: view.verdict.state == "starting", 20).server is not None
    finally:
        watched.watch.stop()


@pytest.mark.parametrize(("spec", "named"), [("docker:one", ("SGLang", 30000)), ("k8s:web/one", ("SGLang", None))])
def test_a_container_that_had_ended_before_we_came_is_judged_by_its_end(
    engine: Engine, spec: str, named: tuple[str | None, int | None]
) -> None:
    engine.run("one", "import time\nprint('[2026-11-30 15:31:10] line 0', flush=True)\nraise ValueError('no')")
    engine.let_end("one")
    watched = Watched(spec)
    try:
        view = watched.watch.wait_for(lambda view: view.verdict.state == "crashed", 10)
        assert (view.verdict.state, view.verdict.certain, view.link.state) == ("crashed", True, "up")
        assert view.verdict.headline == "ended before it was ready: ValueError: no"
        assert any(finding.startswith(f"{spec.title()[0]}{spec[1:]} ended with 1 on 20") for finding in view.findings)
        assert view.server is not None
        assert (view.server.engine, view.server.port, view.server.log) == (*named, spec)
        assert "hush" not in repr(watched.events)
        assert watched.seen(Unlinked) == []
        engine.run("one")
        view = watched.watch.wait_for(lambda view: view.verdict.state == "starting", 20)
        assert (view.verdict.state, len(view.earlier)) == ("starting", 1)
    finally:
        watched.watch.stop()


ENDS_WHEN_TOLD = """
    import itertools, os, sys, time
    for number in itertools.count():
        print("line %d of {name}" % number, flush=True)
        if os.path.exists(os.environ["PYTHONPATH"] + "/end"): raise ValueError("no")
        time.sleep(0.05)
"""


@pytest.mark.parametrize("removed", [False, True])
async def test_a_container_that_ended_while_the_link_to_its_machine_was_down(
    engine: Engine, fake: FakeServer, removed: bool
) -> None:
    engine.run("one", ENDS_WHEN_TOLD)
    watched = Watched(Inside("fake/docker:one", fake.host(), ways.Container("one")))
    try:
        await asyncio.to_thread(until, lambda: bool(watched.seen(ServerFound)) and len(watched.text()) > 100)
        fake.relay.hold()
        (engine.folder / "one" / "end").touch()
        await asyncio.to_thread(engine.let_end, "one")
        if removed:
            (engine.folder / "one.log").unlink()
            (engine.folder / "one.exit").rename(engine.folder / "one.death")
        fake.relay.cut()
        await asyncio.to_thread(until, lambda: bool(watched.seen(Unlinked)))
        fake.relay.release()
        await asyncio.to_thread(until, lambda: bool(watched.seen(ServerGone)))
        view = await asyncio.to_thread(watched.watch.wait_for, lambda view: view.verdict.state == "crashed", 20)
        assert (view.verdict.state, view.link.state) == ("crashed", "up")
        assert view.verdict.headline.endswith("exit 1" if removed else "ValueError: no")
        assert [gone.exit for gone in watched.seen(ServerGone)] == [1]  # type: ignore[union-attr]  # a ServerGone
        assert (len(watched.seen(ServerFound)), len(watched.seen(Linked))) == (1, 2)
    finally:
        await asyncio.to_thread(watched.watch.stop)
    if not removed:
        printed, _, _ = watched.text().partition(b"Traceback")
        assert numbers(printed) == list(range(printed.count(b"line ")))


@pytest.mark.parametrize("again", [False, True])
def test_a_container_that_is_removed_or_started_again_at_once_has_ended_too(engine: Engine, again: bool) -> None:
    """`docker run --rm`, and `--restart always`: a moment later its state tells nothing of the end."""
    engine.run("one")
    watched = Watched("docker:one")
    try:
        until(lambda: bool(watched.seen(ServerFound)) and len(watched.text()) > 100)
        (engine.folder / "one.death").write_text("3")
        engine.stop("one")
        if again:
            engine.run("one")
        else:
            (engine.folder / "one.log").unlink()
        until(lambda: bool(watched.seen(ServerGone)), 20)
        assert len(watched.seen(ServerFound)) == 1  # not that of the new one, whose first process has the same pid
        assert [gone.exit for gone in watched.seen(ServerGone)] == [3]  # type: ignore[union-attr]  # a ServerGone
        assert watched.watch.wait_for(lambda view: view.verdict.state == "crashed", 20).link.state == "up"
        if again:
            until(lambda: len(watched.seen(ServerFound)) == 2, 40)
        assert watched.seen(Unlinked) == []
    finally:
        watched.watch.stop()


@pytest.mark.parametrize("spec", ["docker:one", "k8s:web/one"])
def test_what_a_container_printed_before_we_came_is_no_sign_of_life(engine: Engine, spec: str) -> None:
    engine.run("one", "import time\nfor n in range(9): print('line', n, flush=True)\ntime.sleep(600)\n")
    until(lambda: (engine.folder / "one.log").read_bytes().count(b"line") == 9)
    written = time.time()
    until(lambda: time.time() - written > 3)
    watched = Watched(spec)
    try:
        view = watched.watch.wait_for(lambda view: view.lines.end == 9 and view.data_age is not None, 20)
        (log,) = [sign for sign in view.signs if sign.name == "log"]
        assert log.last == pytest.approx(written, abs=1)
        assert view.growth.last_growth is None
    finally:
        watched.watch.stop()


async def test_a_container_on_another_machine_is_entered_over_its_link(engine: Engine, fake: FakeServer) -> None:
    engine.run("one")
    fake.noise = b"Welcome!\n"
    host = Inside("fake/docker:one", fake.host(), ways.Container("one"))
    await host.connect()
    assert host.detail.startswith("the container one on tester@127.0.0.1:")
    assert (await host.run(["sh", "-c", "echo $PPID; echo bad >&2; exit 3"])).exit == 3
    done = await host.run(["cat", "/proc/1/cmdline"])
    assert b"sglang.launch_server" in done.stdout
    assert (await host.run(["cat"], stdin=b"x" * 200_000)).stdout == b"x" * 200_000
    assert (await host.run(["sh", "-c", "echo it\\'s bad >&2"])).stderr == b"it's bad\n"
    await host.put(b"content", str(engine.folder / "put"), 0o600)
    pieces = host.follow("docker:one", -1)
    async with asyncio.timeout(10):
        assert (await anext(pieces)).text.startswith(b"line 0 ")
    await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, which the protocol does not promise
    fake.drop()
    async with asyncio.timeout(5):
        await host.lost()
    await host.close()
    # What no longer hears of us ends within 25 s; mostly it sees at once that the link is gone.
    await asyncio.to_thread(until, lambda: len(engine.inside("one")) == 1, 40.0)


async def test_why_a_container_cannot_be_entered_is_said_in_words(engine: Engine) -> None:
    with pytest.raises(HostUnreachable, match="There is no container one there"):
        await pick.host("docker:one").connect()
    with pytest.raises(HostUnreachable, match="There is no pod one in web"):
        await pick.host("k8s:web/one").connect()
    engine.run("one")
    engine.stop("one")
    with pytest.raises(HostUnreachable, match="The container one is not running"):
        await pick.host("docker:one").connect()
    (engine.folder / "denied").touch()
    with pytest.raises(AccessDenied, match="Docker may not be asked") as denied:
        await pick.host("docker:one").connect()
    assert "group `docker`" in denied.value.advice
    with pytest.raises(AccessDenied, match="may not be entered"):
        await pick.host("k8s:web/one").connect()


async def test_a_machine_without_docker_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AccessDenied, match="There is no docker program"):
        await pick.host("docker:one").connect()


@pytest.mark.parametrize("spec", ["docker:", "docker:a/b", "docker:-v", "k8s:web", "k8s:a/b/c/d", "x/docker:$(id)"])
def test_names_that_are_none_are_refused_before_anything_is_run(spec: str) -> None:
    with pytest.raises(BadAddress):
        pick.host(spec)
