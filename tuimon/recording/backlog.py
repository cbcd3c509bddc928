"""What waits to be written: bounded, and what did not fit is counted, never silently lost."""

from __future__ import annotations

import threading
from collections import deque

from msgspec import Struct

from tuimon.launch.events import AnyEvent, Gap, LogReset, LogText, Sample

MOST = 32 * 1024 * 1024
"""Bytes, estimated: half an hour of samples of a large host."""
_RARE = 4
"""Rare events are still taken when samples and text no longer are."""


class Lost(Struct):
    """What did not fit."""

    since: float
    events: int = 0
    text: int = 0
    """Bytes of the log."""
    offset: int = 0
    """Where the log goes on."""


class Backlog:
    """Filled on the collector's thread in no time, emptied on the recorder's."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._events: deque[AnyEvent] = deque()
        self._weight = 0
        self._lost: Lost | None = None
        self._news = threading.Condition()
        self._ended = False

    def put(self, event: AnyEvent) -> None:
        """Take an event, or count it as lost."""
        weight = weigh(event)
        common = isinstance(event, Sample | LogText)
        with self._news:
            room = self._weight + weight <= (self._most if common else _RARE * self._most)
            # A log may not go on behind a hole that is not told: everything waits for the next take.
            if room and not (common and self._lost is not None):
                self._events.append(event)
                self._weight += weight
            else:
                self.lose(event)
            if len(self._events) <= 1:
                self._news.notify()

    def lose(self, event: AnyEvent) -> None:
        """Count an event that will not be written."""
        lost = self._lost = self._lost or Lost(event.at)
        lost.events += 1
        if isinstance(event, LogText):
            lost.text += len(event.text)
            lost.offset = event.offset + len(event.text)

    def end(self) -> None:
        """Nothing comes after this."""
        with self._news:
            self._ended = True
            self._news.notify()

    @property
    def ended(self) -> bool:
        """`end` was called."""
        return self._ended

    def wait(self, timeout: float | None) -> None:
        """Until there is something to write, or the end."""
        with self._news:
            self._news.wait_for(lambda: bool(self._events) or self._ended or self._lost is not None, timeout)

    def rest(self, timeout: float) -> None:
        """Let more come, unless it is the end."""
        with self._news:
            self._news.wait_for(lambda: self._ended, timeout)

    def take(self) -> tuple[list[AnyEvent], Lost | None]:
        """Everything that waits, and what was lost after it."""
        with self._news:
            events, lost = list(self._events), self._lost
            self._events.clear()
            self._weight, self._lost = 0, None
            return events, lost


def weigh(event: AnyEvent) -> int:
    """About how many bytes an event holds in memory."""
    match event:
        case LogText():
            return 200 + len(event.text)
        case Sample():
            return 500 + 900 * len(event.processes or ()) + 600 * len(event.gpus or ())
        case _:
            return 2000


def told(lost: Lost, at: float, why: str) -> list[AnyEvent]:
    """A hole as events: what was not written, and that the log does not go on where it was."""
    told: list[AnyEvent] = [Gap(at=at, of="tuimon", since=lost.since, reason=f"{why}: {lost.events} events missing")]
    if lost.text:
        told.append(LogReset(at=at, why="skipped", offset=lost.offset, skipped=lost.text))
    return told
