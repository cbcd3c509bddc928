"""The hosts that an assistant asks about, watched on between its questions: a verdict needs more than one look."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tuimon.errors import TuimonError
from tuimon.headless import stacks
from tuimon.headless.diagnose import Heard
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tuimon.config import Settings
    from tuimon.launch.events import Report
    from tuimon.launch.view import LaunchView
    from tuimon.watch.watching import Action

KEPT = 8
"""Hosts watched on between the questions, a launch's nodes; the one not asked about for longest goes first."""
MOST = 32
"""Hosts watched at once, for questions that are asked at the same time."""
QUESTION = 60.0
"""Seconds that a question may take: so long its host is not let go."""
IDLE = 900.0
"""Seconds without a question after which a host is left alone."""


class NotAllowed(TuimonError):
    """The user named the hosts that may be asked about, and this is none of them."""


class TooMany(TuimonError):
    """So many hosts are not asked about at once by anybody who wants an answer."""


class _Watched(Struct):
    watching: LiveWatch
    asked: float
    heard: Heard


class Watches:
    """Host → its watching, made at the first question. `only`: the hosts that may be asked about, () = any."""

    def __init__(self, settings: Settings, only: Sequence[str] = ()) -> None:
        self._settings = settings
        self._only = frozenset(only)
        self._watched: dict[str, _Watched] = {}
        self._lock = threading.Lock()

    def of(self, host: str) -> LiveWatch:
        """The watching of this host. Raises HostError, NotAllowed, TooMany."""
        if self._only and host not in self._only:
            raise NotAllowed(f"{host!r} may not be asked about", f"Allowed here: {', '.join(sorted(self._only))}")
        now = time.monotonic()
        with self._lock:
            known = self._watched.get(host)
            refused = known is not None and known.watching.view.link.state == "refused"
            old = [self._watched.pop(host)] if refused else []  # the user may have acted since
            if known is None or refused:
                if sum(now - other.asked < QUESTION for other in self._watched.values()) >= MOST:
                    raise TooMany(f"{MOST} hosts are being watched already", "Ask again in a minute")
                known = _Watched(LiveWatch(host, self._settings), now, Heard())
                known.watching.on_event(known.heard.take)
                known.watching.start()
                self._watched[host] = known
            known.asked = now
            old += self._outdated(now)
        _stop(old)
        return known.watching

    def _outdated(self, now: float) -> list[_Watched]:
        by_age = sorted(self._watched.items(), key=lambda item: item[1].asked)
        spare = len(by_age) - KEPT
        names = [
            name
            for place, (name, known) in enumerate(by_age)
            if now - known.asked > (QUESTION if place < spare else IDLE)
        ]
        return [self._watched.pop(name) for name in names]

    def look(self, host: str, limit: float) -> LaunchView:
        """A new look at the stacks there; the view that has it, or says why not."""
        end = time.monotonic() + limit
        watching = self.of(host)
        view = watching.wait_for(stacks.found, min(stacks.FINDING, limit))
        if view.server is None or not view.processes:
            return view
        before = view.stacks
        watching.ask("stacks")
        return watching.wait_for(
            lambda view: stacks.looked(view) and (view.stacks is not before or view.link.state != "up"),
            max(0.0, end - time.monotonic()),
        )

    def heard(self, host: str) -> Heard:
        """What the looks at this host found."""
        with self._lock:
            known = self._watched.get(host)
        return known.heard if known is not None else Heard()

    def report(self, host: str, action: Action, limit: float) -> tuple[Report | None, LaunchView]:
        """Ask for an action there; its report, None where none came in time, and what is seen then."""
        end = time.monotonic() + limit
        watching = self.of(host)
        view = watching.wait_for(stacks.found, min(stacks.FINDING, limit))
        if view.link.state != "up":
            return None, view
        before = view.report(action)
        watching.ask(action)
        view = watching.wait_for(lambda view: view.report(action) is not before, max(0.0, end - time.monotonic()))
        after = view.report(action)
        return (after if after is not before else None), view

    def close(self) -> None:
        """End every watching."""
        with self._lock:
            watched, self._watched = list(self._watched.values()), {}
        _stop(watched)


def _stop(watched: Sequence[_Watched]) -> None:
    """End them, all at once: each may take 3 s."""
    stopping = [threading.Thread(target=known.watching.stop) for known in watched]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join()
