"""The probe's bytes → its lines → events. A host may send anything: lines are bounded, nonsense is counted."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tuimon.hosts.quoting import quoted
from tuimon.launch.events import Finding, Health, Launches, Metrics, Sample, ServerFound, ServerGone

LONGEST = 4 << 20
"""Bytes; a sample of 2,000 processes is about 1 MB."""

GREETING = 200
"""Lines that a login shell may print before the first event."""

Reported = ServerFound | ServerGone | Launches | Sample | Health | Metrics | Finding
"""What a probe may say; the rest of the events is not a host's to tell."""

_decoder = msgspec.json.Decoder(Reported)


class Lines:
    """Splits a stream into events."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._dropping = False
        self._begun = False
        self._noise = 0
        self.garbage = 0
        """Lines that were no events. A login shell may print some before the first event; these do not count."""
        self.example = ""
        """The first line that was none, cut."""

    def feed(self, piece: bytes) -> Iterator[Reported]:
        """The events that are complete now."""
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._take(part)
            line = bytes(self._pending)
            self._pending.clear()
            if self._dropping:
                self._dropping = False
            elif line.strip():
                event = self._decode(line)
                if event is not None:
                    yield event
        self._take(rest)

    def _take(self, part: bytes) -> None:
        if self._dropping:
            return
        self._pending += part
        if len(self._pending) > LONGEST:
            self._dropping = True
            self._count(bytes(self._pending[:200]))
            self._pending.clear()

    def _decode(self, line: bytes) -> Reported | None:
        try:
            event = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._count(line)
            return None
        self._begun = True
        return event

    def _count(self, line: bytes) -> None:
        self._noise += 1
        if self._begun or self._noise > GREETING:
            self.garbage += 1
        if not self.example:
            self.example = quoted(line[:200])
