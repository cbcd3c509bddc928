"""Reads what py-spy prints, JSON or text. Foreign bytes: anything may be missing, wrong or huge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tuimon.launch.events import Frame, ThreadStack

MAX_THREADS = 512
MAX_FRAMES = 256
"""A stack deeper than this is a runaway recursion: the innermost 128 and the outermost 128 tell it."""
MAX_TEXT = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def parse_json(output: bytes) -> tuple[ThreadStack, ...] | None:
    """The threads of `py-spy dump --json`, the main thread last; None where this is not its output."""
    try:
        found = msgspec.json.decode(output)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not isinstance(found, list):
        return None
    threads = [thread(entry) for entry in found[-MAX_THREADS:] if isinstance(entry, dict)]
    return tuple(threads)


def thread(entry: Mapping[str, Any]) -> ThreadStack:
    """One thread of the JSON."""
    frames = entry.get("frames")
    entries = shorten([item for item in frames if isinstance(item, dict)] if isinstance(frames, list) else [])
    name, tid = entry.get("thread_name"), entry.get("os_thread_id")
    return ThreadStack(
        name=clean(name) if isinstance(name, str) else None,
        frames=tuple(frame(item) for item in entries),
        tid=number(tid),
        active=truth(entry.get("active")),
        owns_gil=truth(entry.get("owns_gil")),
    )


def frame(entry: Mapping[str, Any]) -> Frame:
    """One frame of the JSON; native frames have a module instead of a file."""
    name, file, line = entry.get("name"), entry.get("filename"), entry.get("line")
    if not isinstance(file, str) or not file:
        file = entry.get("module")
    return Frame(
        name=clean(name) if isinstance(name, str) else "?",
        file=clean(file) if isinstance(file, str) and file else None,
        line=number(line),
    )


def number(value: object) -> int | None:
    """A whole number of a size that a pid or a line can have, or unknown; 0 is unknown too."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 32 else None


def truth(value: object) -> bool | None:
    """True, False, or unknown."""
    return value if isinstance(value, bool) else None


def printable(text: str) -> str:
    """Many lines of which none can move a terminal's cursor."""
    return "\n".join(_CONTROL.sub("�", line) for line in text.split("\n"))


def clean(text: str) -> str:
    """Printable text of bounded length: frame names come from a stranger's memory."""
    return _CONTROL.sub("�", text[:MAX_TEXT])


def shorten(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both ends of an overlong stack."""
    if len(frames) <= MAX_FRAMES:
        return frames
    left_out = len(frames) - MAX_FRAMES
    half = MAX_FRAMES // 2
    return [*frames[:half], {"name": f"… {left_out} frames left out"}, *frames[-half:]]


_THREAD = re.compile(r'^Thread (0x[0-9A-Fa-f]{1,16}|\d{1,10}) \(([a-z+]{1,20})\)(?:: "(.{0,300})")?\s*$')
_FRAME = re.compile(r"^ {4}(\S.{0,400}?) \(([^()]{1,400}?)(?::(\d{1,9}))?\)\s*$")


def parse_text(output: str) -> tuple[ThreadStack, ...]:
    """The threads of plain `py-spy dump`, in the JSON's order (main thread last)."""
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    head: tuple[str, str, str | None] | None = None
    for line in [*output.splitlines(), "Thread 0 (end)"]:
        begins = _THREAD.match(line)
        if begins is None:
            found = _FRAME.match(line)
            if found and head and len(frames) < MAX_FRAMES:
                frames.append(Frame(clean(found[1]), clean(found[2]), int(found[3]) if found[3] else None))
            continue
        if head is not None:
            threads.append(text_thread(head, tuple(frames)))
        head, frames = (begins[1], begins[2], begins[3]), []
    main = [item for item in threads if item.name == "MainThread"]
    return tuple(item for item in threads[:MAX_THREADS] if item not in main) + tuple(main[:1])


def text_thread(head: tuple[str, str, str | None], frames: tuple[Frame, ...]) -> ThreadStack:
    """One thread of the text form; "(idle)" hides a GIL held in C, so it says nothing about the GIL."""
    tid, state, name = head
    return ThreadStack(
        name=clean(name) if name else None,
        frames=frames,
        tid=int(tid) if tid.isdigit() else None,
        active=state.startswith("active"),
        owns_gil=True if "gil" in state else None,
    )
