"""What an NCCL RAS report says: JSON (not always valid JSON: 2.28.9 forgets a comma) or the older text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from tuimon.diagnose.pyspy import clean
from tuimon.launch.events import CollectiveCount, Collectives

SOURCE = "NCCL RAS"
MANY = 4096
"""Ranks of one report that are read."""


class Member(Struct, frozen=True):
    """One rank of a communicator."""

    rank: int
    pid: int | None
    launched: dict[str, int]
    """Collectives launched by kind; empty = unknown. Launched, not finished; captured graphs do not count."""
    missing: bool = False
    words: str = ""
    """What is wrong with it: unresponsive, considered dead, async error."""


class Communicator(Struct, frozen=True):
    """One communicator."""

    name: str
    size: int | None
    members: tuple[Member, ...]


class Report(Struct, frozen=True):
    """The whole answer."""

    version: str | None
    communicators: tuple[Communicator, ...]


def parse(text: str) -> Report | None:
    """Read a report in either form; None where it is neither."""
    return parse_json(text) or parse_text(text)


def parse_json(text: str) -> Report | None:
    """The JSON form, with its missing commas put in."""
    start = text.find("{")
    if start < 0:
        return None
    body = text[start:]
    for attempt in (body, with_commas(body)):
        try:
            found, _ = json.JSONDecoder().raw_decode(attempt)  # what follows the document does not matter
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("communicators"), list):
            groups = [communicator(each) for each in found["communicators"][:MANY] if isinstance(each, dict)]
            return Report(words_of(found.get("nccl_version")) or None, tuple(groups))
    return None


_LACKS_COMMA = re.compile(r'(?<=[\w"\]}])(?=[ \t]*\r?\n\s*")')


def with_commas(text: str) -> str:
    """A comma at each line end that the next line's key needs."""
    return _LACKS_COMMA.sub(",", text)


def communicator(entry: Mapping[str, Any]) -> Communicator:
    """One communicator of the JSON."""
    here = [member(each) for each in objects(entry.get("ranks"))]
    gone = [member(each, missing=True) for each in objects(entry.get("missing_ranks"))]
    return Communicator(words_of(entry.get("hash")), whole(entry.get("size")), (*here, *gone))


def member(entry: Mapping[str, Any], *, missing: bool = False) -> Member:
    """One rank of the JSON."""
    counts, status = entry.get("collective_counts"), entry.get("status")
    launched = {
        words_of(name): number
        for name, count in (counts.items() if isinstance(counts, dict) else ())
        if (number := whole(count)) is not None
    }
    said = status if isinstance(status, dict) else {}
    words = [
        name.replace("_", " ") for name in ("unresponsive", "considered_dead", "abort_flag") if said.get(name) is True
    ]
    words += [f"async error {said['async_error']}"] if whole(said.get("async_error")) else []
    words += ["still initialising"] if whole(said.get("init_state")) == 7 else []
    return Member(whole(entry.get("rank")) or 0, whole(entry.get("pid")), launched, missing, ", ".join(words))


def objects(value: object) -> list[dict[str, Any]]:
    """The JSON objects of a list."""
    return [each for each in value[:MANY] if isinstance(each, dict)] if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """A whole number, or unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def words_of(value: object) -> str:
    """Foreign text, bounded and printable."""
    return clean(value)[:80] if isinstance(value, str) else ""


_VERSION = re.compile(r"NCCL version (\S{1,40})")
_HEAD = re.compile(r"^#\d{1,9}-\d{1,9} \(([0-9a-fA-F]{1,40})\)")
_KIND = re.compile(r"different (\w{1,40}) operation counts")
_RANK = re.compile(r"Rank (\d{1,9})\b(.{0,120}?)-- GPU \S{1,40} managed by process (\d{1,9})")
_UP_TO = re.compile(r"up to operation (\d{1,18})")


def parse_text(text: str) -> Report | None:
    """The text form: it names only ranks that differ, so what it does not say is unknown."""
    if "RAS" not in text and "NCCL version" not in text:
        return None
    version = _VERSION.search(text[:65536])
    groups: dict[str, dict[int, Member]] = {}
    name, kind, up_to, gone = "", "", None, False
    for line in text[: 8 << 20].splitlines():
        if head := _HEAD.match(line):
            name, kind, up_to, gone = f"0x{head[1]}", "", None, False
            groups.setdefault(name, {})
        elif found := _KIND.search(line):
            kind, up_to, gone = clean(found[1]), None, False
        elif name and (ranked := _RANK.search(line)):
            put_member(groups[name], ranked, kind, up_to, line, gone=gone)
        elif "Missing communicator data" in line:
            kind, up_to, gone = "", None, True
        elif (many := _UP_TO.search(line)) and "ranks have" in line:
            up_to = int(many[1])
    found_groups = tuple(Communicator(each, None, tuple(ranks.values())) for each, ranks in groups.items())
    return Report(clean(version[1]) if version else None, found_groups)


def put_member(
    ranks: dict[int, Member], found: re.Match[str], kind: str, up_to: int | None, line: str, *, gone: bool
) -> None:
    """Add what one line says of one rank; `up_to` stands for a list of ranks under "N ranks have launched …"."""
    number, pid = int(found[1]), int(found[3])
    if len(ranks) >= MANY and number not in ranks:
        return
    before = ranks.get(number) or Member(number, pid, {})
    own = _UP_TO.search(line)
    count = int(own[1]) if own else 0 if "not launched any" in line else up_to
    low = line.lower()
    missing = gone or before.missing or any(word in low for word in ("unresponsive", "considered dead", "missing"))
    launched = {**before.launched, kind: count} if kind and count is not None else before.launched
    ranks[number] = msgspec.structs.replace(before, launched=launched, missing=missing)


def kinds_of_members(group: Communicator) -> list[Member]:
    """One member for each different set of counts: of a thousand ranks only a few differ."""
    distinct = {tuple(sorted(each.launched.items())): each for each in reversed(group.members) if each.launched}
    return list(distinct.values())[:64]


def laggards(group: Communicator) -> tuple[Member, ...]:
    """Missing ranks, and ranks that launched less of some kind than a peer and more of no kind than any."""
    peers = kinds_of_members(group)
    missing = [each for each in group.members if each.missing]
    return tuple(missing + [each for each in group.members if not each.missing and is_behind(each, peers)])


def is_behind(one: Member, peers: Sequence[Member]) -> bool:
    """Less of some kind than a peer, and more of no kind than any peer."""
    less = any(more_of(each, one) for each in peers)
    return bool(one.launched) and less and not any(more_of(one, each) for each in peers)


def more_of(one: Member, other: Member) -> list[str]:
    """Kinds of which one launched more than the other."""
    return [kind for kind, count in one.launched.items() if count > other.launched.get(kind, 0)]


def disagreement(group: Communicator) -> str:
    """Where two ranks each launched what the other did not: both sides in words; empty where they do not."""
    peers = sorted(kinds_of_members(group), key=lambda each: each.rank)
    for one in peers:
        for other in peers:
            mine, theirs = more_of(one, other), more_of(other, one)
            if mine and theirs and one.rank < other.rank:
                return f"rank {one.rank} launched {side(one, mine)}, rank {other.rank} launched {side(other, theirs)}"
    return ""


def side(one: Member, kinds: Sequence[str]) -> str:
    """`AllReduce 3, Broadcast 1`"""
    return ", ".join(f"{kind} {one.launched[kind]}" for kind in kinds)


def has_moved(before: Report, after: Report) -> bool:
    """Whether any rank launched something between two reports."""
    totals = [
        {
            (group.name, each.rank): sum(each.launched.values())
            for group in report.communicators
            for each in group.members
        }
        for report in (before, after)
    ]
    return any(count > totals[0].get(key, count) for key, count in totals[1].items())


def as_event(report: Report, names: Mapping[int, str] | None = None, *, moving: bool | None = None) -> Collectives:
    """The event; `names` are our ranks by pid, and other jobs on the same port are left out by them."""
    names = names or {}
    ours = [group for group in report.communicators if any(each.pid in names for each in group.members)]
    counts: list[CollectiveCount] = []
    lines = [f"NCCL {report.version}"] if report.version else []
    for group in ours or report.communicators:
        torn = disagreement(group)
        for each in group.members:
            name = names.get(each.pid or -1) or f"rank {each.rank}"
            total = None if torn or not each.launched else sum(each.launched.values())
            counts.append(CollectiveCount(name, group.name, total, each.pid, each.missing))
            lines.append(f"{group.name} {name} (pid {each.pid}): {said(each)}")
        if torn and not moving:
            lines.append(f"{group.name}: the ranks disagree: {torn}")
        for each in laggards(group):
            name = names.get(each.pid or -1) or f"rank {each.rank}"
            if each.missing or not moving:
                lines.append(f"{group.name}: {name} {'does not answer' if each.missing else 'is behind its peers'}")
    lines += ["the counts are rising: the ranks work"] if moving else []
    if names and report.communicators and not ours:
        lines.append("none of these processes is one of ours: another job's, or a container's own pids")
    text = "\n".join(lines) or "no communicators yet"
    return Collectives(source=SOURCE, counts=tuple(counts), text=text, moving=moving)


def said(one: Member) -> str:
    """One rank's counts in words."""
    counts = ", ".join(f"{kind} {count}" for kind, count in one.launched.items() if count) or "no collective yet"
    parts = ["missing" if one.missing else counts, one.words]
    return ", ".join(part for part in parts if part)
