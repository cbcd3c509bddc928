"""What a watch that begins only now would learn first: link, server, and the beginning of its log.

A later part of a recording begins with it, and so does a look into the middle of one.
"""

from __future__ import annotations

from msgspec import structs

from tuimon.launch.events import Linked, LogReset, LogText, ServerFound, Unlinked
from tuimon.recording.form import Recorded

HEAD = 1024 * 1024
"""Bytes of the log's beginning that are told again: its milestones."""


class Opening:
    """Remembers it from the events that go by."""

    def __init__(self) -> None:
        self.server: ServerFound | None = None
        self._link: Linked | Unlinked | None = None
        self._head: list[LogText] = []
        self._head_bytes = 0
        self._text_end = 0

    def same(self, event: ServerFound) -> bool:
        """The server that is known, told again (as `Launch` sees it)."""
        return event.same(self.server)

    def remember(self, event: Recorded) -> None:
        """Keep what must be told first after this."""
        match event:
            case Linked() | Unlinked():
                self._link = event
            case ServerFound():
                if not self.same(event):
                    self._forget_log()
                self.server = event
            case LogText():
                if self._head_bytes + len(event.text) <= HEAD and self._goes_on(event):
                    self._head.append(event)
                    self._head_bytes += len(event.text)
                self._text_end = event.offset + len(event.text)
            case LogReset() if event.why in {"rotated", "truncated"}:
                self._forget_log()
            case _:
                pass

    def forget(self) -> None:
        """Another launch begins."""
        self.server = None
        self._forget_log()

    def _forget_log(self) -> None:
        self._head, self._head_bytes, self._text_end = [], 0, 0

    def _goes_on(self, event: LogText) -> bool:
        return not self._head or self._head[-1].offset + len(self._head[-1].text) == event.offset

    def told(self, at: float, text_from: int | None = None) -> list[Recorded]:
        """It as events at `at`; `text_from` = where the log goes on after them, where that is not where it ended."""
        events: list[Recorded] = []
        if self._link is not None:
            events.append(structs.replace(self._link, at=at))
        known = self.server
        if known is None:
            return events
        age = None if known.age is None else known.age + at - known.at
        events.append(structs.replace(known, at=at, age=age))
        events += [structs.replace(text, at=at, age=(text.age or 0.0) + at - text.at) for text in self._head]
        end = self._head[-1].offset + len(self._head[-1].text) if self._head else 0
        goes_on = self._text_end if text_from is None else text_from
        if goes_on > end:
            events.append(LogReset(at=at, why="skipped", offset=goes_on, skipped=goes_on - end))
        return events
