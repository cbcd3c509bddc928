"""What the health endpoint says, and what it proves. A 200 proves that HTTP works; only some paths prove more."""

from __future__ import annotations

from collections import deque
from typing import Literal

from tuimon.launch.events import Health
from tuimon.launch.view import HealthView

HISTORY = 120
Mark = Literal["ok", "open", "refused", "error", "timeout", "gap"]


class HealthStrip:
    """Answers of the health endpoint, oldest first. Instants are tuimon's clock."""

    def __init__(self) -> None:
        self.event: Health | None = None
        self.ready_at: float | None = None
        """First answer that proves that the server can serve."""
        self.http_at: float | None = None
        """First 2xx of any path: proves HTTP only. SGLang answers `/model_info` while its warm-up request may hang."""
        self.last_2xx: float | None = None
        self.answered_at: float | None = None
        """Last answer that was not an error of the server."""
        self.reached = False
        """It ever answered anything, be it "not yet": what comes later and does not come is its own failure."""
        self.stranger: int | None = None
        """The pid that listens on our port without belonging to the server."""
        self.bad_since: float | None = None
        """First of the bad answers running now."""
        self.bad = 0
        """How many bad answers running."""
        self._history: deque[Mark] = deque(maxlen=HISTORY)

    def see(self, event: Health, tree: frozenset[int]) -> None:
        """Take one answer; `tree` = pids of the server."""
        self.event = event
        known = event.listener is not None and tree
        self.stranger = event.listener if known and event.listener not in tree else None
        mark = _mark(event)
        self._history.append(mark)
        self.reached |= self.stranger is None and (mark == "open" or event.status is not None)
        if mark in {"ok", "open"} and self.stranger is None:
            self.answered_at = event.at
            self.bad_since, self.bad = None, 0
            if event.status is not None and 200 <= event.status < 300:
                self.last_2xx = event.at
                self.http_at = event.at if self.http_at is None else self.http_at
                if self.ready_at is None and "health" in (event.path or ""):
                    self.ready_at = event.at
            return
        self.bad_since = event.at if self.bad_since is None else self.bad_since
        self.bad += 1

    def gap(self) -> None:
        """Nobody asked for a while."""
        if self._history and self._history[-1] != "gap":
            self._history.append("gap")

    @property
    def mark(self) -> Mark | None:
        """The last answer."""
        return _mark(self.event) if self.event else None

    def words(self) -> str:
        """`/health 200`, `/health times out`, `port refused`."""
        if self.event is None:
            return "health not asked yet"
        where = self.event.path or f"port at {self.event.address}"
        if self.event.error is not None:
            return f"{where} {'times out' if self.mark == 'timeout' else self.event.error}"
        return f"{where} {self.event.status if self.event.status is not None else 'open'}"

    def view(self, ready_at: float | None) -> HealthView:
        """For the screen."""
        event = self.event
        return HealthView(
            address=event.address if event else None,
            path=event.path if event else None,
            last=event.at if event else None,
            status=event.status if event else None,
            error=event.error if event else None,
            latency=event.latency if event else None,
            history=tuple(self._history),
            ready_at=ready_at,
            answered_at=self.answered_at,
        )


def _mark(event: Health) -> Mark:
    if event.error is not None:
        low = event.error.lower()
        if "time" in low:
            return "timeout"
        return "refused" if "refused" in low else "error"
    if event.status is None:
        return "open"
    if event.status >= 500:
        return "error"
    return "ok"
