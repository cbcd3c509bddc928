"""The last line: keys that can be pressed now, or one line that was said.

Our own: Textual's Footer leaks five widgets on each refresh of the bindings (measured: 125 KiB and 25 ms a call).
"""

from __future__ import annotations

from textual import events
from textual.message import Message

from tuimon.launch.view import LaunchView
from tuimon.ui.pane import Painted
from tuimon.ui.rows import Row, clean, fit, spread, width_of


class Footer(Painted):
    """One line; clicking a key presses it."""

    class Pressed(Message):
        """A key of the footer was clicked."""

        def __init__(self, action: str) -> None:
            self.action = action
            super().__init__()

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

    def slice(self, view: LaunchView) -> object:  # noqa: ARG002  shows the keys, not the launch
        return self.keys, self.said, self.paused, self.troubled

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:  # noqa: ARG002
        end: Row = ((f" {self.troubled} ", "headwarn"),) if self.troubled and width >= 60 else ()
        if self.paused:
            end = (*end, (f" {self.paused} ", "paused"))
        if self.said:
            self._spots = []
            return [
                spread(
                    fit(((f" {clean(self.said)} ", "said"),), max(1, width - width_of(end) - 1), "said"),
                    end,
                    width,
                    "keytext",
                )
            ]
        return [spread(self._line(width - width_of(end) - 1), end, width, "keytext")]

    def _line(self, width: int) -> Row:
        sizes = {action: len(key) + len(word) + 3 for action, key, word, _ in self.keys}
        kept = self._kept(sizes, width)
        self._spots = []
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
                self.post_message(self.Pressed(action))
