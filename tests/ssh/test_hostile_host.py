"""A host that means harm, or is broken: contained, bounded, and said."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.config import Settings
from tuimon.hosts.frames import Frames
from tuimon.launch.events import AnyEvent, Finding, LogText, Sample
from tuimon.watch.lines import LONGEST, Lines
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tests.ssh.conftest import FakeServer

LIAR = """import os, sys, threading, time
w = sys.stdout.buffer.write
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
"""
SAMPLE = b'{"event":"Sample","mono":1.0}\n'


def liar(folder: Path, program: str) -> None:
    """A python3 on the host that is not one."""
    path = folder / "python3"
    path.write_text(f"#!{sys.executable} -I\n{LIAR}{program}")
    path.chmod(0o755)


async def _watch(
    fake: FakeServer, seconds: float, done: type[AnyEvent] | None = None
) -> tuple[LiveWatch, list[AnyEvent]]:
    events: list[AnyEvent] = []
    watch = LiveWatch(fake.host(), Settings(history=False))
    watch.on_event(events.append)
    watch.start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (done and any(isinstance(each, done) for each in events)):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return watch, events


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


async def test_endless_output_without_a_newline_takes_no_memory(fake: FakeServer, there: Path) -> None:
    liar(there, "while True: w(b'x' * 65536)")
    tracemalloc.start()
    watch, events = await _watch(fake, 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await asyncio.to_thread(watch.stop)
    assert peak < 6 * LONGEST
    assert not [event for event in events if isinstance(event, Sample)]


async def test_lies_of_every_type_are_dropped_and_said_and_the_truth_beside_them_is_taken(
    fake: FakeServer, there: Path
) -> None:
    lies = [
        '{"event":"Sample","mono":"soon"}', '{"event":"Sample","mono":1,"processes":[{"pid":"x"}]}', "[]", "nul",
        '{"event":"LogText","offset":0,"text":"aGk="}', '{"event":"Linked","host":"evil"}', '{"event":"Nothing"}',
        '{"event":"Sample","mono":1e999}', "[" * 5000, '{"event":"ServerFound","pid":1e40}', "\\x1b]0;pwned\\x07",
    ]  # fmt: skip
    lines = [SAMPLE.decode().strip(), *lies, *lies, SAMPLE.decode().strip()]
    liar(there, f"for line in {lines!r}: w(line.encode() + b'\\n')\nsys.stdout.flush(); time.sleep(60)")
    watch, events = await _watch(fake, 10, Finding)
    await asyncio.to_thread(watch.stop)
    assert not [event for event in events if isinstance(event, LogText)]
    (said,) = [event for event in events if isinstance(event, Finding)]
    assert "make no sense" in said.text
    assert "\x1b" not in said.text


async def test_a_log_path_that_it_offers_is_one_word_and_no_command(fake: FakeServer, there: Path) -> None:
    trap = there / "trapped"
    for name in (f"/tmp/$(touch {trap})", f"/tmp/'; touch {trap}; '", f"-x;touch {trap}", f"docker:x; touch {trap}"):
        found = json.dumps({"event": "ServerFound", "pid": 7, "log": name})
        liar(there, f"w({found.encode()!r} + b'\\n' + {SAMPLE!r})\nsys.stdout.flush(); time.sleep(60)")
        watch, _ = await _watch(fake, 1.0)
        await asyncio.to_thread(watch.stop)
        assert not trap.exists()


GIGABYTE = """
if os.path.exists({flag!r}):
    w(b'{{"kind":"text","offset":0,"length":%d,"inode":1}}\\n' % {size})
    for _ in range({size} >> 16): w(b"x" * 65536)
else:
    open({flag!r}, "w").close()
    w({found!r} + b"\\n" + {sample!r})
sys.stdout.flush(); time.sleep(600)
"""


@pytest.mark.parametrize("size", [1 << 26, pytest.param(1 << 30, marks=pytest.mark.slow)])
async def test_a_line_of_a_gigabyte_in_the_log_is_cut_and_takes_no_memory(
    fake: FakeServer, there: Path, size: int
) -> None:
    found = b'{"event":"ServerFound","pid":7,"log":"/var/log/endless"}'
    liar(there, GIGABYTE.format(flag=str(there / "probed"), size=size, found=found, sample=SAMPLE))
    received = [0]
    watch = LiveWatch(fake.host(), Settings(history=False))
    watch.on_event(lambda event: received.append(received.pop() + len(getattr(event, "text", "") or "")))
    tracemalloc.start()
    watch.start()
    async with asyncio.timeout(300):
        while received[0] < size:  # noqa: ASYNC110  told on another thread
            await asyncio.sleep(0.05)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    lines = watch.view.lines
    assert all(len(line.text) <= 4100 for line in lines.slice(lines.first, lines.end))
    await asyncio.to_thread(watch.stop)
    sys.stdout.write(f"a line of {size >> 20} MiB: {peak >> 20} MiB here at most\n")
    assert peak < 48 << 20


def test_a_frame_that_promises_a_gigabyte_needs_no_memory() -> None:
    frames = Frames()
    list(frames.feed(b'{"kind":"text","offset":0,"length":1000000000}\n'))
    tracemalloc.start()
    total = sum(len(piece.text) for _ in range(1000) for piece in frames.feed(b"x" * 65536))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 65_536_000
    assert peak < 1 << 20


def test_a_marked_frame_that_promises_a_gigabyte_is_not_waited_for() -> None:
    frames = Frames()
    header = b'{"kind":"text","offset":0,"length":1000000000,"mark":"m"}\n'
    assert sum(len(piece.text) for piece in frames.feed(header + b"x" * 65536)) == 65536


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_no_bytes_make_the_readers_fail_or_grow(pieces: list[bytes]) -> None:
    frames, lines = Frames(), Lines()
    for piece in pieces:
        list(frames.feed(piece))
        list(lines.feed(piece))
        assert len(frames._pending) <= 6000
