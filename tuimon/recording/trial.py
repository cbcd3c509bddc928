"""The judge on trial: recordings with a known truth, a simulated clock, and how often and how late it was right."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct, structs

from tuimon.errors import TuimonError
from tuimon.launch.events import AnyEvent, Sample, ServerFound, ServerGone
from tuimon.launch.state import Launch
from tuimon.launch.view import RED, Verdict
from tuimon.recording.degrade import DEGRADATIONS, SLOW
from tuimon.recording.folder import EPOCH, events

SCHEMA = "tuimon.verdicts/1"
TAIL = 5
"""Seconds for which the clock runs on after the last sample."""
RECOVERY = 3.0
"""Seconds after the end of a hang within which red must clear."""
BEFORE_CRASH = 10.0
READY_WITHIN = 2.0
USELESS = 1.05
"""Acceptance length up to which a draft model does nothing."""
DELAY_MEDIAN, DELAY_WORST, CERTAIN_WORST, SUSPECTS_SHARE = 22.0, 30.0, 3.0, 0.95


class Truth(Struct, frozen=True):
    """What a right monitor says; seconds since the launch."""

    verdict: str
    onset: float | None = None
    end: float | None = None
    ready: float | None = None
    culprit_pid: int | None = None
    accept_length: float | None = None

    @property
    def began(self) -> float:
        """When the trouble began; never, where there is none."""
        return self.onset if self.onset is not None else float("inf")


class _Document(Struct, frozen=True):
    truth: Truth


class Moment(Struct, frozen=True):
    """The verdict at one instant, seconds since the launch."""

    t: float
    verdict: Verdict


class Row(Struct, frozen=True):
    """How the judge did on one recording."""

    name: str
    state: str
    """The truth."""
    verdicts: tuple[dict[str, Any], ...]
    delay_s: float | None
    false_alarms: int
    suspect_pids: tuple[int, ...]
    suspect_right: bool | None
    ready_s: float | None
    certain: bool
    found: bool | None
    missed: tuple[str, ...]


def moments(stream: Iterable[AnyEvent], *, ended: bool) -> list[Moment]:
    """Judge after each instant that has events, and for some seconds after the last.

    `ended`: the run ended by itself, so after its last sample its processes are gone.
    """
    launch = Launch("trial")
    judged: list[Moment] = []
    now = EPOCH
    server = 0
    for event in stream:
        if event.at > now:
            judged.append(Moment(now - EPOCH, launch.settle(now)))
            judged.extend(Moment(tick - EPOCH, launch.settle(tick)) for tick in _ticks(now, event.at))
            now = event.at
        if isinstance(event, ServerFound):
            server = event.pid
        launch.apply(event)
    judged.append(Moment(now - EPOCH, launch.settle(now)))
    if ended:
        launch.apply(Sample(at=now + 0.5, mono=now + 0.5 - EPOCH, processes=()))
        launch.apply(ServerGone(at=now + 0.5, pid=server))
    judged.extend(Moment(now + tick - EPOCH, launch.settle(now + tick)) for tick in range(1, TAIL + 1))
    return judged


def _ticks(start: float, stop: float) -> Iterator[float]:
    """The screen judges each second, also where no sample comes."""
    tick = start + 1.0
    while tick < stop - 0.2:
        yield tick
        tick += 1.0


def score(name: str, truth: Truth, judged: Sequence[Moment], recovery: float = RECOVERY) -> Row:
    """Compare the verdicts with the truth."""
    red = [moment for moment in judged if moment.verdict.state in RED and not _unknown_end(moment.verdict, truth)]
    alarms = [moment for moment in red if _false(moment.t, truth, recovery)]
    reds = [moment for moment in red if not _false(moment.t, truth, recovery)]
    found, delay = None, None
    if truth.verdict in {"stalled", "crashed"}:
        found = bool(reds) if truth.verdict == "stalled" else judged[-1].verdict.state == "crashed"
        delay = round(max(0.0, reds[0].t - truth.began), 2) if reds else None
    within = [moment for moment in reds if truth.end is None or moment.t <= truth.end] or reds
    suspects = tuple(s.pid for s in within[-1].verdict.suspects if s.pid is not None) if within else ()
    ready = next((round(moment.t, 2) for moment in judged if moment.verdict.state in {"ready", "serving"}), None)
    row = Row(
        name=name,
        state=truth.verdict,
        verdicts=_changes(judged),
        delay_s=delay,
        false_alarms=_episodes(judged, alarms),
        suspect_pids=suspects,
        suspect_right=None if truth.culprit_pid is None else truth.culprit_pid in suspects,
        ready_s=ready,
        certain=bool(reds) and reds[0].verdict.certain,
        found=found,
        missed=(),
    )
    return structs.replace(row, missed=tuple(_missed(row, truth, judged)))


def _unknown_end(verdict: Verdict, truth: Truth) -> bool:
    """An end of which it is said that nobody could see its cause: right for a run that its recorder ended."""
    return truth.verdict != "crashed" and verdict.kind == "gone" and not verdict.certain


def _false(t: float, truth: Truth, recovery: float) -> bool:
    """Whether red at this instant is a false alarm."""
    if truth.verdict == "crashed":
        return t < truth.began - BEFORE_CRASH
    if truth.verdict != "stalled" or t < truth.began:
        return True
    # A run without a later "ready" was ended by its recorder: what follows is its end, not its health.
    return truth.end is not None and (truth.ready or 0.0) > truth.end and t > truth.end + recovery


def _episodes(judged: Sequence[Moment], alarms: Sequence[Moment]) -> int:
    """Stretches of false red, not instants."""
    false = {moment.t for moment in alarms}
    return sum(1 for i, moment in enumerate(judged) if moment.t in false and (i == 0 or judged[i - 1].t not in false))


def _changes(judged: Sequence[Moment]) -> tuple[dict[str, Any], ...]:
    changes: list[dict[str, Any]] = []
    for moment in judged:
        change = {"t": round(moment.t, 2), "state": moment.verdict.state, "kind": moment.verdict.kind}
        if not changes or (changes[-1]["state"], changes[-1]["kind"]) != (change["state"], change["kind"]):
            changes.append(change)
    return tuple(changes)


def _missed(row: Row, truth: Truth, judged: Sequence[Moment]) -> Iterator[str]:
    if row.false_alarms:
        yield f"{row.name}: {row.false_alarms} false alarm(s)"
    if row.found is False:
        yield f"{row.name}: {row.state} was not found"
    if (
        row.state == "stalled"
        and row.delay_s is not None
        and row.delay_s > (CERTAIN_WORST if row.certain else DELAY_WORST)
    ):
        yield f"{row.name}: found {row.delay_s} s after its onset"
    if truth.ready is not None and (row.ready_s is None or abs(row.ready_s - truth.ready) > READY_WITHIN):
        yield f"{row.name}: ready at {row.ready_s}, in truth at {truth.ready}"
    if row.state == "finished" and judged[-1].verdict.state != "finished":
        yield f"{row.name}: finished, but judged {judged[-1].verdict.state}"
    useless = truth.accept_length is not None and truth.accept_length <= USELESS
    if useless and not any("useless_draft" in moment.verdict.alarms for moment in judged):
        yield f"{row.name}: the useless draft model was not noticed"


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """All recordings together."""
    stalls = [row for row in rows if row.state == "stalled"]
    delays = [row.delay_s for row in stalls if row.delay_s is not None]
    certain = [row.delay_s for row in rows if row.certain and row.delay_s is not None]
    named = [row for row in rows if row.suspect_right is not None]
    return {
        "false_alarms": sum(row.false_alarms for row in rows),
        "stalls": len(stalls),
        "found": sum(1 for row in stalls if row.found),
        "delay_median_s": round(median(delays), 2) if delays else None,
        "delay_worst_s": max(delays, default=None),
        "certain_worst_s": max(certain, default=None),
        "suspects_right": sum(1 for row in named if row.suspect_right),
        "suspects_total": len(named),
    }


def _missed_together(total: dict[str, Any]) -> Iterator[str]:
    if total["delay_median_s"] is not None and total["delay_median_s"] > DELAY_MEDIAN:
        yield f"median delay {total['delay_median_s']} s"
    if total["suspects_total"] and total["suspects_right"] < SUSPECTS_SHARE * total["suspects_total"]:
        yield f"suspects right: {total['suspects_right']} of {total['suspects_total']}"


def recordings(paths: Iterable[Path]) -> list[Path]:
    """Each path is a recording or a folder of them."""
    found: list[Path] = []
    for path in paths:
        if (path / "samples.jsonl").exists():
            found.append(path)
        elif path.is_dir():
            found += sorted(child for child in path.iterdir() if (child / "samples.jsonl").exists())
    return found


def try_one(path: Path, degradation: str | None = None) -> Row:
    """Judge one recording, perhaps degraded, and compare. The judge never sees the truth."""
    truth = msgspec.json.decode((path / "truth.json").read_bytes(), type=_Document).truth
    stream: Iterable[AnyEvent] = events(path)
    recovery = RECOVERY
    if degradation is not None:
        stream = DEGRADATIONS[degradation](stream)
        recovery += SLOW if degradation == "slow-sampling" else 0.0
    judged = moments(stream, ended=truth.verdict in {"crashed", "finished"})
    return score(path.name, truth, judged, recovery)


def main(argv: Sequence[str]) -> int:
    """The command line of `benchmarks/verdicts`."""
    words = list(argv)
    degradation = None
    if "--degrade" in words:
        at = words.index("--degrade")
        degradation = words[at + 1] if at + 1 < len(words) else ""
        del words[at : at + 2]
    if not words or (degradation is not None and degradation not in DEGRADATIONS):
        sys.stderr.write(f"usage: verdicts [--degrade {'|'.join(DEGRADATIONS)}] DIR…\n")
        return 2
    try:
        paths = recordings(Path(word) for word in words)
        rows = [try_one(path, degradation) for path in paths]
    except (TuimonError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not rows:
        sys.stderr.write("no recording found\n")
        return 2
    return _print(rows, degradation)


def _print(rows: Sequence[Row], degradation: str | None) -> int:
    total = summary(rows)
    missed = [text for row in rows for text in row.missed] + list(_missed_together(total))
    out = sys.stdout
    out.write(f"{'recording':36} {'truth':9} {'delay':>6} {'false':>5} {'suspect':>8} {'ready':>6}  verdicts\n")
    for row in rows:
        out.write(_line(row))
    if degradation is not None:
        # A poorer eye may be slower, or blind to some things; what it may not do is cry wolf.
        for text in missed:
            out.write(f"with {degradation}: {text}\n")
        missed = [text for text in missed if "false alarm" in text]
    for text in missed:
        out.write(f"missed: {text}\n")
    keep = ("name", "state", "verdicts", "delay_s", "false_alarms", "suspect_pids", "suspect_right", "ready_s")
    document = {
        "schema": SCHEMA,
        "recordings": [{key: getattr(row, key) for key in keep} for row in rows],
        "summary": total,
        "missed": missed,
    }
    out.write(json.dumps(document) + "\n")
    return 1 if missed else 0


def _line(row: Row) -> str:
    """One row of the table; `!` = found by a certain sign."""
    course = " ".join(
        f"{change['t']:.0f}:{change['state']}{'/' + change['kind'] if change['kind'] else ''}"
        for change in row.verdicts
    )
    suspect = {None: "-", True: "right", False: "WRONG"}[row.suspect_right]
    delay = "-" if row.delay_s is None else f"{row.delay_s:.1f}{'!' if row.certain else ''}"
    ready = "-" if row.ready_s is None else f"{row.ready_s:.1f}"
    return f"{row.name:36} {row.state:9} {delay:>6} {row.false_alarms:>5} {suspect:>8} {ready:>6}  {course[:200]}\n"
