"""A look at the stacks as plain text and as JSON: what is saved, pasted into a bug tracker and printed for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuimon.diagnose.groups import Place, StackGroup, group, main_thread, name_of, short, summary, tree, wait_words
from tuimon.launch.events import RankStack, Stacks, ThreadStack, Unread

SCHEMA = "tuimon.stacks/1"


def as_text(stacks: Stacks, facts: Mapping[str, str] | None = None) -> str:
    """Everything a reader wants: facts, groups, merged tree, what could not be read, all threads."""
    groups = group(stacks)
    lines = [f"{name}: {value}" for name, value in (facts or {}).items()]
    lines += [summary(groups, len(stacks.unread)), ""]
    for item in groups:
        lines += [*group_lines(item), ""]
    if len(groups) > 1:
        lines += ["Merged call tree (calls and the ranks that have them):", *tree_lines(groups), ""]
    if stacks.unread:
        lines += ["Could not be read:", *(unread_line(item) for item in stacks.unread), ""]
    for rank in stacks.ranks:
        lines += [*rank_lines(rank), ""]
    return "\n".join(lines)


def group_lines(item: StackGroup) -> list[str]:
    """A group, innermost call first, like py-spy prints."""
    count = f"{len(item.pids)} rank{'s' if len(item.pids) != 1 else ''}" if item.peers else "pid"
    marks = [wait_words(item)] if item.waits_in else []
    marks += [f"state {item.states}"] if item.states else []
    marks += ["holds the GIL inside C code"] if item.gil_held else []
    marks += ["<== ODD ONE OUT"] if item.odd else []
    pids = ",".join(map(str, item.pids[:16])) + (",…" if len(item.pids) > 16 else "")
    head = f"{item.label}  ({count}, pid {pids})" if item.peers else f"{item.label}  (pid {pids})"
    return ["  ".join([head, *marks]), *(f"    {where(place)}" for place in item.frames)]


def where(place: Place) -> str:
    """`GroupCoordinator.barrier (sglang/srt/distributed/parallel_state.py:1753)`"""
    return f"{place.name} ({place.file}{f':{place.line}' if place.line else ''})"


def tree_lines(groups: Sequence[StackGroup]) -> list[str]:
    """The merged call tree, outermost call first."""
    return [
        f"  {'  ' * line.depth}{where(line.place)}  [{line.label}]"
        + (f"  <- {wait_words(line.group)}" if line.group and line.group.waits_in else "")
        for line in tree(groups)
    ]


def unread_line(item: Unread) -> str:
    """One process that could not be read."""
    return f"  {item.rank or 'process'} (pid {item.pid}): {item.reason}"


def rank_lines(rank: RankStack) -> list[str]:
    """All threads of one process, the main thread first."""
    main = main_thread(rank)
    others = [thread for thread in rank.threads if thread is not main]
    lines = [f"{name_of(rank)}, pid {rank.pid}, state {rank.state or '?'}, kernel {rank.wchan or '?'}"]
    for thread in [*([main] if main else []), *others]:
        lines += thread_lines(thread)
    return lines


def thread_lines(thread: ThreadStack) -> list[str]:
    """One thread, innermost call first."""
    words = {True: "active", False: "idle", None: "?"}[thread.active] + (", holds the GIL" if thread.owns_gil else "")
    head = f"  Thread {thread.tid if thread.tid is not None else '?'} ({words}) {thread.name or ''}".rstrip()
    return [head, *(f"    {frame.name} ({short(frame.file)}:{frame.line or '?'})" for frame in thread.frames)]


def as_document(stacks: Stacks, saved: str | None = None) -> dict[str, Any]:
    """The document of `tuimon stacks --json` (docs/schema/stacks.json)."""
    return {
        "schema": SCHEMA,
        "groups": [group_document(item) for item in group(stacks)],
        "unread": [{"rank": item.rank, "pid": item.pid, "reason": item.reason} for item in stacks.unread],
        "saved": saved,
    }


def group_document(item: StackGroup) -> dict[str, Any]:
    """One group; frames innermost first."""
    return {
        "label": item.label,
        "ranks": list(item.ranks),
        "pids": list(item.pids),
        "frames": [{"name": place.name, "file": place.file, "line": place.line} for place in item.frames],
        "waits_in": item.waits_in,
        "kind": item.kind,
        "odd": item.odd,
        "states": item.states,
    }
