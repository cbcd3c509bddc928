"""The header of a safetensors file: 8 bytes of length, JSON, then the weights, which are never read."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from tuimon.diagnose.errors import BadCheckpoint

HEADER_LIMIT = 64 << 20
"""Bytes; the longest header that the reading program sends."""
MAX_DIMENSIONS = 16


class Tensor(Struct, frozen=True):
    """One tensor as the header tells it."""

    dtype: str
    shape: tuple[int, ...]
    file: str


class Header(Struct, frozen=True):
    """What one file holds."""

    tensors: dict[str, Tensor]
    missing: int
    """Bytes that the file lacks at its end (a torn download); 0 where it is whole."""


def parse_header(name: str, start: bytes, size: int) -> Header:
    """Read a header; `start` are the file's first bytes, `size` its length. Raises BadCheckpoint."""
    if size < 8 or len(start) < 8:
        raise BadCheckpoint(f"{name} is {size} bytes long: no safetensors file", "Copy or download it again")
    length = int.from_bytes(start[:8], "little")
    if length > HEADER_LIMIT or length > size - 8:
        raise BadCheckpoint(
            f"{name} claims a header of {length} bytes and is {size} bytes long: it is cut off or no safetensors file",
            "Copy or download it again",
        )
    if len(start) < 8 + length:
        raise BadCheckpoint(f"{name} ends within its header", "Copy or download it again")
    entries = json_object(f"The header of {name}", start[8 : 8 + length], "Copy or download it again")
    tensors, end = {}, 0
    for key, entry in entries.items():
        if key == "__metadata__":
            continue
        tensors[key], last = tensor(name, key, entry)
        end = max(end, last)
    return Header(tensors, max(0, 8 + length + end - size))


def json_object(what: str, content: bytes, advice: str) -> dict[str, Any]:
    """JSON that must hold an object. Raises BadCheckpoint, which says `advice`."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCheckpoint(f"{what} is no JSON ({error})", advice) from error
    if not isinstance(found, dict):
        raise BadCheckpoint(f"{what} is no JSON object", advice)
    return found


def tensor(name: str, key: str, entry: object) -> tuple[Tensor, int]:
    """One entry and the offset at which its bytes end. Raises BadCheckpoint."""
    fields = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    sound = (
        isinstance(dtype, str)
        and isinstance(shape, list)
        and len(shape) <= MAX_DIMENSIONS
        and all(is_size(each) for each in shape)
        and isinstance(offsets, list)
        and len(offsets) == 2
        and all(is_size(each) for each in offsets)
    )
    if not sound or offsets is None or shape is None:
        raise BadCheckpoint(f"The header of {name} describes {key[:80]!r} in a way that is not safetensors'")
    return Tensor(str(dtype)[:20], tuple(shape), name), offsets[1]


def is_size(value: object) -> bool:
    """A whole number that a size can be."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
