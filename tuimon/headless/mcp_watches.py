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

MOST = 4
"""Hosts watched at once; the one not asked about for longest goes first."""
IDLE = 900.0
"""Seconds without a question after which a host is left alone."""


class NotAllowed(TuimonError):
    """The user named the hosts that may be asked about, and this is none of them."""


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
        """The watching of this host. Raises HostError, NotAllowed."""
        if self._only and host not in self._only:
            raise NotAllowed(f"{host!r} may not be asked about", f"Allowed here: {', '.join(sorted(self._only))}")
        now = time.monotonic()
        with self._lock:
            known = self._watched.get(host)
            if known is None:
                known = _Watched(LiveWatch(host, self._settings), now, Heard())
                known.watching.on_event(known.heard.take)
                known.watching.start()
                self._watched[host] = known
            known.asked = now
            old = self._outdated(now)
        for watched in old:
            watched.watching.stop()
        if known.watching.view.link.state == "refused":
            known.watching.retry()  # the user may have acted since
        return known.watching

    def _outdated(self, now: float) -> list[_Watched]:
        by_age = sorted(self._watched.items(), key=lambda item: item[1].asked)
        spare = len(by_age) - MOST
        names = [name for place, (name, known) in enumerate(by_age) if place < spare or now - known.asked > IDLE]
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

    def report(self, host: str, action: Action, limit: float) -> Report | None:
        """Ask for an action there; its report, None where none came in time."""
        watching = self.of(host)
        view = watching.wait_for(stacks.found, min(stacks.FINDING, limit))
        before = view.report(action)
        watching.ask(action)
        after = watching.wait_for(lambda view: view.report(action) is not before, limit).report(action)
        return after if after is not before else None

    def close(self) -> None:
        """End every watching."""
        with self._lock:
            watched, self._watched = list(self._watched.values()), {}
        for known in watched:
            known.watching.stop()
