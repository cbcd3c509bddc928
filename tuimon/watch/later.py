"""The launch, made while the host's program starts: its grammars take 0.1 s to compile, and nothing may wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from tuimon.config import Patience
from tuimon.launch.events import AnyEvent
from tuimon.launch.view import GrowthView, HealthView, LaunchView, LinkView, LogLine, Verdict
from tuimon.watch.board import Believing, broken

_MOST_EARLY = 1000
"""Events; it is made within 0.2 s of the first, so this is a bound and no plan."""


class Later:
    """A `Launch` that is made by `make`, or by the first look after an event."""

    def __init__(self, host: str, patience: Patience) -> None:
        self._host = host
        self._patience = patience
        self._launch: Believing | None = None
        self._making = threading.Lock()
        self._failure: Exception | None = None
        self._early: deque[AnyEvent] = deque()
        """What came before it was made: the link does not wait for it."""
        self._handing = threading.Lock()

    def make(self) -> Believing:
        """Make it, once; safe on any thread. Raises what making it raised, each time."""
        with self._making:
            if self._failure is not None:
                raise self._failure.with_traceback(None)  # or it grows by each of these
            if self._launch is None:
                try:
                    from tuimon.launch.state import Launch  # noqa: PLC0415  0.08 s, see above
                    from tuimon.watch.grammars import choose  # noqa: PLC0415

                    faults = choose()
                    launch = Launch(self._host, self._patience)
                    for fault in faults:
                        launch.apply(fault)
                    with self._handing:
                        while self._early:
                            launch.apply(self._early.popleft())
                        self._launch = launch
                except Exception as error:
                    self._failure = error
                    raise
            return self._launch

    def apply(self, event: AnyEvent) -> None:
        """Take an event in."""
        with self._handing:
            if self._launch is None and self._failure is None and len(self._early) < _MOST_EARLY:
                self._early.append(event)
                return
        (self._launch or self.make()).apply(event)

    def snapshot(self, now: float) -> LaunchView:
        """What is believed now; before the first event that nothing is known."""
        if self._launch is None and self._early:
            with suppress(Exception):  # kept, and said below
                self.make()
        if self._launch is not None:
            return self._launch.snapshot(now)
        view = nothing_yet(self._host, now)
        return view if self._failure is None else broken(view, self._failure, now)


def nothing_yet(host: str, now: float) -> LaunchView:
    """The view before anything was heard."""
    return LaunchView(
        now=now,
        host=host,
        link=LinkView(state="connecting", since=now),
        verdict=Verdict(state="unreachable", since=now, headline="connecting"),
        server=None,
        data_age=None,
        phases=(),
        growth=GrowthView(None, None, (), 1.0, None, None),
        gpus=None,
        gpu_note=None,
        signs=(),
        processes=None,
        health=HealthView(None, None, None, None, None, None, ()),
        serving=None,
        lines=_NoLines(),
    )


class _NoLines:
    """An empty logbook."""

    first = end = 0

    def __getitem__(self, number: int) -> LogLine:
        raise IndexError(number)

    def slice(self, start: int, stop: int) -> Sequence[LogLine]:
        del start, stop
        return ()
