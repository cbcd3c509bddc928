"""The last line: keys that can be pressed now, or one line that was said.

Our own: Textual's Footer leaks five widgets on each refresh of the bindings (measured: 125 KiB and 25 ms a call).
"""

from __future__ import annotations

from textual import events

from tuimon.launch.view import LaunchView
from tuimon.ui.pane import Painted, Pressed
from tuimon.ui.rows import Row, cells, clean, fit, spread, width_of


class Footer(Painted):
    """One line; clicking a key presses it."""

    def __init__(self, *, id: str) -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.keys: tuple[tuple[str, str, str, bool], ...] = ()
        """(action id, key, word, enabled), as they stand."""
        self.order: tuple[str, ...] = ()
        """Action ids, what stays longest first."""
        self.said = ""
        self.paused = ""
        self.troubled = ""
        """What went wrong in tuimon itself, and where it is told."""
        self._spots: list[tuple[int, int, str]] = []
        """Where a click presses what: from this cell to before that one, an action."""

    def slice(self, view: LaunchView) -> object:  # noqa: ARG002  shows the keys, not the launch
        return self.keys, self.said, self.paused, self.troubled

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:  # noqa: ARG002
        end: Row = ((f" {self.troubled} ", "headwarn"),) if self.troubled and width >= 60 else ()
        self._spots = [(width - width_of(end), width, "findings")]
        if self.paused:
            end = (*end, (f" {self.paused} ", "paused"))
            self._spots = [(width - cells(self.paused) - 2, width, "pause")]
        room = width - width_of(end) - 1
        start = fit(((f" {clean(self.said)} ", "said"),), max(1, room), "said") if self.said else self._line(room)
        return [spread(start, end, width, "keytext")]

    def _line(self, width: int) -> Row:
        sizes = {action: len(key) + len(word) + 3 for action, key, word, _ in self.keys}
        kept = self._kept(sizes, width)
        spans: list[tuple[str, str]] = []
        at = 0
        for action, key, word, enabled in self.keys:
            if action not in kept:
                continue
            spans += [(f" {key}", "key" if enabled else "keyoff"), (f" {word} ", "keytext" if enabled else "keyoff")]
            self._spots.append((at, at + sizes[action], action))
            at += sizes[action]
        return tuple(spans)

    def _kept(self, sizes: dict[str, int], width: int) -> set[str]:
        """What fits: all, else the enabled ones by importance."""
        if sum(sizes.values()) <= width:
            return set(sizes)
        enabled = {action for action, _, _, able in self.keys if able}
        kept: set[str] = set()
        room = width
        for action in self.order:
            if action in enabled and sizes[action] <= room:
                kept.add(action)
                room -= sizes[action]
        return kept

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._spots:
            if start <= event.x < end:
                self.post_message(Pressed(action))
