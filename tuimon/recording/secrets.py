"""Events without their secrets: what a recording may keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import structs

from tuimon.launch.events import (
    AnyEvent,
    Collectives,
    CommandRun,
    Finding,
    LogText,
    Process,
    Report,
    Sample,
    ServerFound,
)
from tuimon.launch.redact import redact, redact_argv, redact_bytes

_HELD = 64 * 1024
"""Bytes of an unfinished line that wait for their end."""
_title = lru_cache(maxsize=4096)(redact)


class Censor:
    """Takes events in order and gives them back clean.

    A secret may stand across two pieces of the log: the unfinished end of a piece waits for the next one, within this
    batch and the one after it.
    """

    def __init__(self) -> None:
        self._held: LogText | None = None
        self._waited = False

    def clean(self, batch: Iterable[AnyEvent], *, last: bool = False) -> Iterator[AnyEvent]:
        """The events of a batch; `last` = nothing comes after it."""
        self._waited = self._held is not None
        for event in batch:
            if isinstance(event, LogText):
                yield from self._text(event)
            else:
                if not isinstance(event, Sample):
                    yield from self._let_go()
                yield cleaned(event)
        if last or self._waited:
            yield from self._let_go()

    def _text(self, event: LogText) -> Iterator[LogText]:
        held, self._held, self._waited = self._held, None, False
        if held is not None:
            if held.offset + len(held.text) == event.offset:
                event = structs.replace(event, offset=held.offset, text=held.text + event.text)
            else:
                yield _clean_text(held)
        cut = max(event.text.rfind(b"\n"), event.text.rfind(b"\r")) + 1
        if cut == len(event.text) or len(event.text) - cut > _HELD:
            yield _clean_text(event)
            return
        if cut:
            yield _clean_text(structs.replace(event, text=event.text[:cut]))
        self._held = structs.replace(event, offset=event.offset + cut, text=event.text[cut:])

    def _let_go(self) -> Iterator[LogText]:
        held, self._held, self._waited = self._held, None, False
        if held is not None:
            yield _clean_text(held)


def _clean_text(event: LogText) -> LogText:
    return structs.replace(event, text=redact_bytes(event.text))


def cleaned(event: AnyEvent) -> AnyEvent:
    """Any event but the log's text, without secrets."""
    match event:
        case Sample():
            return _sample(event)
        case ServerFound():
            return structs.replace(event, argv=redact_argv(event.argv), log_note=_maybe(event.log_note))
        case CommandRun():
            return structs.replace(event, command=redact(event.command), error=_maybe(event.error))
        case Finding():
            return structs.replace(event, text=redact(event.text), fix=_maybe(event.fix))
        case Collectives() | Report():
            return structs.replace(event, text=_maybe(event.text))
        case _:
            return event


def _sample(event: Sample) -> Sample:
    processes, strangers = event.processes, event.strangers
    if processes is not None and any(process.title and _title(process.title) != process.title for process in processes):
        processes = tuple(map(_process, processes))
    if strangers:
        strangers = {pid: _title(title) for pid, title in strangers.items()}
    if processes is event.processes and strangers is event.strangers:
        return event
    return structs.replace(event, processes=processes, strangers=strangers)


def _process(process: Process) -> Process:
    return process if process.title is None else structs.replace(process, title=_title(process.title))


def _maybe(text: str | None) -> str | None:
    return None if text is None else redact(text)
