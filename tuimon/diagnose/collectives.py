"""Asks NCCL RAS on a host which rank launched fewer collectives: harmless, under 10 ms where every rank answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tuimon.diagnose import ras, sent
from tuimon.diagnose.pyspy import clean
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host
from tuimon.launch.events import Collectives

PORT = 28028
TRIES = 12
"""Connections until a rank answers: with 2 of 8 stopped, 12 of 12 questions were answered, the worst in 2.7 s."""
TIMEOUT = 16.0


async def ask(host: Host, names: Mapping[int, str], pid: int | None = None, port: int = PORT) -> Collectives:
    """What RAS says; `names` are our ranks by pid, `pid` is the server. Raises HostUnreachable.

    Where nothing answers `counts` is empty and `text` says why.
    """
    options = {"port": port, "pid": pid, "pids": list(names), "tries": TRIES}
    try:
        done = await sent.run(host, "ras", options, timeout=TIMEOUT, limit=32 << 20)
    except CommandTimedOut:
        return nothing("no rank answered within its time")
    return read(done.stdout, names)


def read(output: bytes, names: Mapping[int, str]) -> Collectives:
    """The program's one line."""
    answer = sent.json_object(output)
    if answer is None:
        return nothing("the host's answer cannot be read")
    if answer.get("refused"):
        why = "NCCL has not started yet, is older than 2.24, or NCCL_RAS_ENABLE=0"
        return nothing(f"nobody listens on port {answer.get('port')}: {why}")
    if "report" not in answer:
        return nothing(
            f"no rank answered ({clean(str(answer.get('error', '')))}): all of them are stopped, or stuck in the driver"
        )
    report = ras.parse(str(answer["report"]))
    if report is None:
        return nothing("its answer cannot be read")
    later = ras.parse(str(answer.get("later") or ""))
    inner = inner_pids(answer.get("inner"))
    known = {**names, **{each: names[pid] for each, pid in inner.items() if pid in names}}
    event = ras.as_event(report, known, moving=None if later is None else ras.has_moved(report, later))
    counts = tuple(msgspec.structs.replace(each, pid=inner.get(each.pid or 0, each.pid)) for each in event.counts)
    return msgspec.structs.replace(event, counts=counts)


def inner_pids(found: object) -> dict[int, int]:
    """Pids as a container's processes know them → the host's."""
    pairs = found.items() if isinstance(found, dict) else ()
    return {int(inner): pid for inner, pid in pairs if str(inner).isdecimal() and len(inner) < 10 and type(pid) is int}


def nothing(why: str) -> Collectives:
    """No counts, and why."""
    return Collectives(source=ras.SOURCE, counts=(), text=why)
