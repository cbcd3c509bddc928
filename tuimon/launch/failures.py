"""What went wrong, by the log: the first error with its cause line, and what is only its aftermath.

A traceback alone proves nothing (SGLang starts with one of an optional import): it counts as the error until the launch
goes on after it. One death prints up to 150 error lines; the cause is the last line of the first block.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from tuimon.engines.matching import Found, Matcher
from tuimon.engines.prefix import Prefix, parse
from tuimon.launch.logbook import plain
from tuimon.launch.told import LogError

_TRACEBACK = b"Traceback (most recent call last):"
_INSIDE = (b" ", b"\t", b"^", _TRACEBACK, b"During handling of", b"The above exception", b"+ ", b"| ")
_EXCEPTION = re.compile(rb"[A-Za-z_][\w.]*(?:: |:$|$)")
_LONGEST_BLOCK = 2000  # lines; a recursion error prints 1000 frames
_MOST = 64
_NEAR = 400  # lines between a bare traceback and the fatal line that it explains
_SHOWN = 600  # characters


class Failure(Struct):
    """One error of the log."""

    line: int
    text: str
    kind: str
    at: float
    fatal: bool
    consequence: bool
    advice: str | None = None
    rank: str | None = None
    pid: int | None = None
    dismissed: bool = False

    def told(self) -> LogError:
        """As the judge gets it."""
        return LogError(self.line, self.text, self.kind, self.at, self.fatal, self.advice, self.rank, self.pid)


class _Block(Struct):
    """A traceback whose end has not come yet."""

    failure: Failure | None
    """The error that announced it."""
    lines: int = 0
    traced: bool = False
    """The traceback itself has begun."""


class Failures:
    """Collects the errors of one launch; bounded."""

    def __init__(self) -> None:
        self._all: list[Failure] = []
        self._open: dict[str, _Block] = {}
        self._standing = False
        self.closed = False
        """A shutdown was asked for: what follows is its aftermath."""

    @property
    def waiting(self) -> bool:
        """A traceback is open: every line must be shown to `inside`."""
        return bool(self._open)

    def line(self, found: Found, number: int, at: float) -> None:
        """A line of a rule with severity error or fatal."""
        if self.closed:
            return
        key = _stream(found.prefix)
        message = found.message
        if found.rule.name == "traceback":
            announced = self._open.get(key)
            fresh = announced is not None and announced.lines <= 1
            self._open[key] = _Block(announced.failure if announced is not None and fresh else None, traced=True)
            return
        failure = _failure(found, number, at)
        self._add(failure)
        if found.rule.role == "intro":
            self._open[key] = _Block(failure, traced=_TRACEBACK in message)

    def inside(self, line: bytes, number: int, at: float, matcher: Matcher) -> bool:
        """Any line while a traceback is open; True where it was the exception line that ends it."""
        message, parts = parse(line)
        key = _stream(parts)
        block = self._open.get(key)
        if block is None or (key == "" and parts.stamp is not None):
            return False
        block.lines += 1
        if message.startswith(_INSIDE) or not message.strip():
            if block.lines > _LONGEST_BLOCK:
                del self._open[key]
            return False
        if not block.traced:
            # It was announced and did not come.
            del self._open[key]
            return False
        if not _EXCEPTION.match(message):
            return False
        del self._open[key]
        self._end(block, _cause(message, parts, number, at), matcher.find(line))
        return True

    def _end(self, block: _Block, cause: Failure, found: Found | None) -> None:
        """The exception line is the cause: it names the kind, the line that announced it makes it fatal."""
        if self.closed:
            return
        if found is not None and found.rule.severity in {"error", "fatal"} and found.rule.name != "traceback":
            cause.kind, cause.advice = found.rule.kind or found.rule.milestone, found.rule.advice
            cause.fatal, cause.consequence = found.rule.severity == "fatal", found.rule.consequence
        elif found is not None and found.rule.role == "ended":
            return
        announced = block.failure
        if announced is None:
            self._add(cause)
            return
        announced.text, announced.line, announced.rank = cause.text, cause.line, cause.rank or announced.rank
        announced.kind = cause.kind if cause.kind != "traceback" else announced.kind
        announced.advice = cause.advice or announced.advice
        announced.consequence |= cause.consequence

    def _add(self, failure: Failure) -> None:
        if len(self._all) < _MOST:
            self._all.append(failure)
            self._standing = True

    def went_on(self) -> None:
        """A milestone came: tracebacks before it were survived."""
        if self._standing:
            self._standing = False
            for failure in self._all:
                if not failure.fatal:
                    failure.dismissed = True

    def fatal(self) -> LogError | None:
        """The error after which the server cannot go on: the first that is no mere aftermath."""
        deadly = [failure for failure in self._all if failure.fatal]
        if not deadly:
            return None
        first = deadly[0]
        root = next((failure for failure in deadly if not failure.consequence), None) or self._before(first)
        if root is None or root is first:
            return first.told()
        if first.line < root.line:
            text = f"{root.text}; first seen as: {first.text}"[: 2 * _SHOWN]
            return msgspec.structs.replace(root.told(), text=text, line=first.line, at=first.at, fatal=True)
        return msgspec.structs.replace(root.told(), fatal=True)

    def _before(self, first: Failure) -> Failure | None:
        """The bare traceback that a purely consequential line most likely speaks of."""
        near = [
            failure
            for failure in self._all
            if not failure.fatal and failure.kind == "traceback" and 0 <= first.line - failure.line <= _NEAR
        ]
        return near[0] if near else None

    def error(self) -> LogError | None:
        """The first error that still stands."""
        fatal = self.fatal()
        if fatal is not None:
            return fatal
        return next((failure.told() for failure in self._all if not failure.dismissed), None)


def _cause(message: bytes, parts: Prefix, number: int, at: float) -> Failure:
    """What the exception line of a traceback says, before a rule has named it."""
    return Failure(
        line=number,
        text=plain(message).strip()[:_SHOWN],
        kind="traceback",
        at=at,
        fatal=False,
        consequence=False,
        rank=parts.rank or parts.process,
        pid=parts.pid,
    )


def _failure(found: Found, number: int, at: float) -> Failure:
    rule, parts = found.rule, found.prefix
    pid = found.number("pid")
    return Failure(
        number,
        plain(found.message).strip()[:_SHOWN],
        rule.kind or rule.milestone,
        at,
        rule.severity == "fatal",
        rule.consequence,
        rule.advice,
        parts.rank or parts.process,
        int(pid) if pid is not None else parts.pid,
    )


def _stream(parts: Prefix) -> str:
    """Whose lines belong together: vLLM and torch put their prefix before each line of a traceback, SGLang does not."""
    if parts.pid is not None:
        return str(parts.pid)
    return parts.rank if parts.rank and parts.rank.startswith("rank") else ""
