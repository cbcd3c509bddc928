"""The log's lines: a bounded store with absolute numbers, bars folded to their last state, frozen windows on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, cast

from msgspec import Struct

from tuimon.engines import prefix
from tuimon.engines.rule import RuleSeverity
from tuimon.launch.colours import Coloured
from tuimon.launch.redact import redact
from tuimon.launch.taming import tamed
from tuimon.launch.view import LogLine, Severity

MOST_LINES = 50_000
MOST_BYTES = 16 * 1024 * 1024
ALL_BYTES = 256 * 1024 * 1024
"""Of the logbooks of all hosts together: 16 of them may fill theirs."""
MOST_KEY_LINES = 5_000
SHOWN = 4_000
"""Characters of a line that are shown."""
_KEPT = 16 * 1024  # bytes of a line that are stored: an argument dump has 7–19 KB
CHUNK = 512
"""Lines of a full chunk, which never changes again."""
_KEY = 1024  # bytes of a line that are kept for the lens
_COST = 120  # bytes that an entry costs beside its text


def _cost(text: bytes) -> int:
    """The same for a line that may have colours."""
    return _COST + (2 * _COST + len(text.written) if isinstance(text, Coloured) else 0)


KEY = frozenset({"milestone", "warning", "error", "fatal"})
"""Severities that belong to the lens."""


class Note(Struct, frozen=True):
    """What is known of a line beyond its bytes."""

    severity: Severity = "info"
    rule: str | None = None
    rank: str | None = None
    ours: bool = False
    gap: bool = False
    bar: str | None = None
    """Name of the bar that the line is a redraw of."""

    @property
    def key(self) -> bool:
        """Belongs to the lens: milestones, warnings, errors."""
        return self.severity in KEY or self.gap


PLAIN = Note()
Entry = tuple[bytes, float, Note]
"""Raw text without ANSI, when we saw it, what is known of it."""

_SEVERITY: dict[RuleSeverity, Severity] = {"harmless": "info"}


def shown_severity(severity: RuleSeverity) -> Severity:
    """A rule's severity as the screen knows it."""
    return _SEVERITY.get(severity, cast("Severity", severity))


class Window:
    """A frozen look at the logbook: nothing in it changes, so any thread may read it."""

    __slots__ = ("_chunks", "_end", "_first")

    def __init__(self, chunks: tuple[tuple[Entry, ...], ...], first: int, end: int) -> None:
        self._chunks = chunks
        self._first = first
        self._end = end

    @property
    def first(self) -> int:
        """Number of the oldest line still held."""
        return self._first

    @property
    def end(self) -> int:
        """One past the newest line."""
        return self._end

    def __getitem__(self, number: int) -> LogLine:
        """The line with this absolute number; raises IndexError when it is not held."""
        return line_of(number, self._entry(number))

    def slice(self, start: int, stop: int) -> Sequence[LogLine]:
        """Lines from `start` to before `stop`, clipped to what is held."""
        return [self[number] for number in range(max(start, self._first), min(stop, self._end))]

    def raw(self, number: int) -> bytes:
        """A line's bytes without ANSI, not redacted: for searching without the cost of a LogLine."""
        return self._entry(number)[0]

    def note(self, number: int) -> Note:
        """What is known of a line, without the cost of a LogLine."""
        return self._entry(number)[2]

    def _entry(self, number: int) -> Entry:
        if not self._first <= number < self._end:
            raise IndexError(number)
        # The first chunk may be of any length, the others are full.
        index = number - self._first
        head = len(self._chunks[0])
        if index < head:
            return self._chunks[0][index]
        chunk, inside = divmod(index - head, CHUNK)
        return self._chunks[chunk + 1][inside]


EMPTY = Window(((),), 0, 0)


_books = [1]


def share(books: int) -> None:
    """So many logbooks are kept at once from now on: said once, when the program starts."""
    _books[0] = max(1, books)


class Logbook:
    """Appends lines and forgets the oldest. Numbers never start again, also not after a rotation."""

    def __init__(self, most_lines: int = MOST_LINES, most_bytes: int | None = None) -> None:
        self._most_lines = most_lines
        self._most_bytes = min(MOST_BYTES, ALL_BYTES // _books[0]) if most_bytes is None else most_bytes
        self._chunks: deque[tuple[tuple[Entry, ...], int]] = deque()
        self._open: list[Entry] = []
        self._open_bytes = 0
        self._bytes = 0
        self._first = 0
        self._end = 0
        self._keys: deque[tuple[int, Entry]] = deque(maxlen=MOST_KEY_LINES)
        self._window: Window | None = EMPTY

    @property
    def end(self) -> int:
        """One past the newest line."""
        return self._end

    def add(self, text: bytes, at: float, note: Note = PLAIN) -> int:
        """Append a line and return its number; a redraw of the bar in the last line takes that line's place."""
        entry = (text if len(text) <= _KEPT else text[:_KEPT], at, note)
        opened = self._open
        self._window = None
        if note.bar is not None and opened and opened[-1][2].bar == note.bar:
            before = opened[-1][0]
            self._open_bytes += len(entry[0]) + _cost(entry[0]) - len(before) - _cost(before)
            opened[-1] = entry
            return self._end - 1
        if len(opened) >= CHUNK:
            self._close()
            opened = self._open
        opened.append(entry)
        self._open_bytes += len(entry[0]) + (_COST if type(text) is bytes else _cost(text))
        number = self._end
        self._end = number + 1
        if note.severity in KEY or note.gap:
            self._keys.append((number, (entry[0][:_KEY], at, note)))
        return number

    def plain(self, text: bytes, at: float) -> None:
        """`add` for a line that means nothing: the common case, without what it does not need."""
        opened = self._open
        if len(opened) >= CHUNK:
            self._close()
            opened = self._open
        opened.append((text if len(text) <= _KEPT else text[:_KEPT], at, PLAIN))
        self._open_bytes += len(text) + (_COST if type(text) is bytes else _cost(text))
        self._end += 1
        self._window = None

    def newest(self, count: int) -> Iterator[bytes]:
        """The newest lines' bytes, newest first; at most what the open chunk holds."""
        return (entry[0] for entry in islice(reversed(self._open), count))

    def amend(self, number: int, note: Note) -> None:
        """Change what is known of one of the newest lines (an error's cause line); older ones are left as they are."""
        index = number - (self._end - len(self._open))
        if 0 <= index < len(self._open):
            text, at, _ = self._open[index]
            self._open[index] = (text, at, note)
            self._keys.append((number, self._open[index]))
            self._window = None

    def gap(self, text: str, at: float) -> int:
        """A mark for what was skipped or reset."""
        return self.add(text.encode(), at, Note(gap=True))

    def window(self, pending: Entry | None = None) -> Window:
        """A frozen look; `pending` is the unfinished last line, shown but not yet numbered for good."""
        if self._window is None or pending is not None:
            opened = tuple(self._open)
            end = self._end
            if pending is not None and pending[0]:
                if pending[2].bar is not None and opened and opened[-1][2].bar == pending[2].bar:
                    opened = (*opened[:-1], pending)
                else:
                    opened, end = (*opened, pending), end + 1
            window = Window((*(chunk for chunk, _ in self._chunks), opened), self._first, end)
            if pending is not None:
                return window
            self._window = window
        return self._window

    def key_lines(self) -> list[LogLine]:
        """Milestones, warnings and errors, also those whose neighbours are forgotten; the newest few thousand."""
        return [line_of(number, entry) for number, entry in self._keys]

    def _close(self) -> None:
        self._chunks.append((tuple(self._open), self._open_bytes))
        self._bytes += self._open_bytes
        self._open = []
        self._open_bytes = 0
        while self._chunks and (
            self._end - self._first - len(self._chunks[0][0]) >= self._most_lines or self._bytes > self._most_bytes
        ):
            chunk, size = self._chunks.popleft()
            self._first += len(chunk)
            self._bytes -= size


def line_of(number: int, entry: Entry) -> LogLine:
    """A stored line as the screen gets it: decoded, without control characters, without secrets, cut."""
    text, at, note = entry
    if note.gap:
        return LogLine(number=number, text=plain(text), at=at, gap=True)
    body, parts = prefix.parse(text)
    message = plain(body)
    whole = len(body) == len(text) and len(message) <= SHOWN
    return LogLine(
        number=number,
        text=message[:SHOWN],
        at=at,
        time=None if parts.yearless else parts.stamp,
        clock=parts.clock,
        rank=note.rank or parts.rank or parts.process,
        severity=_level(note, parts.level),
        rule=note.rule,
        ours=note.ours,
        raw=None if whole else plain(text)[:_KEPT],
        written=text.written if isinstance(text, Coloured) else None,
    )


def _level(note: Note, level: str | None) -> Severity:
    """The rule's word counts; without a rule an engine's own WARNING is one, its own ERROR too."""
    if note.rule is not None or level is None:
        return note.severity
    levels: dict[str, Literal["warning", "error"]] = {
        "WARNING": "warning", "ERROR": "error", "CRITICAL": "error", "FATAL": "error",
    }  # fmt: skip
    return levels.get(level, note.severity)


def plain(text: bytes) -> str:
    """Text that is safe to show: valid, one line, no control or direction characters, no secrets."""
    return redact(tamed(text))
