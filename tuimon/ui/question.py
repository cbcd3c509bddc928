"""What asks before it is done: cost and risk first, then y; what kills the server asks again, for another key."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType

from tuimon.diagnose.rungs import Rung, rung_of
from tuimon.launch.view import LaunchView
from tuimon.ui.reports import body
from tuimon.ui.rows import Row, fit
from tuimon.ui.sheet import SheetScreen


class QuestionScreen(SheetScreen):
    """Shall it be done? Any key but the one asked for leaves everything as it is."""

    TITLE = "Before this is done"
    KEYS = ("back", "quit")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(1)", "yes", show=False, priority=True),
        Binding("K", "answer(2)", "kill", show=False, priority=True),
    ]

    def __init__(self, action: str, opened: float, yes: Callable[[], None]) -> None:
        super().__init__()
        rung = rung_of(action)
        assert rung is not None  # noqa: S101  only actions of the ladder ask
        self._rung: Rung = rung
        self._opened = opened
        self._yes = yes
        self._answered = 0
        self._view: LaunchView | None = None

    def slice(self, view: LaunchView) -> object:
        self._view = view
        return self._answered, view.report("aim"), view.findings[-1:]

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        rung = self._rung
        rows: list[Row] = [
            fit(((rung.name, "strong"),), width),
            fit((("takes ", "dim"), (rung.cost, "text")), width),
            fit((("risk  ", "dim"), (rung.risk, "warn" if rung.asks > 1 else "text")), width),
            (),
        ]
        if rung.asks > 1:
            rows += self._consequence(view, width)
        return [*rows, *self._wanted(view, width)]

    def _consequence(self, view: LaunchView, width: int) -> list[Row]:
        report = view.report("aim")
        if report is None or report.at < self._opened:
            return [(("reading what the signal would do…", "accent"),), ()]
        return [*body(report.text, width), ()]

    def _wanted(self, view: LaunchView, width: int) -> list[Row]:
        if not self._ready(view):
            return [fit((("Esc leaves", "dim"),), width)]
        if self._answered == 0:
            return [fit((("y", "accent"), (" does it · Esc leaves everything as it is", "text")), width)]
        words = " (capital) sends the signal now: the server goes down · Esc leaves everything as it is"
        return [fit((("K", "accent"), (words, "warn")), width)]

    def _ready(self, view: LaunchView) -> bool:
        """Whether everything that the answer depends on is known."""
        report = view.report("aim")
        return self._rung.asks < 2 or (report is not None and report.at >= self._opened and not report.unread)

    def action_answer(self, number: int) -> None:
        """y, then K where the risk is a dead server."""
        if self._view is None or not self._ready(self._view) or number != self._answered + 1:
            return
        self._answered = number
        if self._answered == self._rung.asks:
            self._yes()
