"""Asks torch's flight recorders: the last collectives of each rank, also where RAS counts nothing."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from msgspec import Struct

from tuimon.diagnose import flight_recorder, sent
from tuimon.diagnose.errors import BadDump
from tuimon.diagnose.flight_recorder import Trace
from tuimon.diagnose.pyspy import clean
from tuimon.diagnose.targets import Target
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host
from tuimon.launch.events import Collectives

WAIT = 10.0
"""Seconds for the files: measured, 3–5 s after the byte."""
ADVICE = "start the server with TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_ (and TORCH_NCCL_TRACE_BUFFER_SIZE=2000)"


class Recorded(Struct, frozen=True):
    """What the recorders said."""

    collectives: Collectives | None
    """None where there is no dump."""
    dumps: dict[str, bytes]
    """The raw files by rank, as torch wrote them: pickles."""
    unread: tuple[str, ...]


async def ask(host: Host, targets: Sequence[Target], *, trigger: bool = True) -> Recorded:
    """Dumps of all ranks, analysed; without `trigger` only those that lie there already. Raises HostUnreachable."""
    options = {"pids": [target.pid for target in targets], "ask": trigger, "wait": WAIT}
    try:
        done = await sent.run(host, "recorder", options, timeout=WAIT + 8)
    except CommandTimedOut:
        return Recorded(None, {}, ("flight recorder: the host did not answer in time",))
    return read(done.stdout, {target.pid: target.rank for target in targets if target.rank})


def read(output: bytes, names: dict[int, str]) -> Recorded:
    """The program's frames; dumps are read without running anything that is in them."""
    traces: dict[str, Trace] = {}
    pids: dict[str, int] = {}
    dumps: dict[str, bytes] = {}
    unread: list[str] = []
    for head, body in sent.frames(output):
        pid, number = head.get("pid"), head.get("rank")
        if not isinstance(pid, int) or not isinstance(number, int):
            continue
        name = names.get(pid) or f"rank {number}"
        if "error" in head:
            unread.append(f"flight recorder of {name}: {clean(str(head['error']))}")
            continue
        try:
            dumps[name] = unpack(body)
            traces[name] = flight_recorder.parse(dumps[name])
            pids[name] = pid
        except BadDump as error:
            unread.append(f"flight recorder of {name}: {error}")
    if not traces and not unread:
        unread.append(f"flight recorder: no rank has one that can be asked; {ADVICE}")
    return Recorded(flight_recorder.analyse(traces, pids) if traces else None, dumps, tuple(unread))


def unpack(body: bytes) -> bytes:
    """A dump, unpacked within bounds. Raises BadDump."""
    try:
        return zlib.decompressobj().decompress(body, flight_recorder.LIMIT)
    except zlib.error as error:
        raise BadDump("the dump broke off on the way") from error
