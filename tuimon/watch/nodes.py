"""Several hosts watched at once: a watching for each, and what they tell together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tuimon.config import Patience
from tuimon.launch.nodes import NodesView, together
from tuimon.launch.view import LaunchView
from tuimon.watch.board import broken
from tuimon.watch.watching import Action, Choosing, Watching

EVERY = 0.2
"""Seconds between two looks at all of them: 64 hosts tell something new at every moment, and the screen draws four
times a second."""
STOP_WITHIN = 3.0


class NodesWatch:
    """Watches the nodes of one launch; `view`, `ask` and `busy` are those of the node that was chosen."""

    def __init__(
        self, watches: Sequence[Watching], patience: Patience | None = None, *, clock: Callable[[], float] | None = None
    ) -> None:
        self.watches = tuple(watches)
        self.chosen = 0
        """Place of the node that is looked at."""
        self._patience = patience
        self._clock = clock or time.monotonic
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        """Held while one is started."""
        self._stopped = False
        self._failed: dict[int, LaunchView] = {}
        """Views of those that could not be started."""
        self._looked = self._clock()
        self._views = tuple(watch.view for watch in self.watches)
        self._nodes = together(self._views, patience)

    def start(self) -> None:
        """Begin; returns before anything is connected. 64 threads take longer to start than a frame may wait."""
        threading.Thread(target=self._start, name="tuimon-nodes", daemon=True).start()

    def _start(self) -> None:
        # Once, before all of them want it at the same moment. What is wrong with it each of them says for itself.
        with suppress(Exception):
            from tuimon.watch.grammars import choose  # noqa: PLC0415  0.06 s that the first frame need not wait for

            choose()
        for place, watch in enumerate(self.watches):
            with self._starting:
                if self._stopped:
                    return
                try:
                    watch.start()
                except Exception as error:  # noqa: BLE001  no more files, no more threads: the others are watched
                    self._failed[place] = broken(watch.view, error, watch.view.now)

    def stop(self) -> None:
        """End all of them at the same time; waits at most 3 s. None is started after that."""
        with self._starting:
            self._stopped = True
        stop_all([watch.stop for watch in self.watches], STOP_WITHIN)

    @property
    def nodes(self) -> NodesView:
        """What they tell together: the same object until something changed. From any thread."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= EVERY:
                self._looked = now
                views = tuple(self._failed.get(place, watch.view) for place, watch in enumerate(self.watches))
                if any(new is not old for new, old in zip(views, self._views, strict=True)):
                    self._views, self._nodes = views, together(views, self._patience)
            return self._nodes

    @property
    def view(self) -> LaunchView:
        """The latest snapshot of the node that was chosen."""
        return self.nodes.at(self.chosen).view

    def ask(self, action: Action) -> None:
        """Ask for an action on the host that was chosen."""
        self.watches[self.chosen].ask(action)

    def see(self, pid: int) -> None:
        """See this launch of the host that was chosen."""
        watch = self.watches[self.chosen]
        if isinstance(watch, Choosing):
            watch.see(pid)

    @property
    def busy(self) -> Action | None:
        """The action that is running on the host that was chosen."""
        return self.watches[self.chosen].busy


class Whole:
    """The launch as one, for those who look at a view."""

    def __init__(self, watching: NodesWatch) -> None:
        self._watching = watching

    @property
    def view(self) -> LaunchView:
        """The latest snapshot of all nodes together."""
        return self._watching.nodes.whole


def stop_all(stops: Sequence[Callable[[], object]], within: float) -> None:
    """Call all of them at once, each on a thread of its own; waits at most `within` seconds for all together."""
    threads = [threading.Thread(target=stop, name="tuimon-stop", daemon=True) for stop in stops]
    for thread in threads:
        thread.start()
    end = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
