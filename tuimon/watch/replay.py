"""ReplayWatch: a recording watched as if it were a host, on a thread of its own. Imports no SSH."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import get_args

from msgspec import structs

from tuimon.config import Settings
from tuimon.launch.view import LaunchView, State
from tuimon.recording.player import Player
from tuimon.recording.source import Source
from tuimon.recording.survey import Survey
from tuimon.watch.later import nothing_yet
from tuimon.watch.replaying import SPEEDS, Jump, Position, Spot
from tuimon.watch.watching import Action

TURN = 0.1
"""Seconds between moves while it plays."""
AGAIN = 1.0
"""Seconds after which an unchanged view is given anew: that is how the screen knows that somebody is there."""
SAID = 3.0
_STEP_MOST = 30.0
"""Seconds of a recording that one turn may go over, so that a machine too slow for the speed still shows something."""
Wish = Callable[[], float | str | None]
"""Where to go; a sentence where there is nothing to go to; None where that is not known yet."""


class ReplayWatch:
    """Plays a source: `start` begins to play, everything else is done by its own thread within a turn."""

    def __init__(
        self, source: Source, settings: Settings, *, speed: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._settings = settings
        self._clock = clock
        self._player: Player | None = None
        self._speed = speed
        self._playing = True
        self._wish: Wish | None = None
        self._said = ("", 0.0)
        self._asked: queue.SimpleQueue[Callable[[Player], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._given = 0.0
        begin = source.firsts[0] if source.firsts else source.end
        self._view = nothing_yet(source.host, begin)
        self._where = Position(begin, max(begin, source.end), begin, playing=True, speed=speed, known=begin)
        self._thread = threading.Thread(target=self._main, name="tuimon-replay", daemon=True)

    # Watching.

    def start(self) -> None:
        """Begin to play."""
        self._thread.start()

    def stop(self) -> None:
        """End; waits at most 3 s."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(3.0)

    @property
    def view(self) -> LaunchView:
        """The launch at this position."""
        return self._view

    def ask(self, action: Action) -> None:
        """Nothing can be asked of a recording; what was found then is in the views."""
        self._asked.put(lambda _: self._say(f"{action}: this is a recording, what was asked then is shown"))

    @property
    def busy(self) -> Action | None:
        """Nothing ever runs."""
        return None

    # Moving in time.

    @property
    def where(self) -> Position:
        """The position."""
        return self._where

    def toggle(self) -> None:
        """Play or pause; at the end, from the start."""
        self._asked.put(self._toggle)

    def faster(self, steps: int) -> None:
        """So many speeds up, or down where negative."""

        def change(_player: Player) -> None:
            nearest = min(range(len(SPEEDS)), key=lambda index: abs(SPEEDS[index] - self._speed))
            self._speed = SPEEDS[min(max(nearest + steps, 0), len(SPEEDS) - 1)]

        self._asked.put(change)

    def move(self, seconds: float) -> None:
        """So far ahead, or back where negative."""

        def aim(player: Player) -> None:
            self._aim(player, player.position + seconds)

        self._asked.put(aim)

    def go(self, *, end: bool) -> None:
        """To the start or the end."""
        self._asked.put(lambda player: self._aim(player, player.end if end else player.begin))

    def jump(self, kind: Jump, *, back: bool) -> None:
        """To the next mark of this kind, or the one before."""

        def aim(player: Player) -> None:
            self._wish = partial(_beside, player, kind, back=back)

        self._asked.put(aim)

    # The thread.

    def _main(self) -> None:
        survey = Survey(self._source, self._settings.patience)
        self._player = player = Player(self._source, self._settings.patience, survey)
        threading.Thread(target=survey.run, args=(self._stop,), name="tuimon-survey", daemon=True).start()
        last = self._clock()
        while not self._stop.wait(TURN):
            now = self._clock()
            try:
                self.turn(player, now - last)
            except Exception as error:  # noqa: BLE001  whatever a recording holds, the screen must live
                self._playing, self._wish = False, None
                self._say(f"replaying failed: {type(error).__name__}: {error}"[:300])
            last = now

    def turn(self, player: Player, seconds: float) -> None:
        """What is done each tenth of a second: wishes first, then so many seconds of playing."""
        while not self._asked.empty():
            self._asked.get()(player)
        before = player.position, player.glimpsed
        player.look_again()
        if self._wish is not None:
            self._follow(player, self._wish)
        elif self._playing:
            player.advance(min(seconds * self._speed, max(_STEP_MOST, TURN * self._speed)))
            self._playing = player.position < player.end
        self._give(player, moved=(player.position, player.glimpsed) != before)

    def _toggle(self, player: Player) -> None:
        self._playing = not self._playing
        if self._playing and player.position >= player.end:
            self._aim(player, player.begin)

    def _aim(self, player: Player, at: float) -> None:
        at = min(max(at, player.begin), player.end)
        self._wish = lambda: at

    def _follow(self, player: Player, wish: Wish) -> None:
        to = wish()
        if to is None:
            share = (player.survey.reached - player.begin) / max(1.0, player.end - player.begin)
            self._say(f"reading ahead: {share:.0%}")
            return
        self._wish = None
        self._said = ("", 0.0)
        if isinstance(to, str):
            self._say(to)
        else:
            player.seek(to)

    def _say(self, text: str) -> None:
        self._said = (text, self._clock() + SAID)

    def _give(self, player: Player, *, moved: bool) -> None:
        now = self._clock()
        if moved or self._view.now != player.now:
            self._view = player.view()
            self._given = now
        elif now - self._given >= AGAIN:
            self._view = structs.replace(self._view)
            self._given = now
        survey = player.survey
        then = player.then
        self._where = Position(
            player.begin, player.end, player.position, self._playing, self._speed, survey.reached,
            self._spots(survey),
            _state(then.state) if then is not None else None,
            tuple(self._source.notes), player.glimpsed, self._said[0] if now < self._said[1] else "",
        )  # fmt: skip

    def _spots(self, survey: Survey) -> tuple[Spot, ...]:
        marks = survey.marks
        if len(marks) == len(self._where.spots):
            return self._where.spots
        return tuple(Spot(mark.at, mark.kind, mark.text, mark.state) for mark in marks)


def _beside(player: Player, kind: Jump, *, back: bool) -> float | str | None:
    mark = player.beside(kind, back=back)
    if mark is not None:
        return mark.at
    if not back and not player.survey.done:
        return None
    return f"no {'earlier' if back else 'later'} {'change of the verdict' if kind == 'verdict' else 'milestone'}"


def _state(text: str) -> State | None:
    return next((state for state in get_args(State) if state == text), None)
