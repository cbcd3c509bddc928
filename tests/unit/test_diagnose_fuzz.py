"""Random bytes and damaged real outputs into every parser of the diagnosis: no exception, bounded time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.diagnose import (
    abort,
    checkpoint,
    collectives,
    debug_server,
    flight_recorder,
    kernel,
    pyspy,
    ras,
    recorder,
    report,
    sent,
    stacks,
    told,
)
from tuimon.diagnose.errors import DiagnoseError
from tuimon.diagnose.groups import group
from tuimon.diagnose.ladder import Diagnosis
from tuimon.diagnose.targets import Target
from tuimon.diagnose.written import as_document, as_text
from tuimon.hosts.host import Completed
from tuimon.launch.events import CollectiveCount, Collectives, Finding, Frame, RankStack, Stacks, ThreadStack
from tuimon.launch.state import Launch
from tuimon.ui.reports import body

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TARGETS = (Target(1, "TP0"), Target(2, "TP1"))


def frame(header: dict[str, object], content: bytes = b"") -> bytes:
    return json.dumps({**header, "length": len(content)}).encode() + b"\n" + content


JSON = b'[{"thread_name": "MainThread", "os_thread_id": 1, "frames": [{"name": "f", "filename": "/x.py", "line": 3}]}]'
TEXT = b'Thread 1 (idle): "MainThread"\n    f (x.py:1)\n'
PICKLE = pickle.dumps({"version": "2.10", "entries": [{"process_group": ("0", "d"), "collective_seq_id": 1}]}, 4)
DUMP = frame({"about": True, "machine": "x86_64", "uid": 0, "yama": "1", "capabilities": "0", "binaries": []})
DUMP += frame({"pid": 1, "exit": 0, "proc": {"state": "S", "inner": {"1": [9, "S"]}}}, zlib.compress(JSON))
DUMP += frame({"pid": 2, "exit": 1, "error": "os error 13", "proc": {"state": "D", "syscall": "202"}}) + frame(
    {"done": 1}
)
RECORDED = frame({"pid": 1, "rank": 0}, zlib.compress(PICKLE)) + frame({"done": True})
HEADERS = frame({"folder": "/m", "files": [["config.json", 2]]}) + frame({"name": "config.json"}, b"{}")
HEADERS += frame({"done": True})
RAS = json.dumps({
    "refused": False, "port": 28028,
    "report": 'OK\n{"nccl_version": "2.28.9", "communicators": [{"hash": "0x1", "size": 2,\n"ranks": [{"rank": 0,'
    '"pid": 1,\n"collective_counts": {"AllReduce": 2}}], "missing_ranks": [{"rank": 1, "pid": 2}]}]}',
    "later": "NCCL version 2.26\n#0-0 (ab) MISMATCH\n  Rank 0 has launched up to operation 2 -- GPU 0 managed by"
    " process 1",
}).encode()  # fmt: skip
KERNEL = (
    "2026-01-01T00:00:00,1+00:00 NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus\n"
    "[1] Out of memory: Killed process 7 (python)\nINFO: task x:12 blocked for more than 120 seconds.\n"
)
PAGE = b'{"page": "<html><head>x</head><pre>File &quot;a&quot;</pre><script>x</script>"}'


def dumped(output: bytes) -> None:
    with contextlib.suppress(DiagnoseError):
        look = stacks.assemble(stacks.read_answer(output), TARGETS, asked=True)
        as_text(look)
        json.dumps(as_document(look))


def checked(output: bytes) -> None:
    with contextlib.suppress(DiagnoseError):
        checkpoint.assemble("/m", sent.frames(output))


def traced(output: bytes) -> None:
    with contextlib.suppress(DiagnoseError):
        flight_recorder.analyse({"rank 0": flight_recorder.parse(output)})


class Answers:
    """A host that says this to every command."""

    name = "host"

    def __init__(self, output: bytes) -> None:
        self.output = output

    async def run(self, *_: object, **__: object) -> Completed:
        return Completed(0, self.output, b"")


def aborted(output: bytes) -> None:
    host = Answers(output)
    aimed = asyncio.run(abort.aim(host, TARGETS[0]))  # type: ignore[arg-type]  # only run is used
    told.aim(aimed)
    asyncio.run(abort.fire(host, aimed))  # type: ignore[arg-type]  # as above


PARSERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "py-spy json": (pyspy.parse_json, JSON),
    "py-spy text": (lambda output: pyspy.parse_text(output.decode(errors="replace")), TEXT),
    "dump": (dumped, DUMP),
    "ras": (lambda output: told.collectives(collectives.read(output, {1: "TP0"})), RAS),
    "ras text": (lambda output: ras.parse_text(output.decode(errors="replace")), json.loads(RAS)["later"].encode()),
    "recorder": (lambda output: told.recorded(recorder.read(output, {1: "TP0"})), RECORDED),
    "pickle": (traced, PICKLE),
    "kernel": (lambda output: kernel.parse(output.decode(errors="replace"), 0.0), KERNEL.encode()),
    "checkpoint": (checked, HEADERS),
    "debug server": (lambda output: told.debug_server(*debug_server.read(output)), PAGE),
    "abort": (aborted, b'{"gone": false, "started": 5, "seen": {"SigCgt": "4ea", "NSpid": "4 1"}, "ended": true}'),
}  # fmt: skip


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_and_damaged_answers_are_survived(name: str, data: st.DataObject) -> None:
    parse, real = PARSERS[name]
    parse(data.draw(st.binary(max_size=200)))
    damaged = bytearray(real)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(real) - 1), st.integers(0, 255)), max_size=6)):
        damaged[at] = byte
    cut = data.draw(st.integers(0, len(real)))
    parse(bytes(damaged))
    parse(bytes(damaged[:cut]))
    parse(bytes(damaged[cut:]) + data.draw(st.binary(max_size=30)))


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_reads_what_it_is_for(name: str) -> None:
    parse, real = PARSERS[name]
    parse(real)
    assert "TP1 does not answer" in told.collectives(collectives.read(RAS, {1: "TP0", 2: "TP1"}))
    assert recorder.read(RECORDED, {1: "TP0"}).unread == ()
    assert [rank.pid for rank in stacks.assemble(stacks.read_answer(DUMP), TARGETS, asked=True).ranks] == [1]


@pytest.mark.parametrize("name", [name for name in PARSERS if name != "pickle"])
@pytest.mark.parametrize(
    "unit", [b"(", b"<", b"{", b"[", b"Thread 1 (", b"Rank 1 ", b"<script>", b'"\n"', b"\x80", b"#0-0 ("]
)
def test_a_megabyte_of_one_thing_takes_no_time(name: str, unit: bytes) -> None:
    parse, real = PARSERS[name]
    flood = unit * ((1 << 20) // len(unit))
    began = time.process_time()
    parse(flood)
    parse(real[: len(real) // 2] + flood)
    assert time.process_time() - began < 3


texts = st.text(max_size=40)
frames = st.builds(Frame, name=texts, file=st.none() | texts, line=st.none() | st.integers(0, 9999))
threads = st.builds(
    ThreadStack,
    name=st.none() | texts,
    frames=st.lists(frames, max_size=4).map(tuple),
    tid=st.none() | st.integers(1, 99),
)
looks = st.builds(
    RankStack, pid=st.integers(1, 9), rank=st.none() | texts, threads=st.lists(threads, max_size=2).map(tuple)
)
counts = st.builds(
    CollectiveCount, rank=texts, communicator=texts, launched=st.none() | st.integers(0, 9), missing=st.booleans()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(looks, max_size=5), st.lists(counts, max_size=5), texts, st.integers(20, 200))
def test_any_finding_becomes_a_report_that_can_be_shown(
    ranks: list[RankStack], counted: list[CollectiveCount], text: str, width: int
) -> None:
    event = Collectives(source="NCCL RAS", counts=tuple(counted), text=text)
    found = Diagnosis(Stacks(ranks=tuple(ranks)), event, (Finding(source="kernel", kind="x", text=text),), (text,), 0.1)
    written = report.markdown(Launch("host").snapshot(1.0), found)
    assert "\x1b" not in written
    for row in body(written, width):
        assert all("\n" not in part for part, _ in row)
    group(found.stacks)
    told.collectives(event)


@pytest.mark.skipif(not SHARED.exists(), reason="the recordings are not beside the repository")
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_real_outputs_are_survived(data: st.DataObject) -> None:
    paths = [
        *sorted((SHARED / "recordings").glob("*/diagnosis.txt")),
        *sorted((SHARED / "recordings").glob("*/pyspy_*")),
    ]
    text = data.draw(st.sampled_from(paths)).read_text(errors="replace")
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[start : start + 6000].replace(
        data.draw(st.sampled_from([",", "{", "\n", "Rank", ")"])), data.draw(texts)
    )
    pyspy.parse_text(piece)
    pyspy.parse_json(piece.encode("utf-8", "replace"))
    ras.parse(piece)
    kernel.parse(piece)
