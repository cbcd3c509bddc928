"""Reads torch's flight-recorder dumps: which rank stopped at which collective. A pickle, so nothing in it may run.

Only the opcodes that plain data needs are let through, checked before anything is built; sizes and counts are bounded.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tuimon.diagnose.errors import BadDump
from tuimon.diagnose.pyspy import clean
from tuimon.launch.events import CollectiveCount, Collectives

LIMIT = 64 << 20
"""Bytes of a dump; 2,000 entries with stacks are 0.9 MB."""
OPCODES = 8_000_000
PLAIN = frozenset({
    "PROTO", "FRAME", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "DICT", "LIST", "TUPLE", "TUPLE1",
    "TUPLE2", "TUPLE3", "SETITEM", "SETITEMS", "APPEND", "APPENDS", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1",
    "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINSTRING", "BINSTRING",
    "SHORT_BINBYTES", "BINBYTES", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE",
})  # fmt: skip


class Entry(Struct, frozen=True):
    """One collective of one rank."""

    group: str
    sequence: int
    name: str
    """`nccl:all_reduce`"""
    state: str
    """scheduled, started, completed."""
    where: str = ""
    """The call that made it: `forward (model.py:12)`."""


class Trace(Struct, frozen=True):
    """One rank's dump."""

    version: str
    entries: tuple[Entry, ...]


class DataOnly(pickle.Unpickler):
    """An unpickler that knows no classes; the opcodes were checked before, this is the second lock."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  the base class says so
        """Refuse."""
        raise BadDump(f"the dump names {clean(module)}.{clean(name)}: it is no flight-recorder dump")

    def persistent_load(self, pid: object) -> Any:  # noqa: ANN401  the base class says so
        """Refuse."""
        raise BadDump(f"the dump refers to something outside itself: {clean(str(pid))}")


def load(content: bytes) -> object:
    """The plain data of a pickle. Raises BadDump for anything else."""
    if len(content) > LIMIT:
        raise BadDump(f"the dump has {len(content)} bytes, more than {LIMIT}")
    try:
        check_opcodes(content)
        return DataOnly(io.BytesIO(content)).load()
    except BadDump:
        raise
    except Exception as error:
        # Damaged pickles raise nearly anything: ValueError, KeyError, IndexError, struct.error, UnicodeDecodeError …
        raise BadDump(f"the dump cannot be read: {clean(str(error))}") from error


def check_opcodes(content: bytes) -> None:
    """Let only plain data through, and no memo index that would make the unpickler allocate gigabytes."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if opcode.name not in PLAIN:
            raise BadDump(f"the dump contains {opcode.name}: it is no flight-recorder dump")
        if opcode.name == "LONG_BINPUT" and isinstance(argument, int) and argument > count:
            raise BadDump("the dump's memo is torn")
        if count > OPCODES:
            raise BadDump("the dump has too many parts")


def parse(content: bytes) -> Trace:
    """One rank's dump. Raises BadDump."""
    found = load(content)
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        raise BadDump("the dump has no entries: it is no flight-recorder dump")
    entries = [entry(each) for each in found["entries"] if isinstance(each, dict)]
    return Trace(clean(str(found.get("version", "")))[:20], tuple(entries))


def entry(fields: Mapping[Any, Any]) -> Entry:
    """One entry; the process group is a pair of name and description."""
    group, sequence, frames = fields.get("process_group"), fields.get("collective_seq_id"), fields.get("frames")
    name = group[0] if isinstance(group, (list, tuple)) and group else fields.get("pg_id", "?")
    return Entry(
        short(name), sequence if isinstance(sequence, int) else -1, short(fields.get("profiling_name")),
        short(fields.get("state")), caller(frames if isinstance(frames, list) else []),
    )  # fmt: skip


def caller(frames: list[Any]) -> str:
    """The first frame outside torch.distributed."""
    for each in frames[:64]:
        if isinstance(each, dict) and "torch/distributed" not in str(each.get("filename"))[:1000]:
            file = short(each.get("filename")).rpartition("/")[2]
            return f"{short(each.get('name'))} ({file}:{short(each.get('line'))})"
    return ""


def short(value: object) -> str:
    """A scalar as bounded printable text."""
    return clean(str(value))[:120] if isinstance(value, str | int) else "?"


def analyse(traces: Mapping[str, Trace], pids: Mapping[str, int] | None = None) -> Collectives:
    """Compare the ranks: counts by process group, and the first collective at which they part."""
    counts: list[CollectiveCount] = []
    lines: list[str] = []
    for group in sorted({each.group for trace in traces.values() for each in trace.entries}):
        last = {rank: trace_of_group(trace, group) for rank, trace in traces.items()}
        for rank, entries in last.items():
            top = max((each.sequence for each in entries), default=0)
            counts.append(CollectiveCount(rank, f"process group {group}", top, (pids or {}).get(rank)))
            lines.append(f"{group} {rank}: {standing(entries)}")
        lines += parting(group, last)
    return Collectives(
        source="flight recorder", counts=tuple(counts), text="\n".join(lines) or "no collective recorded"
    )


def trace_of_group(trace: Trace, group: str) -> list[Entry]:
    """One rank's entries of one group, by sequence."""
    mine = [each for each in trace.entries if each.group == group and each.sequence >= 0]
    return sorted(mine, key=lambda each: each.sequence)


def standing(entries: list[Entry]) -> str:
    """Where one rank is: the first collective that it did not complete, else the last."""
    if not entries:
        return "no collective yet"
    open_ones = [each for each in entries if each.state != "completed"]
    at = open_ones[0] if open_ones else entries[-1]
    return f"collective {at.sequence} {at.name}, {at.state}" + (f", called by {at.where}" if at.where else "")


def parting(group: str, ranks: Mapping[str, list[Entry]]) -> list[str]:
    """The first sequence number at which the ranks called different collectives."""
    names: dict[int, dict[str, list[str]]] = {}
    for rank, entries in ranks.items():
        for each in entries:
            names.setdefault(each.sequence, {}).setdefault(each.name, []).append(rank)
    for sequence in sorted(names):
        if len(names[sequence]) > 1:
            sides = ", ".join(f"{' '.join(who)} called {name}" for name, who in names[sequence].items())
            return [f"{group}: the ranks part at collective {sequence}: {sides}"]
    return []
