"""`tuimon export`: a recording as JSON lines, as a table of its samples, or as a report to read."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

from tuimon.diagnose.report import fenced, last_lines, launch_lines, one_line, phase_line, reasons
from tuimon.launch.events import AnyEvent, Finding, Gap, Sample
from tuimon.launch.view import LaunchView, Verdict
from tuimon.recording.form import Judged, Recorded, line
from tuimon.recording.player import Player
from tuimon.recording.source import Source, open_source

if TYPE_CHECKING:
    from tuimon.config import Settings

Form = Literal["json", "csv", "report"]
PROCESS_COLUMNS = ("processes", "states", "cpu_s", "rss_bytes", "read_bytes", "minor_faults", "major_faults")
GPU_COLUMNS = ("util", "mem_util", "mem_used", "power", "sm_clock", "temperature", "dram_active")
_MOST_LISTED = 200


def run(where: str, form: Form, settings: Settings) -> int:
    """Write it to stdout; what is wrong with the recording goes to stderr. Raises UnreadableRecording."""
    source = open_source(where)
    out = sys.stdout
    if form == "json":
        for event in events(source):
            out.write(line(event).decode())
    elif form == "csv":
        table(source, out)
    else:
        out.write("\n".join(report(source, settings)) + "\n")
    for note in source.notes:
        sys.stderr.write(f"tuimon: this recording: {note}\n")
    return 0


def events(source: Source) -> Iterator[Recorded]:
    """All events, in order of time."""
    for piece in range(len(source.firsts)):
        yield from source.read(piece)


# CSV.


def table(source: Source, out: TextIO) -> None:
    """One row for each sample; unknown is empty. GPUs get columns of their own."""
    gpus = sorted({gpu.index for event in events(source) if isinstance(event, Sample) for gpu in event.gpus or ()})
    writer = csv.writer(out, lineterminator="\n")
    names = [f"gpu{index}_{column}" for index in gpus for column in GPU_COLUMNS]
    writer.writerow(["at", "t_s", "log_bytes", *PROCESS_COLUMNS, *names])
    begin = source.firsts[0] if source.firsts else 0.0
    for event in events(source):
        if isinstance(event, Sample):
            writer.writerow([_instant(event.at), f"{event.at - begin:.3f}", *_row(event, gpus)])


def _row(sample: Sample, gpus: list[int]) -> list[object]:
    cells: list[object] = [sample.log.size if sample.log else None]
    processes = sample.processes
    if processes is None:
        cells += [None] * len(PROCESS_COLUMNS)
    else:
        cells += [len(processes), "".join(sorted(process.state[:1] for process in processes))]
        for name in ("cpu", "rss", "read_bytes", "minor_faults", "major_faults"):
            known = [value for process in processes if (value := getattr(process, name)) is not None]
            cells.append(round(sum(known), 2) if known else None)
    seen = {gpu.index: gpu for gpu in sample.gpus or ()}
    return cells + [getattr(seen.get(index), column, None) for index in gpus for column in GPU_COLUMNS]


# The report.


def report(source: Source, settings: Settings) -> Iterator[str]:
    """Markdown: what was believed when, and why; judged with today's rules."""
    player = Player(source, settings.patience)
    player.survey.run()
    player.seek(player.end)
    view = player.view()
    began, ended = player.begin, player.end
    yield from _head(view, began, ended)
    yield from ("", *(f"- **{one_line(note)}**" for note in source.notes)) if source.notes else ()
    yield from ("", "## Verdicts", "", "| time (UTC) | after | verdict | in words |", "|---|---|---|---|")
    changes = [(mark.at, mark.verdict) for mark in player.survey.marks if mark.verdict is not None]
    for at, verdict in changes[:_MOST_LISTED]:
        yield f"| {_clock(at)} | {at - began:.0f} s | {_state(verdict)} | {one_line(verdict.headline)} |"
    yield from _red(player, changes)
    yield from _section("Timeline", fenced([phase_line(phase) for phase in view.phases]))
    milestones = [mark for mark in player.survey.marks if mark.kind == "milestone"][:_MOST_LISTED]
    yield from _section("Milestones", fenced([f"{_clock(mark.at)}  {mark.text[:160]}" for mark in milestones]))
    yield from _section("First error of the log", [one_line(view.error)] if view.error else [])
    yield from _section("Seen at that time", list(_seen(source)))
    yield from _section("Last lines of the log", fenced(last_lines(view)))
    yield from _section("Launch", fenced(launch_lines(view)))


def _head(view: LaunchView, began: float, ended: float) -> Iterator[str]:
    server = view.server
    name = " ".join(filter(None, [server.engine, server.version])) or "a launch" if server else "no server"
    yield f"# {one_line(name)} on {one_line(view.host)}: {view.verdict.state}"
    yield ""
    yield f"Recorded from {_instant(began)} to {_instant(ended)} ({ended - began:.0f} s)"


def _red(player: Player, changes: list[tuple[float, Verdict]]) -> Iterator[str]:
    """The evidence of each alarm, as it stood when the verdict changed."""
    for at, verdict in changes:
        if verdict.state not in {"stalled", "spinning", "frozen", "crashed", "failing"}:
            continue
        player.seek(at)
        view = player.view()
        yield from ("", f"## {_clock(at)}: {_state(verdict)}", "", one_line(verdict.headline), "")
        for suspect in view.verdict.suspects:
            yield f"- suspect: **{one_line(str(suspect.rank or suspect.pid))}** – {one_line(suspect.reason)}"
        yield from reasons(view)


def _seen(source: Source) -> Iterator[str]:
    """What the watching itself said: findings, gaps, and its verdicts of the time."""
    told: list[str] = []
    for event in events(source):
        words = _words(event)
        if words and len(told) < _MOST_LISTED:
            told.append(f"- {_clock(event.at)} {words}")
    yield from told


def _words(event: AnyEvent | Judged) -> str | None:
    match event:
        case Finding():
            return f"found: {one_line(event.text)}"
        case Gap():
            return f"not seen ({event.of}): {one_line(event.reason)}"
        case Judged():
            return f"judged then: {one_line(event.state)}{f' ({one_line(event.kind)})' if event.kind else ''}"
        case _:
            return None


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _state(verdict: Verdict) -> str:
    return f"{verdict.state}{f' ({one_line(verdict.kind)})' if verdict.kind else ''}"


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"
