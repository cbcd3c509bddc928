"""`tuimon timeline FILE…`: what a log file tells, from anywhere, of any size; nothing is judged, nobody is asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tuimon.config import config_dir
from tuimon.engines.grammar import Library, library
from tuimon.headless.exit_codes import FINE, USAGE
from tuimon.headless.plain import say, say_json
from tuimon.launch.gaps import Gaps, LogGap
from tuimon.launch.lasting import duration
from tuimon.launch.reading import Reading
from tuimon.launch.told import Told
from tuimon.launch.view import LogLine, PhaseView

SCHEMA = "tuimon.timeline/1"
_BLOCK = 512 * 1024  # bytes read at once
_KEPT_LINES = 2_000  # nobody scrolls here; only the lines with a meaning are kept beyond
_AFTER_ERROR = 3  # lines behind a traceback that still count as its end: a shell's last words
_MARKS = {"done": "✔", "running": "▶", "missing": "✖", "failed": "✖", "expected": "·"}


def run(files: Sequence[str], gap: float, *, lens: bool, as_json: bool) -> int:
    """Read each file (`-` = standard input) and print what it tells. 0, or 2 if one could not be read."""
    grammars = library(config_dir() / "grammars")
    for fault in grammars.faults:
        sys.stderr.write(f"{fault.sentence()}\n")
    reports, unreadable = [], False
    for name in files:
        try:
            log = read(name, grammars, gap)
        except OSError as error:
            sys.stderr.write(f"{name} cannot be read: {error.strerror or error}. Give a log file, or - for a pipe.\n")
            unreadable = True
            continue
        if as_json:
            reports.append(log.report(lens=lens))
        else:
            say(log.words(lens=lens).removesuffix("\n"))
    if as_json:
        say_json({"schema": SCHEMA, "files": reports})
    return USAGE if unreadable else FINE


def read(name: str, grammars: Library | None = None, gap: float = 10.0) -> ReadLog:
    """Read one log to its end in bounded memory. Raises OSError."""
    gaps = Gaps(gap)
    reading = Reading(grammars, own_clock=True, gaps=gaps, most_lines=_KEPT_LINES)
    if name == "-":
        lines = _feed(reading, sys.stdin.buffer)
    else:
        with Path(name).open("rb") as file:
            lines = _feed(reading, file)
    return ReadLog(name, reading, gaps.found, lines)


def _feed(reading: Reading, file: BinaryIO) -> int:
    """Read to the end; gives the number of lines."""
    lines, ended = 0, True
    while block := file.read(_BLOCK):
        lines += block.count(b"\n")
        ended = block.endswith(b"\n")
        reading.feed(block, 0.0)
    reading.finish(0.0)
    return lines + (not ended)


class ReadLog:
    """A log that was read to its end."""

    def __init__(self, name: str, reading: Reading, gaps: list[LogGap], lines: int) -> None:
        self.name = name
        self.lines = lines
        self.gaps = gaps
        self._reading = reading
        self._fold = reading.fold
        self.told: Told = reading.told(reading.clock.latest or 0.0)

    @property
    def state(self) -> str:
        """ready, crashed, ended (a shutdown that was asked for, or training that is done) or unfinished."""
        told = self.told
        if told.ended is not None:
            return "ended"
        if told.fatal is not None:
            return "crashed"
        if told.ready is not None:
            return "ready"
        if told.error is not None and self._fold.book.end - 1 - self._fold.last_error <= _AFTER_ERROR:
            return "crashed"
        return "unfinished"

    @property
    def missing(self) -> list[tuple[str, str]]:
        """(milestone, because); where the log just stops, also the one that an argument asks for next."""
        told = self.told
        missing = [(one.milestone, one.because) for one in told.missing]
        coming = told.next_expected
        if coming is not None and self.state == "unfinished" and "(" in coming.because:
            missing.append((coming.milestone, coming.because))
        return missing

    def report(self, *, lens: bool) -> dict[str, object]:
        """The `files` entry of `tuimon.timeline/1`."""
        told, missing = self.told, self.missing
        names = {milestone for milestone, _ in missing}
        entry: dict[str, object] = {
            "file": self.name,
            "engine": told.engine,
            "version": told.version,
            "lines": self.lines,
            "state": self.state,
            "ready_s": self._since(told.ready),
            "ready_line": self._fold.ready_line[1] + 1 if self._fold.ready_line else None,
            "phases": [
                self._phase(phase, missing=phase.name in names)
                for phase in told.phases
                if phase.state != "expected" or phase.name in names
            ],
            "missing": [{"milestone": milestone, "because": because} for milestone, because in missing],
            "gaps": [
                {"line": gap.line, "start_s": self._since(gap.start), "length_s": round(gap.length, 3)}
                for gap in self.gaps
            ],
            "error": self._error(),
        }
        if lens:
            entry["key_lines"] = [_key(line) for line in self._fold.book.key_lines()]
        return entry

    def _error(self) -> dict[str, object] | None:
        error = self.told.error
        if error is None:
            return None
        line = self._fold.file_lines.get(error.line)
        return {
            "line": None if line is None else line + 1,
            "text": error.text,
            "kind": error.kind,
            "advice": error.advice,
        }

    def _phase(self, phase: PhaseView, *, missing: bool) -> dict[str, object]:
        return {
            "name": phase.name,
            "rank": phase.rank,
            "start_s": self._since(phase.start),
            "end_s": self._since(phase.end),
            "state": "missing" if missing else phase.state,
        }

    def _since(self, instant: float | None) -> float | None:
        """Seconds since the first time in the log; None where the log has no clock."""
        if instant is None or self._reading.first is None:
            return None
        return round(instant - self._reading.first, 3)

    def words(self, *, lens: bool) -> str:
        """The same for a reader."""
        told = self.told
        what = [told.engine or "unknown engine", told.version, told.model, told.shape]
        lines = [f"{self.name} · {' · '.join(word for word in what if word)} · {self.lines:,} lines · {self.state}"]
        ready = self._since(told.ready)
        if self._fold.ready_line is not None:
            after = f" after {duration(ready)}" if ready is not None else ""
            lines.append(f"  ready{after} (line {self._fold.ready_line[1] + 1})")
        reasons = dict(self.missing)
        lines.extend(_phase_words(phase, reasons.get(phase.name)) for phase in told.phases)
        for gap in self.gaps:
            start = self._since(gap.start) or 0.0
            lines.append(f"  silent for {duration(gap.length)} after line {gap.line}, {duration(start)} in")
        if told.error is not None:
            place = self._fold.file_lines.get(told.error.line)
            where = f", line {place + 1}" if place is not None else ""
            lines.append(f"  {'fatal' if told.fatal else 'error'}{where}: {told.error.text}")
            if told.error.advice:
                lines.append(f"    {told.error.advice}")
        if told.useless_draft:
            lines.append("  the draft model is not working: acceptance length 1.0 over several batches")
        if lens:
            lines.append("")
            lines.extend(
                f"{line.clock or '':<12} {line.rank or '':<6} {line.text}" for line in self._fold.book.key_lines()
            )
        return "\n".join(lines) + "\n\n"


def _phase_words(phase: PhaseView, missing: str | None) -> str:
    state = "missing" if missing else phase.state
    bar = f"{phase.count:.0f}/{phase.total:.0f}" if phase.total and phase.count is not None else ""
    seconds = duration(phase.seconds) if phase.seconds is not None and state == "done" else ""
    word = missing or phase.note or ("" if state == "done" else state)
    return f"  {_MARKS[state]} {phase.name:<20} {bar:>9} {seconds:>12}  {word}".rstrip()


def _key(line: LogLine) -> dict[str, object]:
    return {"rank": line.rank, "clock": line.clock, "severity": line.severity, "rule": line.rule, "text": line.text}
