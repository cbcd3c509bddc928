"""A host without any Python: what is still seen, what is said not to be, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.config import Settings
from tuimon.hosts import beating, finding, plain
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import AnyEvent, Finding, LogText, Sample, ServerFound, ServerGone
from tuimon.watch import sampling
from tuimon.watch.live import LiveWatch
from tuimon.watch.rawproc import Look, Reader, gpu

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer

TOOLS = (
    "sh",
    "cat",
    "grep",
    "tr",
    "ls",
    "tail",
    "dd",
    "timeout",
    "sleep",
    "wc",
    "head",
    "printf",
    "true",
    "readlink",
    "env",
)
SMI = """#!/bin/sh
while :; do
  echo "0, NVIDIA H200, 97, 0, 131072, 143771, 121.5, 700.00, 41, 1980"
  echo "1, NVIDIA H200, [N/A], [Not Supported], 4, 143771, 77.1, 700.00, 30, 345"
  sleep 1
done
"""

WHOLE = Path(sys.executable).resolve()
NO_JSON = "import sys; sys.modules['json'] = None; exec(sys.argv[-1])"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a few programs, an nvidia-smi, and no interpreter anywhere."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    (folder / "nvidia-smi").write_text(SMI)
    (folder / "nvidia-smi").chmod(0o755)

    async def nothing(_host: object) -> None:
        return None

    monkeypatch.setattr(sampling, "find_python", nothing)
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def test_what_is_seen_without_python(fake: FakeServer, bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "launch_server.py").write_text(
        "import time\nfor n in range(10**6): print('line %d' % n, flush=True); time.sleep(0.05)\n"
    )
    with log.open("wb") as out:
        server = subprocess.Popen(  # noqa: ASYNC220  it returns at once
            [sys.executable, "-m", "sglang.launch_server", "--model-path", "/m", "--api-key", "s3cret"],
            env={"PYTHONPATH": str(tmp_path)}, stdout=out, start_new_session=True,
        )  # fmt: skip
    events: list[AnyEvent] = []
    watch = LiveWatch(fake.host(), Settings())
    watch.on_event(events.append)
    watch.start()
    try:
        await _until(lambda: any(isinstance(event, LogText) for event in events))
        await _until(lambda: any(isinstance(event, Sample) and event.gpus for event in events))
        found = [event for event in events if isinstance(event, ServerFound)][-1]
        # Some launch of another test of this machine may be newer.
        assert found.engine
        assert "s3cret" not in repr(events)
        sample = [event for event in events if isinstance(event, Sample)][-1]
        assert sample.gpus
        assert (sample.gpus[0].power, sample.gpus[1].util) == (121.5, None)
        assert any(process.pid == found.pid for process in sample.processes or ())
        (said,) = [event for event in events if isinstance(event, Finding) and event.kind == "no_python"]
        assert "I/O, what processes wait in, health" in said.text
    finally:
        await asyncio.to_thread(watch.stop)
        server.kill()
        server.wait()
    await _until(lambda: not _running(str(bare)))


def _running(folder: str) -> list[int]:
    """Pids of processes that were started with this PATH."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"PATH={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


async def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.05)


async def test_an_interpreter_beside_the_path_is_found_and_an_old_one_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")  # too old for us
    (tmp_path / "bin" / "python3").chmod(0o755)
    monkeypatch.setattr(
        finding, "SEARCH", f"echo {tmp_path}/bin/python3; echo /etc/passwd; echo {sys.executable}; echo /proc/self/exe"
    )
    assert await finding.find_python(LocalHost()) in {sys.executable, None}


async def test_an_interpreter_without_its_library_is_passed_over_for_a_whole_one(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's python3-minimal: it runs, and has no json."""
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{NO_JSON}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setattr(finding, "SEARCH", f"echo {tmp_path}/python3; echo {WHOLE}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert (await LocalHost().run(["python3", "-I", "-c", "import zlib"])).exit == 0
    assert (await LocalHost().run(["python3", "-I", "-c", "import json"])).exit == 1
    events: list[AnyEvent] = []
    watch = LiveWatch(fake.host(), Settings())
    watch.on_event(events.append)
    watch.start()
    try:
        await _until(lambda: any(isinstance(event, Sample) for event in events))
        assert not [event for event in events if isinstance(event, Finding) and event.kind == "no_python"]
    finally:
        await asyncio.to_thread(watch.stop)


def test_a_server_that_ends_is_gone_and_the_next_is_another() -> None:
    fields = " ".join(["0"] * 15)

    def look(pid: int, state: str, start: int) -> Look:
        stat = f"{pid} (python3) {state} 1 {pid} {pid} {fields} {start} 1 {' '.join(['0'] * 30)}"
        argv = f"/proc/{pid}/cmdline python3\x1f-m\x1fsglang.launch_server\x1f--port\x1f3"
        link = f"l-wx------ 1 root root 64 /proc/{pid}/fd/1 -> /logs/a b.log"
        return Look(f"@up\n100.5 3\n0.5 0.4\n@stat\n{stat}\n@argv\n{argv}\n@fd\n{link}".encode())

    reader = Reader(None)
    first = list(reader.read(look(7, "S", 70), None, "no nvidia-smi"))
    assert [type(event) for event in first] == [ServerFound, Sample]
    assert isinstance(second := next(reader.read(look(7, "S", 70), None, None)), ServerFound)
    assert (second.log, second.port, second.engine) == ("/logs/a b.log", 3, "sglang")
    after = list(reader.read(look(7, "Z", 70), None, None))
    assert isinstance(after[0], ServerGone)


@given(st.binary(max_size=2000))
def test_no_bytes_make_the_readers_fail(text: bytes) -> None:
    list(Reader(None).read(Look(b"@up\n" + text + b"\n@stat\n" + text + b"\n@argv\n" + text), None, None))
    gpu(text)


async def test_one_tail_follows_the_log_for_as_long_as_we_beat(
    fake: FakeServer, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat that the shell took for the end had it killed and started again, a thousand times a day."""
    monkeypatch.setattr(beating, "EVERY", 0.1)
    log = tmp_path / "growing.log"
    log.write_bytes(b"0\n")
    host = fake.host()
    await host.connect()
    sessions = fake.sessions
    pieces = plain.follow(host, str(log), 0, None)
    text = b""
    async with asyncio.timeout(20):
        for number in range(1, 6):
            text += (await anext(pieces)).text
            await asyncio.sleep(0.15)  # longer than a beat
            with log.open("ab") as file:
                file.write(b"%d\n" % number)
        text += (await anext(pieces)).text
    assert text == b"0\n1\n2\n3\n4\n5\n"
    assert fake.sessions == sessions + 2  # a look at the file, and the tail
    await pieces.aclose()
    await host.close()
