"""A recording on the same screen: the app with a bar below it, and keys that move in time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen

from tuimon.config import Settings
from tuimon.launch.view import RED, LaunchView, State
from tuimon.ui.actions import ACTIONS, REPLAY, shown
from tuimon.ui.app import TuimonApp, bindings
from tuimon.ui.boardscreen import BoardScreen
from tuimon.ui.pane import Painted
from tuimon.ui.rows import Row, clean, cut, fit, spread, width_of
from tuimon.watch.replaying import Position, Replaying

LEAST_TRACK = 8
"""Cells of the track below which it is left out."""


class ReplayBar(Painted):
    """One line: playing or not, how fast, where, what lies ahead, and the keys."""

    DEFAULT_CSS = "ReplayBar { dock: bottom; width: 1fr; height: 1; }"

    class Sought(Message):
        """An instant of the recording is wanted."""

        def __init__(self, at: float) -> None:
            self.at = at
            super().__init__()

    def __init__(self, where: Position) -> None:
        super().__init__(id="replay")
        self.where = where
        self.keys: tuple[tuple[str, str], ...] = ()
        """(key, word), as they stand."""

    def slice(self, view: LaunchView) -> object:
        return self.where, self.keys, view.verdict.state

    @property
    def _now(self) -> State | None:
        return self.view.verdict.state if self.view is not None else None

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:  # noqa: ARG002  one line
        return [row(self.where, self._now, self.keys, width)]

    def on_click(self, event: events.Click) -> None:
        """Go to where the track was clicked."""
        start, room, _ = _parts(self.where, self._now, self.keys, self.size.width)
        cell = event.x - width_of(start)
        if room >= LEAST_TRACK and 0 <= cell < room:
            self.post_message(self.Sought((cell + 0.5) / room * (self.where.end - self.where.begin) + self.where.begin))


def row(where: Position, now: State | None, keys: tuple[tuple[str, str], ...], width: int) -> Row:
    """The bar in `width` cells: the keys go first, then the track."""
    start, room, end = _parts(where, now, keys, width)
    if room < LEAST_TRACK:
        return spread(start, end, width, "keytext")
    return fit((*start, *track(where, room), (" ", "keytext"), *end), width, "keytext")


def _parts(where: Position, now: State | None, keys: tuple[tuple[str, str], ...], width: int) -> tuple[Row, int, Row]:
    """What stands before the track, the cells that are left for it, and what stands behind."""
    start: Row = (
        (f" {'▶' if where.playing else '‖'} {where.speed:g}× ", "paused" if not where.playing else "key"),
        (f" {_clock(where.at - where.begin)} / {_clock(where.end - where.begin)} ", "keytext"),
    )
    end = _end(where, now, keys, (width - width_of(start)) // 2)
    return start, width - width_of(start) - width_of(end) - 1, end


def _end(where: Position, now: State | None, keys: tuple[tuple[str, str], ...], room: int) -> Row:
    if where.said:
        return ((cut(f" {clean(where.said)} ", room), "said"),)
    spans: list[tuple[str, str]] = []
    if where.glimpsed:
        read = (where.known - where.begin) / max(1.0, where.end - where.begin)
        spans.append((f" as if joined 2 m before · read {read:.0%} ", "headwarn"))
    if where.then is not None and where.then != now:
        spans.append((f" judged then: {where.then} ", "headwarn"))
    for key, word in keys:
        piece = [(f" {key}", "key"), (f" {word}", "keytext")]
        if width_of((*spans, *piece)) + 1 > room:
            break
        spans += piece
    return (*spans, (" ", "keytext")) if spans else ()


def track(where: Position, width: int) -> Row:
    """The whole recording in `width` cells: red stretches stand out by shape, what is not yet read is dotted."""
    length = max(where.end - where.begin, 0.001)
    here = min(width - 1, int((where.at - where.begin) / length * width))
    spans: list[tuple[str, str]] = []
    for cell, state in enumerate(_states(where, width, length)):
        known = where.begin + cell / width * length <= where.known
        shape, ink = _cell(state) if known else ("┈", "keyoff")
        spans.append(("●", "key") if cell == here else (shape, ink))
    return tuple(spans)


def _cell(state: State | None) -> tuple[str, str]:
    if state in RED:
        return "▒", "headbad"
    if state in {"ready", "serving", "finished"}:
        return "═", "headgood"
    return ("╌", "headwarn") if state == "quiet" else ("─", "keytext")


def _states(where: Position, width: int, length: float) -> list[State | None]:
    """The worst verdict within each cell: a short stall of a long day must be seen."""
    states: list[State | None] = [None] * width
    spots = [spot for spot in where.spots if spot.kind == "verdict"]
    for number, spot in enumerate(spots):
        until = spots[number + 1].at if number + 1 < len(spots) else where.end
        first = max(0, int((spot.at - where.begin) / length * width))
        last = max(first, int((until - where.begin) / length * width - 0.001))
        for cell in range(first, min(last + 1, width)):
            if states[cell] not in RED:
                states[cell] = spot.state
    return states


def _clock(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


class ReplayScreen(BoardScreen):
    """The board, and the bar below it."""

    def __init__(self, bar: ReplayBar) -> None:
        super().__init__()
        self.bar = bar

    def compose(self) -> ComposeResult:
        yield self.board
        yield self.bar

    def show(self, view: LaunchView) -> None:
        super().show(view)
        self.bar.show(view)


class ReplayApp(TuimonApp):
    """TuimonApp on a recording: space plays and pauses, what was recorded cannot be asked anew."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(REPLAY)

    def __init__(self, watching: Replaying, settings: Settings) -> None:
        self._replaying = watching
        self._bar = ReplayBar(watching.where)
        super().__init__(watching, settings)
        self.actions = (*REPLAY, *ACTIONS)
        self._told: set[str] = set()
        move, jump, go, faster = watching.move, watching.jump, watching.go, watching.faster
        self._moves: Mapping[str, Callable[[], None]] = {
            "replay_back": partial(move, -10.0),
            "replay_ahead": partial(move, 10.0),
            "replay_minute_back": partial(move, -60.0),
            "replay_minute_ahead": partial(move, 60.0),
            "replay_step_back": partial(self._step, -1.0),
            "replay_step": partial(self._step, 1.0),
            "replay_verdict_back": partial(jump, "verdict", back=True),
            "replay_verdict": partial(jump, "verdict", back=False),
            "replay_milestone_back": partial(jump, "milestone", back=True),
            "replay_milestone": partial(jump, "milestone", back=False),
            "replay_slower": partial(faster, -1),
            "replay_faster": partial(faster, 1),
            "replay_start": partial(go, end=False),
            "replay_end": partial(go, end=True),
        }

    def get_default_screen(self) -> Screen[None]:
        """The board with the bar."""
        return ReplayScreen(self._bar)

    def due(self) -> bool:
        """Also when only the position has changed."""
        return self._replaying.where is not self._bar.where or super().due()

    def tick(self) -> None:
        """Draw what is new, also where only the position is."""
        where = self._replaying.where
        for note in where.notes:
            if note not in self._told:
                self._told.add(note)
                self.say(f"this recording: {note}")
        self._bar.where = where
        self._bar.keys = self._bar_keys(where)
        super().tick()
        if self.screen is self._bar.screen and self._bar.is_mounted:
            self._bar.show(self.view)

    def _bar_keys(self, where: Position) -> tuple[tuple[str, str], ...]:
        def keys(*names: str) -> str:
            return "".join(shown(key) for name in names for key in self.by_id(name).keys[:1])

        return (
            (keys("pause"), "pause" if where.playing else "play"),
            (keys("replay_verdict_back", "replay_verdict"), "verdicts"),
            (keys("replay_back", "replay_ahead"), "10 s"),
            (keys("replay_slower", "replay_faster"), "speed"),
            (keys("replay_milestone_back", "replay_milestone"), "milestones"),
            (keys("replay_step_back", "replay_step"), "step"),
        )

    def action_press(self, name: str) -> None:
        """Move in time, or do what the table says."""
        move = self._moves.get(name)
        if move is None:
            super().action_press(name)
        else:
            move()

    def on_replay_bar_sought(self, message: ReplayBar.Sought) -> None:
        self._replaying.move(message.at - self._replaying.where.at)

    def freeze(self) -> None:
        """Space: hold the recording, or let it go on."""
        self._replaying.toggle()

    def _step(self, seconds: float) -> None:
        if self._replaying.where.playing:
            self._replaying.toggle()
        self._replaying.move(seconds)


def keys_from_terminal() -> None:
    """Standard input was the recording; now it is the terminal, which keys come from."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return  # no terminal: the screen cannot be shown either, and says so
    os.dup2(terminal, 0)
    os.close(terminal)
