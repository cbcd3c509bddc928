"""Our small programs on a host: sent over stdin, one JSON line of options, an answer on stdout. Nothing stays there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import msgspec

from tuimon.hosts.host import Completed, Host

BOOTSTRAP = '"tuimon-dump";import sys;f=sys.stdin.buffer;exec(f.read(int(f.readline())))'
"""One line without `'`, `!` and newlines, so that every login shell passes it on unchanged; it names itself in `ps`."""
LIMIT = 64 << 20
"""Bytes that one frame may promise."""


async def run(host: Host, name: str, options: Mapping[str, Any], *, timeout: float, limit: int = LIMIT) -> Completed:
    """Run `on_host/NAME.py` there. Raises CommandTimedOut, HostUnreachable."""
    source = resources.files("tuimon.diagnose.on_host").joinpath(f"{name}.py").read_bytes()
    stdin = b"%d\n%s%s\n" % (len(source), source, json.dumps(options).encode())
    command = [getattr(host, "python", "python3"), "-I", "-u", "-c", BOOTSTRAP]
    return await host.run(command, stdin=stdin, timeout=timeout, limit=limit)


def header(line: bytes) -> dict[str, Any] | None:
    """A frame's header, None where it is not one."""
    head = json_object(line)
    if head is None or not isinstance(head.get("length"), int) or not 0 <= head["length"] <= LIMIT:
        return None
    return head


def json_object(text: bytes) -> dict[str, Any] | None:
    """A JSON object; None where it is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def frames(output: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """A program's output taken apart, each frame a header line and its bytes; it ends where the output is torn."""
    at = 0
    while at < len(output):
        end = output.find(b"\n", at)
        head = header(output[at:end]) if end >= 0 else None
        if head is None or end + 1 + head["length"] > len(output):
            return
        yield head, output[end + 1 : end + 1 + head["length"]]
        at = end + 1 + head["length"]
