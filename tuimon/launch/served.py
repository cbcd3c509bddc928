"""After ready: requests, queue, throughput and acceptance length as the log tells them."""

from __future__ import annotations

from tuimon.engines.matching import Found
from tuimon.launch.view import ServingView

USELESS = 1.05
"""Acceptance length up to which a draft model does nothing: 1.0 is the floor in every version."""
_BATCHES = 3  # in a row


class Serving:
    """The last numbers, per replica where several speak."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._queued: dict[str, int] = {}
        self._rate: dict[str, float] = {}
        self._accept: float | None = None
        self._at: float | None = None
        self._poor = 0
        self._good = 0
        self.useless_draft = False
        self.last_tokens: float | None = None

    def line(self, found: Found, at: float) -> None:
        """A line of role serving, tokens or speculation."""
        if found.rule.role == "tokens":
            self.last_tokens = at
            return
        who = found.prefix.rank or ""
        running, queued, rate = found.number("running"), found.number("queued"), found.number("tps")
        if running is not None:
            self._running[who], self._at = int(running), at
        if queued is not None:
            self._queued[who] = int(queued)
        if rate is not None:
            self._rate[who] = rate
            if rate > 0:
                self.last_tokens = at
        accept = found.number("accept")
        if accept is not None:
            self._acceptance(accept)
            self._at = at

    def _acceptance(self, length: float) -> None:
        self._accept = length
        self._poor = self._poor + 1 if length <= USELESS else 0
        self._good = self._good + 1 if length > USELESS else 0
        if self._poor >= _BATCHES:
            self.useless_draft = True
        elif self._good >= _BATCHES:
            self.useless_draft = False

    def view(self) -> ServingView | None:
        """None before any such line."""
        if self._at is None:
            return None
        return ServingView(
            running=sum(self._running.values()) if self._running else None,
            queued=sum(self._queued.values()) if self._queued else None,
            tokens_per_second=sum(self._rate.values()) if self._rate else None,
            accept_length=self._accept,
            at=self._at,
        )
