"""Reads a checkpoint's description, here or on a host: config.json and safetensors headers, never the weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from tuimon.diagnose import sent
from tuimon.diagnose.errors import BadCheckpoint
from tuimon.diagnose.on_host import headers as reader
from tuimon.diagnose.pyspy import clean
from tuimon.diagnose.safetensors import Tensor, json_object, parse_header
from tuimon.hosts.host import Host

LIMIT = 256 << 20
TIMEOUT = 60.0
INDEX = "model.safetensors.index.json"
CORRECT = "Correct it or download it again"


class Checkpoint(Struct, frozen=True):
    """What a checkpoint says of itself."""

    path: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    """By key; empty where headers were not read."""
    torn: tuple[str, ...] = ()
    """Files that end before their weights do."""
    other_weights: tuple[str, ...] = ()
    """`*.bin` and `*.pt` files, which cannot be checked without running them."""
    duplicates: tuple[str, ...] = ()
    """Keys that are in more than one file."""


Frames = Iterable[tuple[dict[str, Any], bytes]]


def read_local(path: str, *, headers: bool = True, pid: int | None = None) -> Checkpoint:
    """A checkpoint on this machine. Raises BadCheckpoint."""
    return assemble(path, reader.frames({"path": path, "pid": pid, "headers": headers}))  # type: ignore[no-untyped-call]  # runs on Python 3.6


async def read(host: Host, path: str, *, headers: bool = True, pid: int | None = None) -> Checkpoint:
    """A checkpoint on a host; `pid` is the server that loads it. Raises BadCheckpoint, HostUnreachable."""
    options = {"path": path, "pid": pid, "headers": headers}
    done = await sent.run(host, "headers", options, timeout=TIMEOUT, limit=LIMIT)
    if not done.stdout:
        said = clean(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        raise BadCheckpoint(f"{path} cannot be read on {host.name}: {said or f'exit {done.exit}'}", "It needs python3")
    return assemble(path, sent.frames(done.stdout))


def assemble(path: str, found: Frames) -> Checkpoint:
    """Put the frames together. Raises BadCheckpoint."""
    files: dict[str, int] = {}
    contents: dict[str, bytes] = {}
    done = False
    for head, content in found:
        if "folder" in head:
            files = names_and_sizes(head.get("files"))
        elif "done" in head:
            done = True
        elif head.get("error"):
            where = f"{path}/{head['name']}" if "name" in head else path
            raise BadCheckpoint(f"{where} cannot be read: {clean(str(head['error']))}", "Check the path and the rights")
        else:
            contents[str(head.get("name"))] = content
    if not done:
        raise BadCheckpoint(f"{path} cannot be read: the answer broke off")
    if "config.json" not in contents:
        raise BadCheckpoint(f"{path} has no config.json", "Give the folder of a checkpoint")
    config = json_object(f"{path}/config.json", contents.pop("config.json"), CORRECT)
    check_index(path, contents.pop(INDEX, None), files)
    return with_tensors(path, config, contents, files)


def names_and_sizes(listed: object) -> dict[str, int]:
    """The folder's files."""
    pairs = listed if isinstance(listed, list) else []
    return {
        str(pair[0]): int(pair[1])
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], int)
    }


def check_index(path: str, content: bytes | None, files: dict[str, int]) -> None:
    """Every shard that the index names must be there. Raises BadCheckpoint."""
    if content is None:
        return
    where = json_object(f"{path}/{INDEX}", content, CORRECT).get("weight_map")
    shards = {str(name) for name in where.values()} if isinstance(where, dict) else set()
    missing = sorted(shards - files.keys())
    if missing:
        names = ", ".join(clean(name) for name in missing[:3]) + (" …" if len(missing) > 3 else "")
        raise BadCheckpoint(
            f"{path} lacks {len(missing)} of {len(shards)} shards that its index names: {names}",
            "Copy or download them",
        )


def with_tensors(path: str, config: dict[str, Any], contents: dict[str, bytes], files: dict[str, int]) -> Checkpoint:
    """The checkpoint with all headers read. Raises BadCheckpoint."""
    tensors: dict[str, Tensor] = {}
    torn, twice = [], []
    for name, content in contents.items():
        found = parse_header(f"{name}", content, files.get(name, len(content)))
        twice += [key for key in found.tensors if key in tensors]
        tensors.update(found.tensors)
        torn += [f"{name} ({found.missing} bytes are missing)"] if found.missing else []
    other = tuple(sorted(name for name in files if name.endswith((".bin", ".pt", ".pth"))))
    return Checkpoint(path, config, tensors, tuple(torn), other, tuple(twice))
