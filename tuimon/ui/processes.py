"""Processes by rank: what state, waiting in what, how busy, how big; equal ones in one row."""

from __future__ import annotations

from tuimon.launch.view import LaunchView, ProcessView
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, cells, clean, fit, left, right, width_of
from tuimon.ui.words import percent, size, waits

STATES = {"Z": "bad", "X": "bad", "T": "bad", "t": "bad", "D": "warn", "R": "good"}


class Processes(Pane):
    """The server's process tree."""

    TITLE = "Processes"

    def slice(self, view: LaunchView) -> object:
        return view.processes, view.server is None

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  the rest can be scrolled
        if view.processes is None:
            return [(("not seen yet", "dim"),)]
        if not view.processes:
            return [(("all gone" if view.server else "no server", "dim"),)]
        longest = max(cells(_label(process)) for process in view.processes)
        return [row(process, width, longest) for process in view.processes]


def _label(process: ProcessView) -> str:
    return " " * min(process.depth, 4) + clean(process.label)


def row(process: ProcessView, width: int, longest: int) -> Row:
    """One group of processes."""
    sized = longest <= width - 28  # a rank that cannot be told is worth more than a size
    name_width = max(10, min(longest, width - (28 if sized else 21)))
    ink = "suspect" if process.suspect else "text"
    state = next((STATES[letter] for letter in process.states if letter in STATES), "dim")
    cpu = "" if process.cpu is None else f"{process.cpu:.1f} %" if process.cpu < 99.5 else percent(process.cpu)
    line: list[tuple[str, str]] = [
        (left(_label(process), name_width) + " ", ink),
        (f"{left(process.states, 2)} ", state),
        (left(waits(clean(process.waits_in or "")), 8), "dim"),
        (right(cpu, 7), "text" if process.cpu else "dim"),
        (right("" if process.rss is None else size(process.rss), 7) if sized else "", "dim"),
        (" ◀" if process.suspect else "  ", "suspect"),
    ]
    if process.note and width - width_of(tuple(line)) >= 8:
        line.append((f" {clean(process.note)}", "warn"))
    return fit(tuple(line), width)
