"""How a recording is written down: a header line, then blocks of compressed JSON lines, each with length and checksum.

    one line of JSON, padded to 1,024 bytes          what, by whom, of which host; `head -1` shows it
    block: magic, flags, lengths, first and last `at`, CRC-32, payload
    block …

Each block is a flushed piece of a zstd frame, so that it can be read as soon as it is written; a frame is begun anew
each minute (`STARTS`), so that reading can begin there, and damage costs at most the rest of its minute.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from tuimon.launch.events import AnyEvent, Event

VERSION = 1
"""Raised only when older readers would misread; a new kind of event or a new field needs no new version."""
UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version → what makes one of its decoded lines a line of the next version."""
NAME = "tuimon.recording"
HEADER = 1024
"""Bytes: fixed, because the engine is only known some seconds after the file was begun."""
MAGIC = b"\xf5TmB"  # 0xf5 is in no UTF-8 text
STARTS = 1
"""Flag: this block begins a zstd frame."""
HEAD = struct.Struct("<4sBIIddI")
MOST_RAW = 64 * 1024 * 1024
"""Bytes that one frame may hold: what a reader is willing to unpack."""
FRAME_SECONDS = 60.0
FRAME_RAW = 4 * 1024 * 1024
LEVEL = 6
"""zstd level: 73 MB a day against 84 at level 1, for 90 µs a second."""
_LATEST = 1e11
"""Seconds since the epoch after which an instant is a lie (the year 5138)."""


class Header(Struct, frozen=True):
    """The first line of a file."""

    version: int
    host: str
    start: float
    """tuimon's clock."""
    engine: str | None = None
    tuimon: str | None = None
    part: int = 1
    """2 and up: goes on with the launch of a file that had grown too large."""
    format: str = NAME


class Judged(Event, frozen=True, kw_only=True, tag=True):
    """The verdict of the time, kept beside the events; replaying judges anew."""

    state: str
    kind: str | None = None
    headline: str = ""


Recorded = AnyEvent | Judged


class Block(NamedTuple):
    """A block's head, as it stands in the file."""

    offset: int
    """Of the payload, bytes."""
    flags: int
    length: int
    raw: int
    first: float
    last: float
    crc: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Recorded).decode


def line(event: Recorded) -> bytes:
    """An event as one line."""
    return _encode(event) + b"\n"


def parse(text: bytes, version: int = VERSION) -> Recorded | None:
    """The event of a line; None where a later tuimon wrote something that this one does not know."""
    try:
        if version == VERSION:
            return _sane(_decode(text))
        raw = msgspec.json.decode(text)
        for one in range(version, VERSION):
            raw = UPGRADES[one](raw)
        return _sane(msgspec.convert(raw, Recorded))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError, ValueError):
        return None


def _sane(event: Recorded) -> Recorded | None:
    return event if 0.0 <= event.at < _LATEST else None


def header_bytes(header: Header) -> bytes:
    """The header as it stands in the file. A host's name that is too long for it is cut."""
    text = _encode(header)
    if len(text) >= HEADER:
        text = _encode(msgspec.structs.replace(header, host=header.host[:100], engine=(header.engine or "")[:40]))
    return text.ljust(HEADER - 1) + b"\n"


def parse_header(text: bytes) -> Header | None:
    """The header in the first bytes of a file; None where there is none."""
    try:
        header = msgspec.json.decode(text[:HEADER], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return header if header.format == NAME else None


def block_bytes(payload: bytes, flags: int, raw: int, span: tuple[float, float]) -> bytes:
    """A block."""
    head = HEAD.pack(MAGIC, flags, len(payload), raw, *span, 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


def block_at(text: Any, offset: int) -> Block | Literal["torn"] | None:  # noqa: ANN401  bytes or an mmap
    """The block that begins at `offset`: None where none does, "torn" where the file ends in its middle."""
    if len(text) - offset < HEAD.size:
        return "torn" if bytes(text[offset : offset + len(MAGIC)]) == MAGIC[: len(text) - offset] else None
    magic, flags, length, raw, first, last, crc = HEAD.unpack_from(text, offset)
    if magic != MAGIC or raw > MOST_RAW or length > MOST_RAW:
        return None
    start = offset + HEAD.size
    if start + length > len(text):
        return "torn"
    return Block(start, flags, length, raw, first, last, crc)


def whole(text: Any, block: Block) -> bytes | None:  # noqa: ANN401  bytes or an mmap
    """The payload of a block; None where its checksum is wrong."""
    payload = bytes(text[block.offset : block.offset + block.length])
    head = bytes(text[block.offset - HEAD.size : block.offset - 4])
    return payload if zlib.crc32(payload, zlib.crc32(head)) == block.crc else None
