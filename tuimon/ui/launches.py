"""The launches on the host, where several run: a digit chooses the one to see."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import ClassVar

from textual.binding import Binding, BindingType

from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView, RunningView
from tuimon.ui.rows import Row, clean, fit
from tuimon.ui.sheet import SheetScreen
from tuimon.watch.watching import Choosing, Watching

MOST = 9


class LaunchesScreen(SheetScreen):
    """All of them, newest first."""

    TITLE = "Launches on this host"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(number), f"choose({number})", f"launch {number}", show=False, priority=True)
        for number in range(1, MOST + 1)
    ]

    def __init__(self, watching: Watching, say: Callable[[str], None], findings: str) -> None:
        """`findings` is the key that shows earlier launches."""
        super().__init__()
        self._findings = findings
        self._watching = watching
        self._say = say
        self._shown: tuple[RunningView, ...] = ()

    def slice(self, view: LaunchView) -> object:
        return view.launches, int(view.now)

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        self._shown = view.launches[:MOST]
        lines = [_row(number, one, view.now, width) for number, one in enumerate(self._shown, 1)]
        kept = f"what was seen of this one stays among the earlier launches ({self._findings})"
        return [*lines, (), *(((piece, "dim"),) for piece in wrap(f"a digit or a click shows that one; {kept}", width))]

    def clicked(self, line: int) -> None:
        self.action_choose(line + 1)

    def action_choose(self, number: int) -> None:
        """See the launch of this row."""
        if number > len(self._shown):
            return
        if isinstance(self._watching, Choosing):
            self._watching.see(self._shown[number - 1].pid)
            self.app.pop_screen()
        else:
            self._say("a recording shows what was watched")


def _row(number: int, one: RunningView, now: float, width: int) -> Row:
    old = "" if one.started is None else f" · for {age(now - one.started)}"
    port = "" if one.port is None else f" · port {one.port}"
    words = f"pid {one.pid} · {clean(one.engine or 'unknown')} · {clean(one.model or 'model unknown')}{port}{old}"
    seen = "  ◂ seen now" if one.watched else ""
    return fit(((f" {number} ", "accent"), (words, "strong" if one.watched else "text"), (seen, "dim")), width)
