"""Who is behind, as each look tells it: the stacks, NCCL's own counts, a flight recorder. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from tuimon.diagnose.groups import group, wait_words
from tuimon.launch.events import Collectives, Stacks


class Named(Struct, frozen=True):
    """A rank that one look names."""

    rank: str
    pid: int | None
    source: str
    """`stacks`, `NCCL RAS`, `flight recorder`."""
    reason: str


def named(stacks: Stacks | None, collectives: Iterable[Collectives]) -> tuple[Named, ...]:
    """The ranks that each look names, collectives first: they count, stacks only compare."""
    counted = [each for event in collectives for each in behind(event)]
    return (*counted, *odd_ones(stacks or Stacks()))


def behind(event: Collectives) -> Iterator[Named]:
    """Ranks that do not answer, or launched less than their peers; each once."""
    seen: set[tuple[str, int | None]] = set()
    for name in dict.fromkeys(count.communicator for count in event.counts):
        counts = [count for count in event.counts if count.communicator == name]
        most = max((count.launched for count in counts if count.launched is not None), default=None)
        for count in counts:
            less = not event.moving and most is not None and count.launched is not None and count.launched < most
            if (count.missing or less) and (count.rank, count.pid) not in seen:
                seen.add((count.rank, count.pid))
                reason = "does not answer" if count.missing else f"launched {count.launched} of {most} collectives"
                yield Named(count.rank, count.pid, event.source, reason)


def odd_ones(stacks: Stacks) -> Iterator[Named]:
    """Ranks that do not stand where their peers do."""
    for item in group(stacks):
        if item.odd:
            for rank, pid in zip(item.ranks, item.pids, strict=True):
                yield Named(rank, pid, "stacks", wait_words(item))


def disagreements(collectives: Iterable[Collectives]) -> tuple[str, ...]:
    """What says that the ranks are in different collectives: no single culprit."""
    lines = [line for event in collectives for line in (event.text or "").splitlines()]
    return tuple(line for line in lines if "the ranks disagree: " in line or "the ranks part at " in line)
