"""A recording, read as far as it goes: a torn end, damage in the middle and unknown lines are said, not fatal."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard
from msgspec import Struct, structs

from tuimon.launch.events import Gap, LogReset, LogText
from tuimon.recording import form
from tuimon.recording.errors import UnreadableRecording
from tuimon.recording.form import HEADER, MAGIC, MOST_RAW, STARTS, UPGRADES, VERSION, Block, Header, Recorded

_PIECE = 1024 * 1024


class Frame(Struct):
    """A minute that can be read by itself."""

    blocks: list[Block]
    damaged: bool = False
    """Something before it could not be read."""

    @property
    def first(self) -> float:
        """`at` of its first event."""
        return self.blocks[0].first


class RecordingFile:
    """Reads a file that may still be growing, up to where it ends now. Raises UnreadableRecording."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        """What is wrong with it, each a sentence."""
        self._text = _mapped(file)
        self.header = self._header()
        self.frames: list[Frame] = []
        self._index()

    @classmethod
    def open(cls, path: Path) -> RecordingFile:
        """The recording at `path`. Raises UnreadableRecording."""
        try:
            with path.open("rb") as file:
                return cls(file, path.name)
        except OSError as error:
            raise UnreadableRecording(
                f"{path} cannot be read: {error.strerror}", "Give a recording, or a folder with samples.jsonl"
            ) from error

    def _header(self) -> Header:
        header = form.parse_header(bytes(self._text[:HEADER]))
        if header is None:
            if self._text.find(MAGIC) < 0:
                raise UnreadableRecording(
                    f"{self.name} is no recording of tuimon", "Give a .tuimon file, or a folder with samples.jsonl"
                )
            self.notes.append("its first line is damaged: host and version are unknown")
            return Header(VERSION, "unknown", 0.0)
        if header.version > VERSION or any(one not in UPGRADES for one in range(header.version, VERSION)):
            raise UnreadableRecording(
                f"{self.name} was written in version {header.version} of the format; this tuimon reads {VERSION}",
                f"Use tuimon {header.tuimon or 'of that time'}",
            )
        return header

    def _index(self) -> None:
        known = form.parse_header(bytes(self._text[:HEADER])) is not None
        offset = HEADER if known or form.block_at(self._text, HEADER) else 0
        damaged = False
        while offset < len(self._text):
            block = form.block_at(self._text, offset)
            if not isinstance(block, Block):
                start, offset = offset, self._next(offset + 1)
                self._say_hole(start, offset)
                damaged = True
                continue
            if block.flags & STARTS and form.whole(self._text, block) is not None:
                self.frames.append(Frame([block], damaged))
                damaged = False
            elif self.frames and not damaged:
                self.frames[-1].blocks.append(block)
            else:  # the beginning of its frame is lost
                damaged = True
            offset = block.offset + block.length

    def _next(self, offset: int) -> int:
        """Where the next good block begins; the end of the file where there is none."""
        while (offset := self._text.find(MAGIC, offset)) >= 0:
            block = form.block_at(self._text, offset)
            if isinstance(block, Block) and form.whole(self._text, block) is not None:
                return offset
            offset += 1
        return len(self._text)

    def _say_hole(self, start: int, end: int) -> None:
        size = end - start
        if end == len(self._text):
            self.notes.append(f"it is torn: the last {size:,} bytes are no whole block, everything before is read")
        else:
            self.notes.append(f"{size:,} bytes at {start:,} are damaged: read on behind them")

    # Reading.

    def read(self, index: int) -> list[Recorded]:
        """The events of a frame in order of time; what could not be read is a gap."""
        return list(self._events(index))

    def _events(self, index: int) -> Iterator[Recorded]:
        frame = self.frames[index]
        text, whole = self._unpacked(frame)
        last = before = self.frames[index - 1].blocks[-1].last if index else frame.first
        if frame.damaged or (index and not self._sound(index - 1)):
            last = max(last, frame.first)
            yield Gap(at=last, of="tuimon", since=before, reason="this part of the recording is damaged")
            yield LogReset(at=last, why="skipped", offset=self._text_offset(text))
        for line in text.splitlines():
            event = form.parse(line, self.header.version)
            if event is None:
                self._note("some lines mean nothing to this version of tuimon")
                continue
            if event.at < last:
                event = structs.replace(event, at=last)
            last = event.at
            yield event
        if not whole:
            self._note("a part of it is damaged: read on behind it")

    def _sound(self, index: int) -> bool:
        frame = self.frames[index]
        return all(form.whole(self._text, block) is not None for block in frame.blocks)

    def _text_offset(self, text: bytes) -> int:
        for line in text.splitlines():
            event = form.parse(line, self.header.version)
            if isinstance(event, LogText):
                return event.offset
        return 0

    def _unpacked(self, frame: Frame) -> tuple[bytes, bool]:
        """A frame's lines, and whether that is all of it."""
        payloads: list[bytes] = []
        raw = 0
        for block in frame.blocks:
            payload = form.whole(self._text, block)
            if payload is None or raw + block.raw > MOST_RAW:
                break
            payloads.append(payload)
            raw += block.raw
        text = _unzipped(b"".join(payloads), raw)
        complete = len(payloads) == len(frame.blocks) and len(text) == raw
        if not complete:
            text = text[: text.rfind(b"\n") + 1]
        return text, complete

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _mapped(file: BinaryIO) -> mmap.mmap | bytes:
    """The file's bytes without reading them; standard input and empty files cannot be mapped."""
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, io.UnsupportedOperation):
        return file.read()


def _unzipped(payload: bytes, raw: int) -> bytes:
    """At most `raw` bytes, however much the payload claims to hold."""
    pieces: list[bytes] = []
    left = raw
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(payload)) as stream:
            while left > 0 and (piece := stream.read(min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
    except zstandard.ZstdError:
        pass  # the checksums were right, so somebody made this by hand: what came out so far is what there is
    return b"".join(pieces)
