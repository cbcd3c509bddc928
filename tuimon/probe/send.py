"""What is sent to a host: a one-line command, and everything else over its stdin.

The program's modules, pynvml's source and the options (with the API key) travel compressed over stdin and live in
memory there, so nothing is written on the host and no secret stands in its process list.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct

from tuimon.probe.pruning import pruned

MARK = "tuimon-probe"
"""Stands in the command line, so that whoever lists processes on the host knows what this is."""

BOOTSTRAP = f'"{MARK}";import sys,zlib;f=sys.stdin.buffer;exec(zlib.decompress(f.read(int(f.readline()))))'
"""One line without `'`, `!` and newlines, so that every login shell passes it on unchanged."""

_LEVEL = 4
"""9 makes the payload 6 % smaller and takes 25 ms more, which somebody waits for."""


class ProbeOptions(Struct, frozen=True):
    """What the probe is told at its start."""

    interval: float = 1.0
    """Seconds between samples."""
    pid: int | None = None
    """The server's pid, instead of looking for one."""
    prefer: int | None = None
    """The pid of the launch to begin with, where it runs among others; None = the newest."""
    port: int | None = None
    log: str | None = None
    engine: str | None = None
    api_key: str | None = None
    """For the health endpoint; never printed."""
    within: int | None = None
    """Look for servers only among the descendants of this pid; None = all."""
    patience: float | None = None
    """Seconds without a word from us after which it ends by itself; None = only when its stdin ends."""


def command(python: str = "python3") -> list[str]:
    """The argument list that starts the probe; it then reads `payload` from stdin."""
    return [python, "-I", "-S", "-u", "-c", BOOTSTRAP]


def tail_command(python: str = "python3") -> list[str]:
    """The argument list that starts the tail; it then reads `tail_payload` from stdin."""
    return command(python)


def payload(options: ProbeOptions, nvml_source: bytes | None = None) -> bytes:
    """The first bytes for the probe's stdin; `nvml_source` replaces the real pynvml."""
    nvml = pynvml() if nvml_source is None else nvml_source
    return _pack("main", msgspec.to_builtins(options), zlib.compress(nvml, _LEVEL) if nvml else b"")


def tail_payload(path: str, offset: int, inode: int | None = None, patience: float | None = None) -> bytes:
    """The first bytes for the tail's stdin.

    offset: where to begin; -1 = the file's head and tail if it is large, else all of it.
    inode: the file that `offset` belongs to; where another one lies there now, it was rotated meanwhile.
    patience: as in ProbeOptions.
    """
    # Paths may hold bytes that are not UTF-8 (surrogates here); base64 carries any of them.
    raw = base64.b64encode(path.encode("utf-8", "surrogateescape")).decode()
    return _pack("tail", {"path": raw, "offset": offset, "inode": inode, "patience": patience}, b"")


def is_stream(path: str) -> bool:
    """Whether a log is no file but the output of a container, a pod, a journal, a tmux pane: `docker:NAME` …"""
    return path.startswith(("docker:", "k8s:", "journal:", "tmux:"))


def stream_payload(name: str, offset: int, mark: str | None, patience: float | None = None) -> bytes:
    """The first bytes for the stdin of the program that follows `name`; `mark` = where to go on, as it told before."""
    return _pack("stream", {"name": name, "offset": offset, "mark": mark, "patience": patience}, b"")


_NEEDED = {
    "tail": ("__init__", "forked", "tail", "speech"),
    "stream": ("__init__", "forked", "stream", "speech", "containers", "journal", "pane"),
}


def _pack(run: str, options: object, nvml: bytes) -> bytes:
    modules = _modules()
    first = _frame(zlib.compress(modules["loader"].encode(), _LEVEL))
    others = {name for names in _NEEDED.values() for name in names} - {"__init__", "forked", "speech"}
    wanted = {name: modules[name] for name in _NEEDED.get(run) or modules.keys() - others}
    parcel = json.dumps({"run": run, "modules": wanted, "options": options}).encode()
    return first + _frame(zlib.compress(parcel, _LEVEL)) + _frame(nvml)


def _frame(content: bytes) -> bytes:
    return b"%d\n" % len(content) + content


@cache
def _modules() -> dict[str, str]:
    folder = resources.files("tuimon.probe") / "program"
    files = [file for file in folder.iterdir() if file.name.endswith(".py")]
    return {file.name[:-3]: file.read_text("utf-8") for file in sorted(files, key=lambda file: file.name)}


@cache
def pynvml() -> bytes:
    """What the probe needs of pynvml's source as installed here; found, not imported (that costs 0.1 s and 16 MB)."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        return b""
    return pruned(Path(spec.origin).read_text("utf-8"), _modules()["nvml"]).encode()
