"""Remembers the launches of one watching, and tells it what was usual the last times."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from tuimon.history.errors import HistoryError
from tuimon.history.launched import Launched, launched
from tuimon.history.store import Store
from tuimon.launch.events import AnyEvent, Finding
from tuimon.launch.view import RED, LaunchView, ServerView

AGAIN = 30.0
"""Seconds after which a history that could not be written is tried again."""


class _Known(Struct):
    """The launch that is seen now."""

    server: ServerView
    started: float
    watched_ready: bool
    asked: bool = False
    kept: tuple[object, ...] = ()
    last: Launched | None = None


class Remembering:
    """`look` is called with each view, on a thread that may wait for the disk."""

    def __init__(self, host: str, post: Callable[[AnyEvent], None], store: Store | None = None) -> None:
        self._host = host
        self._post = post
        self._store = store or Store()
        self._known: _Known | None = None
        self._said: set[str] = set()
        self._not_before = 0.0

    def look(self, view: LaunchView) -> None:
        """Keep what is new: a milestone, a verdict, the end. Never raises for the disk: it is said, once."""
        server = view.server
        if server is None or view.link.state != "up" or view.broken:
            return
        known = self._known
        if known is None or (known.server.pid, known.server.launch) != (server.pid, server.launch):
            self._end(view)
            self._known = known = _Known(server, _started(view, server), view.health.ready_at is None)
        launch = launched(view, self._host, known.started, watched_ready=known.watched_ready)
        if launch is None or view.now < self._not_before:
            return
        try:
            self._ask(known, launch)
            self._keep(known, launch)
        except HistoryError as error:
            self._not_before = view.now + AGAIN
            self._say(error.sentence())
        for note in self._store.file.notes:
            self._say(note)

    def _ask(self, known: _Known, launch: Launched) -> None:
        if known.asked or launch.model is None:
            return
        usual = self._store.usual(launch)
        known.asked = True
        if usual is not None:
            self._post(usual)

    def _keep(self, known: _Known, launch: Launched) -> None:
        news = (launch.outcome, launch.kind, launch.ready, launch.model, tuple(launch.phases))
        if news != known.kept:
            self._store.keep(launch)
            known.kept, known.last = news, launch

    def _end(self, view: LaunchView) -> None:
        """A relaunch: how the launch before ended may have been seen only by the judge."""
        before = self._known
        ended = view.earlier[-1] if view.earlier else None
        if before is None or before.last is None or ended is None or ended.pid != before.server.pid:
            return
        if ended.state in RED or ended.state == "finished":
            try:
                self._store.keep(msgspec.structs.replace(before.last, outcome=ended.state, seen=view.now))
            except HistoryError as error:
                self._say(error.sentence())

    def _say(self, text: str) -> None:
        if text not in self._said and len(self._said) < 20:
            self._said.add(text)
            self._post(Finding(source="tuimon", kind="history", text=text, severity="warning"))


def _started(view: LaunchView, server: ServerView) -> float:
    if server.started is not None:
        return server.started
    return min((phase.start for phase in view.phases if phase.start is not None), default=view.now)
