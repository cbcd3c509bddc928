"""What is known, for everybody: events go in on the collector's thread, views come out on any."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol

import msgspec

from tuimon.errors import TuimonError
from tuimon.launch.events import OWN_ERROR, AnyEvent, Finding, Health, Sample, ServerFound, ServerGone
from tuimon.launch.view import LaunchView
from tuimon.watch.clock import Clock

REBUILD_AFTER = 0.25
"""A view is made at most four times a second: the screen draws no faster."""
REBUILD_WITHIN = 1.0
"""And at least once a second: ages count also when nothing happens."""
SAMPLE_DUE = 1.5
"""But where samples come each second the next one brings its view: one made just before is drawn for nothing."""


class Believing(Protocol):
    """What `tuimon.launch.state.Launch` does."""

    def apply(self, event: AnyEvent) -> None:
        """Take an event in."""

    def snapshot(self, now: float) -> LaunchView:
        """What is believed now."""


def broken(view: LaunchView, error: Exception, now: float) -> LaunchView:
    """An old view that says why there is no newer one: shown unchanged it would look like a verdict."""
    words = error.sentence() if isinstance(error, TuimonError) else f"{type(error).__name__}: {error}"
    return msgspec.structs.replace(view, now=now, broken=words[:300])


class Board:
    """Applies events to the launch, rebuilds its view, tells listeners. Errors of either end here, as findings."""

    def __init__(self, launch: Believing, clock: Clock) -> None:
        self.clock = clock
        self.sample: Sample | None = None
        """The last one."""
        self.server: ServerFound | None = None
        """The server that runs now."""
        self._launch = launch
        self._lock = threading.Lock()
        self._news = threading.Condition()
        self.changed = False
        """Something came that no view shows yet."""
        self.came = asyncio.Event()
        """Set when something comes; only for the collector's loop."""
        self._answer: tuple[object, ...] = ()
        """The last one of the server's."""
        self.on_view: Callable[[], None] = lambda: None
        """Called after each new view."""
        self._listeners: list[Callable[[AnyEvent], None]] = []
        self._reported: set[str] = set()
        self._made = clock.now()
        self._view = launch.snapshot(self._made)

    @property
    def view(self) -> LaunchView:
        """The latest view."""
        return self._view

    def listen(self, listener: Callable[[AnyEvent], None]) -> None:
        """Call `listener` with every event from now on, on the collector's thread."""
        self._listeners.append(listener)

    def post(self, event: AnyEvent) -> None:
        """Stamp an event with our clock and take it in."""
        event = msgspec.structs.replace(event, at=self.clock.now())
        if self._is_news(event):
            self.changed = True
            self.came.set()
        self._remember(event)
        try:
            with self._lock:
                self._launch.apply(event)
        except Exception as error:  # noqa: BLE001  whatever a host made us believe must not end the watching
            self.trouble("judging", error)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001  a full disk under the recorder must not end the watching
                self.trouble("recording", error)

    def trouble(self, where: str, error: BaseException) -> None:
        """Say an error of our own, once."""
        text = f"{where}: {type(error).__name__}: {error}"[:300]
        if text in self._reported or len(self._reported) > 50:
            return
        self._reported.add(text)
        self.post(Finding(source="tuimon", kind=OWN_ERROR, text=f"tuimon's own error while {text}", severity="warning"))

    def rest(self) -> float:
        """Seconds until it is time for a new view; until then only something new makes it sooner."""
        now = self.clock.now()
        flowing = self.sample is not None and now - self.sample.at < SAMPLE_DUE
        after = REBUILD_AFTER if self.changed else SAMPLE_DUE if flowing else REBUILD_WITHIN
        return max(0.0, self._made + after - now)

    def tick(self, *, at_once: bool = False) -> None:
        """Make a new view if it is time."""
        if self.rest() and not at_once:
            return
        now = self._made = self.clock.now()
        self.changed = False
        try:
            with self._lock:
                view = self._launch.snapshot(now)
        except Exception as error:  # noqa: BLE001  as in post; ages go on counting
            view = broken(self._view, error, now)
            self.trouble("judging", error)
        with self._news:
            self._view = view
            self._news.notify_all()
        self.on_view()

    def wait_for(self, predicate: Callable[[LaunchView], bool], timeout: float) -> LaunchView:
        """Block until a view satisfies `predicate`, or for `timeout` seconds; the latest view either way."""
        with self._news:
            self._news.wait_for(lambda: predicate(self._view), timeout)
            return self._view

    def _is_news(self, event: AnyEvent) -> bool:
        """False for the same answer again: it is asked for each second while a server starts."""
        if not isinstance(event, Health):
            return True
        before, self._answer = self._answer, (event.address, event.path, event.status, event.error)
        return before != self._answer

    def _remember(self, event: AnyEvent) -> None:
        if isinstance(event, Sample):
            self.sample = event
        elif isinstance(event, ServerFound):
            self.server = event
        elif isinstance(event, ServerGone) and self.server and self.server.pid == event.pid:
            self.server = None
