"""Whether the stacks move: the decider when all else is ambiguous (a pure busy loop shows 100 % CPU and no sign).

A busy wait is no motion although its innermost frames flicker between samples (`wait` → `acquire`, changing lines).
So a rank moves when the frames *above* its two innermost ones differ, lines included, between two looks; or when three
looks running all show other function names: a loop around one wait has only so many shapes.
"""

from __future__ import annotations

from collections import deque

from tuimon.launch.events import RankStack, Stacks
from tuimon.launch.signs import Sign

FLICKER = 2
"""Innermost frames in which a wait may flicker."""
SHAPES = 3
FORGET_SECONDS = 60.0
"""Looks further apart than this are not compared: between them anything may have come and gone."""

Outer = tuple[tuple[str, str | None, int | None], ...]
Names = tuple[str, ...]


class StacksMoved(Sign):
    """Two nonblocking looks seconds apart differ in the main thread's frames."""

    name = "stacks"

    def __init__(self) -> None:
        super().__init__()
        self.hidden("read once it goes quiet", absent=True)
        self.looks = 0
        """Looks running without motion."""
        self.unreadable: str | None = None
        self._at: float | None = None
        self._outer: dict[int, Outer] = {}
        self._names: dict[int, deque[Names]] = {}

    def take(self, event: Stacks) -> None:
        """Compare one look with the one before."""
        stacks = _ranks(event)
        if not stacks:
            self.unreadable = event.unread[0].reason if event.unread else "no stacks came"
            if self.last is None:
                self.hidden(f"cannot be read: {self.unreadable}")
            return
        self.visible, self.absent, self.unreadable = True, False, None
        if self._at is not None and event.at - self._at > FORGET_SECONDS:
            self._outer.clear()
            self._names.clear()
            self.looks = 0
        # Every rank is compared, so that the memory of each stays whole.
        moved = [stack for stack in stacks if self._moves(stack)]
        self._at = event.at
        self.looks = 0 if moved else self.looks + 1
        if moved:
            self.seen(event.at)
            self.text = f"moved on {moved[0].rank or moved[0].pid}"
        else:
            self.text = "one look so far" if self.looks < 2 else f"unmoved in {self.looks} looks"

    def _moves(self, stack: RankStack) -> bool:
        frames = stack.threads[-1].frames if stack.threads else ()
        outer = tuple((frame.name, frame.file, frame.line) for frame in frames[FLICKER:])
        names = tuple(frame.name for frame in frames)
        before = self._outer.get(stack.pid)
        self._outer[stack.pid] = outer
        shapes = self._names.setdefault(stack.pid, deque(maxlen=SHAPES))
        shapes.append(names)
        other_shapes = len(shapes) == SHAPES and len(set(shapes)) == SHAPES
        return (before is not None and before != outer) or other_shapes


def _ranks(event: Stacks) -> tuple[RankStack, ...]:
    """Ranks only, where any is named: the front process answers our own health questions and moves by that."""
    named = tuple(stack for stack in event.ranks if stack.rank is not None)
    return named or event.ranks
