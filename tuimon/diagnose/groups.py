"""Ranks whose main threads stand in the same place are one group; both sides of a hang are shown, the odd one marked.

Pure. A minority is a suspect, not a verdict: where some ranks wait in a collective, those that do not are the ones that
never came; where all wait in collectives but different ones, the ranks disagree and nobody is singled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from tuimon.diagnose.ranges import compact
from tuimon.diagnose.targets import RANK, natural
from tuimon.diagnose.waits import Wait, waits_in
from tuimon.launch.events import Frame, RankStack, Stacks, ThreadStack

_PLUMBING = re.compile(
    r"^<(?:string|frozen [\w.]+)>$|(?:^|/)(?:multiprocessing/(?:process|spawn|popen_\w+|forkserver|context)|runpy"
    r"|importlib/\w+|contextlib|concurrent/futures/thread|asyncio/(?:runners|base_events|events)|uvloop/__init__|torch/utils/_contextlib"
    r"|torch/nn/modules/module|click/core|typer/\w+|wrapt/\w+)\.py$"
)
_BOOTSTRAP = re.compile(r"^(?:Thread\.)?(?:_bootstrap|_bootstrap_inner|run)$")
_ENGINE = re.compile(r"(?:^|/)(?:sglang|vllm|tensorrt_llm|sgl_kernel|deepspeed|megatron|transformers)/")
_SHORT = re.compile(
    r"^.*(?:(?:site|dist)-packages|lib/python[\d.]+)/(.+)$|^.*/((?:sglang|vllm|torch|transformers)/.+)$"
)
MAX_PIECES = 4
"""Ranks in one function on more different lines than this are in a loop: one group, without line numbers."""


class Place(Struct, frozen=True):
    """One frame as it is shown."""

    name: str
    file: str
    """Short: `sglang/srt/managers/scheduler.py`."""
    line: int | None
    """None where the group's ranks stand on different lines."""
    engine: bool
    """A frame of the engine itself: worth the eye."""


class StackGroup(Struct, frozen=True):
    """Ranks that stand in the same place."""

    label: str
    """`TP[0-2,4-7]`"""
    ranks: tuple[str, ...]
    pids: tuple[int, ...]
    frames: tuple[Place, ...]
    """The main thread, innermost first, plumbing left out."""
    waits_in: str | None
    """In words: `in a collective: all_reduce`; None where it runs or nobody knows."""
    kind: str | None = None
    """collective, gpu, lock, socket … of `waits_in`."""
    odd: bool = False
    """A suspect: it is not where its peers wait for it, or it is the minority."""
    states: str = ""
    """State letters of the main threads."""
    gil_held: bool = False
    """The main thread holds the GIL while it is idle: it hangs inside C code."""
    peers: bool = True
    """Ranks among peers; False for launcher, detokenizer and the like, which always stand elsewhere."""


class TreeLine(Struct, frozen=True):
    """One line of the merged call tree, outermost call first."""

    depth: int
    place: Place
    label: str
    """Ranks that have this call."""
    count: int
    group: StackGroup | None
    """The group that ends here."""


def group(stacks: Stacks) -> tuple[StackGroup, ...]:
    """The groups, suspects first, then by size, smallest first; launcher and the like last."""
    peers = peers_of(stacks.ranks)
    classes: dict[object, list[RankStack]] = {}
    for rank in stacks.ranks:
        classes.setdefault((rank.pid in peers, coarse(rank)), []).append(rank)
    members = [piece for ranks in classes.values() for piece in by_line(ranks)]
    groups = mark([describe(ranks, ranks[0].pid in peers) for ranks in members])
    return tuple(sorted(groups, key=lambda item: (not item.peers, not item.odd, len(item.pids), natural(item.label))))


def main_thread(rank: RankStack) -> ThreadStack | None:
    """The one whose id is the pid, else the one so called, else the last (py-spy's order)."""
    by_id = [thread for thread in rank.threads if thread.tid == rank.pid]
    by_name = [thread for thread in rank.threads if thread.name == "MainThread"]
    return next(iter([*by_id, *by_name, *reversed(rank.threads)]), None)


def visible(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Without the interpreter's plumbing; everything where nothing else would be left."""
    return tuple(frame for frame in frames if not plumbing(frame)) or tuple(frames)


def plumbing(frame: Frame) -> bool:
    """A frame that every Python program has."""
    file = frame.file or ""
    return bool(_PLUMBING.search(file)) or (file.endswith("threading.py") and bool(_BOOTSTRAP.search(frame.name)))


def short(file: str | None) -> str:
    """A file name that fits a line: from the package on, else the last three parts."""
    found = _SHORT.search(file or "")
    if found:
        return found[1] or found[2]
    return "/".join((file or "?").split("/")[-3:])


def coarse(rank: RankStack) -> object:
    """First key: whether it is stopped, names and files."""
    thread = main_thread(rank)
    frames = visible(thread.frames) if thread else ()
    return rank.state in {"T", "t"}, tuple((frame.name, short(frame.file)) for frame in frames)


def by_line(ranks: Sequence[RankStack]) -> list[list[RankStack]]:
    """Second key: line numbers, unless the ranks are scattered over a loop."""
    pieces: dict[object, list[RankStack]] = {}
    for rank in ranks:
        thread = main_thread(rank)
        pieces.setdefault(tuple(frame.line for frame in visible(thread.frames)) if thread else (), []).append(rank)
    few = min(MAX_PIECES, max(2, len(ranks) // 2))
    return list(pieces.values()) if len(pieces) <= few else [list(ranks)]


def peers_of(ranks: Sequence[RankStack]) -> frozenset[int]:
    """Pids of ranks among ranks; where no title tells a rank (torchrun), all that have no name of their own."""
    named = frozenset(rank.pid for rank in ranks if rank.rank and RANK.search(rank.rank))
    return named or frozenset(rank.pid for rank in ranks if rank.rank is None)


def name_of(rank: RankStack) -> str:
    """The rank's name, or its pid."""
    return rank.rank or f"pid {rank.pid}"


def describe(ranks: Sequence[RankStack], peers: bool) -> StackGroup:
    """One group, not yet marked."""
    ordered = sorted(ranks, key=lambda rank: natural(name_of(rank)))
    threads = [thread for thread in map(main_thread, ordered) if thread is not None]
    stacks = [visible(thread.frames) for thread in threads]
    wait = common_wait(ordered)
    return StackGroup(
        label=compact(name_of(rank) for rank in ordered),
        ranks=tuple(name_of(rank) for rank in ordered),
        pids=tuple(rank.pid for rank in ordered),
        frames=tuple(place(same) for same in zip(*stacks, strict=True)) if stacks else (),
        waits_in=wait.words if wait else None,
        kind=wait.kind if wait else None,
        states="".join(sorted({rank.state for rank in ordered if rank.state})),
        gil_held=any(thread.owns_gil and thread.active is False for thread in threads),
        peers=peers,
    )


def common_wait(ranks: Sequence[RankStack]) -> Wait | None:
    """What the group waits in: the first member that can tell."""
    for rank in ranks:
        thread = main_thread(rank)
        wait = waits_in(thread.frames if thread else (), rank.state, rank.wchan)
        if wait is not None:
            return wait
    return None


def place(frames: Sequence[Frame]) -> Place:
    """The same call of several ranks."""
    first = frames[0]
    line = first.line if all(frame.line == first.line for frame in frames) else None
    return Place(first.name, short(first.file), line, bool(_ENGINE.search(first.file or "")))


def mark(groups: Sequence[StackGroup]) -> list[StackGroup]:
    """Mark the odd ones among the peers."""
    peers = [item for item in groups if item.peers]
    odd = {id(item) for item in suspects(peers)}
    return [msgspec.structs.replace(item, odd=True) if id(item) in odd else item for item in groups]


def suspects(peers: Sequence[StackGroup]) -> list[StackGroup]:
    """Stopped ones; else those missing from the collective; else the minority. None where all are alike or disagree."""
    stopped = [item for item in peers if item.kind == "stopped"]
    if stopped:
        return stopped
    for inside in ({"collective", "rendezvous"}, {"gpu"}):  # a GPU sync usually waits for a collective launched before
        if any(item.kind in inside for item in peers):
            return [item for item in peers if item.kind not in inside]
    total = sum(len(item.pids) for item in peers)
    return [item for item in peers if len(item.pids) * 2 < total]


def disagree(groups: Iterable[StackGroup]) -> bool:
    """All peers wait in collectives, but in different ones: no single culprit."""
    peers = [item for item in groups if item.peers]
    return len({item.waits_in for item in peers}) > 1 and all(item.kind == "collective" for item in peers)


def tree(groups: Sequence[StackGroup]) -> tuple[TreeLine, ...]:
    """The merged call tree, outermost call first; calls that several groups share are written once."""
    lines: list[TreeLine] = []

    def grow(here: Sequence[StackGroup], depth: int) -> None:
        branches: dict[Place, list[StackGroup]] = {}
        for item in here:
            if depth < len(item.frames):
                branches.setdefault(item.frames[-1 - depth], []).append(item)
        for at, members in branches.items():
            ends = next((item for item in members if len(item.frames) == depth + 1), None)
            ranks = [rank for item in members for rank in item.ranks]
            lines.append(TreeLine(depth, at, compact(sorted(ranks, key=natural)), len(ranks), ends))
            grow(members, depth + 1)

    grow(groups, 0)
    return tuple(lines)


def summary(groups: Sequence[StackGroup], unread: int = 0) -> str:
    """One line: `8 ranks in 2 groups: TP[0-2,4-7] in a collective: barrier · TP3 for a lock (odd one out)`."""
    if not groups:
        return f"no stack could be read ({unread} tried)" if unread else "no stacks"
    peers = [item for item in groups if item.peers] or list(groups)
    count = sum(len(item.pids) for item in peers)
    parts = [
        f"{item.label} {wait_words(item)}{' (odd one out)' if item.odd else ''}"
        for item in sorted(peers, key=lambda item: -len(item.pids))
    ]
    head = f"{count} rank{'s' if count != 1 else ''} in {len(peers)} group{'s' if len(peers) != 1 else ''}: "
    note = " · the ranks disagree: different collectives, no single culprit" if disagree(groups) else ""
    return head + " · ".join(parts) + note + (f" · {unread} unread" if unread else "")


def wait_words(item: StackGroup) -> str:
    """What the group does, in words that follow a name."""
    if item.waits_in is None:
        return f"in {item.frames[0].name}" if item.frames else "without Python frames"
    starts = item.waits_in.split(" ", 1)[0]
    return f"waits {item.waits_in}" if starts in {"for", "in"} else item.waits_in


def moved(before: Stacks, after: Stacks) -> bool | None:
    """Whether any main thread stands elsewhere than before; None where no process is in both."""
    pairs = [(one, other) for one in before.ranks for other in after.ranks if one.pid == other.pid]
    if not pairs:
        return None
    return any(frames_of(one) != frames_of(other) for one, other in pairs)


def frames_of(rank: RankStack) -> tuple[Frame, ...]:
    """The main thread's frames."""
    thread = main_thread(rank)
    return thread.frames if thread else ()
