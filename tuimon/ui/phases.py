"""The launch pane: phases with their state, duration, bar, ETA and what they usually take."""

from __future__ import annotations

from msgspec.structs import replace

from tuimon.launch.lasting import age, duration
from tuimon.launch.usual import LATE_SECONDS
from tuimon.launch.view import LaunchView, PhaseView
from tuimon.ui.bars import meter
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, cells, clean, fit, left, right, width_of
from tuimon.ui.words import about

MARKS = {
    "done": ("✔", "good"), "running": ("▸", "accent"), "missing": ("✖", "bad"), "failed": ("✖", "bad"),
    "expected": ("·", "faint"),
}  # fmt: skip
SLOWER = 1.2
"""Times the usual duration from which a narrow pane says it too."""


class Launch(Pane):
    """What happened, and what should have."""

    TITLE = "Launch"

    def slice(self, view: LaunchView) -> object:
        phases = told(view)
        ticks = int(view.now) if any(phase.state in {"running", "missing"} for phase in phases) else None
        return (
            phases,
            view.usual_launches,
            view.verdict.since,
            view.verdict.state,
            ticks,
            view.server,
            view.episodes,
        )

    def aside(self, view: LaunchView, room: int) -> str:
        count = view.usual_launches
        words = f"usual: {count} launch{'' if count == 1 else 'es'} here"
        return words if count and len(words) <= room else ""

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        return rows(view, width, height)


def wanted(phases: tuple[PhaseView, ...]) -> int:
    """Lines that the timeline likes to have."""
    return sum(2 if _has_second(phase) else 1 for phase in phases)


def _has_second(phase: PhaseView) -> bool:
    if phase.state == "running" and phase.total:
        return True
    return bool(phase.note) and phase.state in {"missing", "failed", "running"}


def rows(view: LaunchView, width: int, height: int) -> list[Row]:
    """The timeline; squeezed to the height by joining what is to come and dropping what took least."""
    phases = told(view)
    if not phases:
        words = "no launch yet" if view.server is None else "no phase seen in the log yet"
        return [((words, "dim"),)]
    longest = max(cells(_name(phase)) for phase in phases)
    full = [row for phase in phases for row in _phase(view, phase, width, longest, bar_below=True)]
    if len(full) <= height:
        return full
    if len(phases) <= height and not any(phase.state == "running" and phase.total for phase in phases):
        return [_phase(view, phase, width, longest, bar_below=False)[0] for phase in phases]
    coming = [phase for phase in phases if phase.state == "expected"]
    seen = _telling([phase for phase in phases if phase.state != "expected"], max(1, height - min(1, len(coming))))
    lines = [_phase(view, phase, width, longest, bar_below=False)[0] for phase in seen]
    running = next((i for i, phase in enumerate(seen) if phase.state == "running" and phase.total), None)
    if running is not None and len(lines) + min(1, len(coming)) < height:
        lines[running : running + 1] = _phase(view, seen[running], width, longest, bar_below=True)
    alone = max(0, height - len(lines) - 1)
    lines += [_phase(view, phase, width, longest, bar_below=False)[0] for phase in coming[:alone]]
    lines += _coming(coming[alone:], width)
    return lines[: max(1, height)] if height < 3 else lines


def _telling(phases: list[PhaseView], most: int) -> list[PhaseView]:
    """At most so many, in order: what was done in a moment goes first; what was done last stays longest."""
    kept = list(phases)
    while len(kept) > most:
        done = [phase for phase in kept if phase.state == "done"]
        if not done or len(kept) == 1:
            break
        kept.remove(min(done[:-1] or done, key=lambda phase: phase.seconds or 0.0))
    return kept


def told(view: LaunchView) -> tuple[PhaseView, ...]:
    """The phases, where what the verdict misses is missing even while its turn would only be next."""
    missing = {one.milestone for one in view.verdict.missing}
    return tuple(
        replace(phase, state="missing") if phase.state == "expected" and phase.name in missing else phase
        for phase in view.phases
    )


def _coming(phases: list[PhaseView], width: int) -> list[Row]:
    spans: list[tuple[str, str]] = []
    for phase in phases:
        piece = f"{' ' if spans else ''}· {clean(phase.name)}"
        if width_of(tuple(spans)) + len(piece) > width:
            break
        spans.append((piece, "faint"))
    return [tuple(spans)] if spans else []


def _name(phase: PhaseView) -> str:
    return clean(f"{phase.name} {phase.rank}" if phase.rank else phase.name)


def _phase(view: LaunchView, phase: PhaseView, width: int, longest: int, *, bar_below: bool) -> list[Row]:
    mark, ink = MARKS[phase.state]
    tail_width = 13 if width >= 48 else 0
    time_width = 10 if width >= 40 else 9
    room = width - 2 - time_width - tail_width
    name_width = min(longest + 1, max(8, room - 8))
    middle_width = max(0, room - name_width)
    text = {"expected": "faint", "running": "strong", "missing": "bad", "failed": "bad"}.get(phase.state, "text")
    spare = max(middle_width, room - cells(_name(phase))) - 2
    slow = _slow(phase, spare) if phase.state == "done" and not tail_width else ""
    if slow:
        name_width, middle_width = room - cells(slow) - 1, cells(slow) + 1
    elif not phase.total and phase.state != "missing":  # nothing stands in the middle: the name may
        name_width, middle_width = name_width + middle_width, 0
    line: list[tuple[str, str]] = [(f"{mark} ", ink), (left(_name(phase), name_width - 1) + " ", text)]
    line += ((f"{slow} ", _tail_ink(phase)),) if slow else _middle(phase, middle_width, inline_bar=not bar_below)
    line.append((right(_seconds(view, phase), time_width), text if phase.state != "done" else "dim"))
    if tail_width:
        line.append((left(f"   {_tail(phase)}", tail_width), _tail_ink(phase)))
    result = [fit(tuple(line), width)]
    if bar_below and phase.state == "running" and phase.total:
        result.append(_progress(phase, width))
    elif bar_below and _has_second(phase):
        result.append(fit(((f"  {clean(phase.note or '')}", "bad" if ink == "bad" else "dim"),), width))
    return result


def _middle(phase: PhaseView, width: int, *, inline_bar: bool) -> Row:
    if width < 4:
        return ((" " * width, "text"),)
    if phase.state == "missing":
        return ((left("not seen", width), "bad"),)
    if phase.total and phase.state == "running" and inline_bar and width >= 12:
        return (*meter((phase.count or 0) / phase.total, width - 1), (" ", "text"))
    if phase.total:
        return ((left(f"{_number(phase.count)}/{_number(phase.total)}", width), "dim"),)
    return ((" " * width, "text"),)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"


def _seconds(view: LaunchView, phase: PhaseView) -> str:
    if phase.state == "running" and phase.start is not None:
        return age(view.now - phase.start)
    if phase.state == "missing":
        since = phase.start if phase.start is not None else view.verdict.since
        return age(view.now - since)
    return duration(phase.seconds) if phase.seconds is not None else ""


def _tail(phase: PhaseView) -> str:
    if phase.state == "running" and phase.eta is not None:
        return f"ETA {about(phase.eta)}"
    if phase.usual is None or phase.state == "expected":
        return ""
    return f"usual {about(phase.usual) if phase.usual >= 0.5 else '<1 s'}"


def _tail_ink(phase: PhaseView) -> str:
    late = phase.usual and phase.seconds and phase.seconds > 2 * phase.usual
    return "warn" if late else "dim"


def _slow(phase: PhaseView, room: int) -> str:
    """What it usually takes, where there is no column for that and it took clearly longer."""
    seconds, usual = phase.seconds, phase.usual
    if seconds is None or not usual or seconds < SLOWER * usual or seconds - usual < LATE_SECONDS:
        return ""
    words = (_tail(phase), f"{seconds / usual:.1f}×")
    return next((word for word in words if cells(word) <= room), "")


def _progress(phase: PhaseView, width: int) -> Row:
    total = phase.total or 1
    share = (phase.count or 0) / total
    percent = f"{share:4.0%}".replace("%", " %")
    rate = f" · {_rate(phase.rate)}" if phase.rate else ""
    words = f" {_number(phase.count)}/{_number(phase.total)} {percent}{rate}"
    if phase.note:  # who is behind, in a silence where it stands: the first says more
        note = clean(phase.note)
        words = f" {note if len(note) < width - 14 else note.rpartition(' · ')[2]}"
    elif len(words) > width - 14:  # how many stands in the line above
        words = f"{percent}{rate}" if len(percent + rate) <= width - 14 else percent
    room = max(10, width - 4 - len(words))
    return fit((("  ", "text"), *meter(share, room), (words, "dim")), width)


def _rate(rate: float) -> str:
    return f"{rate:.1f}/s" if rate >= 0.5 else f"{1 / rate:.0f} s each"
