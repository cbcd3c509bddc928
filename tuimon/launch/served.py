"""After ready: requests, queue, throughput and acceptance length as the log tells them."""

from __future__ import annotations

from tuimon.engines.matching import Found
from tuimon.launch.view import ServingView

USELESS = 1.05
"""Acceptance length up to which a draft model does nothing: 1.0 is the floor in every version."""
_BATCHES = 3  # in a row
POOR = 1.2
"""Acceptance length up to which fewer than one in five first guesses are right; one that fits guesses two of three."""
POOR_DRAFTS = 1000
"""Drafted tokens after which that is no chance."""


class Serving:
    """The last numbers, per replica where several speak."""

    def __init__(self) -> None:
        self._last: dict[tuple[str | None, str], tuple[Found, float]] = {}
        self._groups: dict[str, tuple[bool, bool]] = {}
        self._accept: float | None = None
        self._at: float | None = None
        self._poor = 0
        self._good = 0
        self.useless_draft = False
        self._drafted = 0
        self.last_tokens: float | None = None

    def line(self, found: Found, at: float) -> None:
        """A line of role serving, tokens or speculation. Numbers are read only when somebody asks: this runs for every
        batch of a busy server."""
        if found.rule.role == "tokens":
            self.last_tokens = at
            return
        fields, name = found.fields, found.rule.name
        self._at = at
        self._last[found.prefix.rank, name] = (found, at)
        groups = self._groups.get(name)
        if groups is None:
            names = fields.re.groupindex
            groups = self._groups[name] = ("tps" in names, "accept" in names)
        if groups[0] and (fields["tps"] or b"0").strip(b"0."):
            self.last_tokens = at
        if groups[1] and fields["accept"] is not None:
            drafted = found.number("drafted") if "drafted" in fields.re.groupindex else None
            self._acceptance(found.number("accept") or 0.0, int(drafted or 0))

    def _newest(self, name: str) -> float | None:
        """The newest value of a number, summed over the ranks that speak (one per replica)."""
        values: dict[str, tuple[float, float]] = {}
        for (rank, _), (found, at) in self._last.items():
            value = found.number(name)
            if value is not None and at >= values.get(rank or "", (0.0, at))[1]:
                values[rank or ""] = (value, at)
        return sum(value for value, _ in values.values()) if values else None

    @property
    def poor_draft(self) -> bool:
        """Hardly anything of what was drafted was accepted: normal for n-grams, not for a draft model."""
        return self._drafted >= POOR_DRAFTS

    def _acceptance(self, length: float, drafted: int) -> None:
        self._accept = length
        self._drafted = self._drafted + drafted if length <= POOR else 0
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
        running, queued = self._newest("running"), self._newest("queued")
        return ServingView(
            running=None if running is None else int(running),
            queued=None if queued is None else int(queued),
            tokens_per_second=self._newest("tps"),
            accept_length=self._accept,
            at=self._at,
        )
