"""Signs of life, each with its own age: the evidence of every verdict."""

from __future__ import annotations

import re

from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView, SignView
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, Span, cells, clean, fit, left, right, shorten

FIRST = ("log", "GPU work", "host work", "answers", "disk reads", "compilers", "GPU memory", "stacks")
"""Which signs stay when there is no room for all."""
_STAMP = re.compile(r"^\[[^\]]*\d\d:\d\d:\d\d[^\]]*\]\s*")


class Signs(Pane):
    """When each sign was last seen."""

    TITLE = "Signs of life"

    def slice(self, view: LaunchView) -> object:
        return view.signs, int(view.now)

    def aside(self, view: LaunchView, room: int) -> str:  # noqa: ARG002  the same for every view
        return "last seen"

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        if not view.signs:
            return [(("none yet: nothing has been looked at", "dim"),)]
        return [row(sign, view.now, width) for sign in chosen(view.signs, height)]


def chosen(signs: tuple[SignView, ...], height: int) -> tuple[SignView, ...]:
    """At most `height` signs in their own order, the telling ones first to stay."""
    if len(signs) <= height:
        return signs
    rank = {name: place for place, name in enumerate(FIRST)}

    def weight(sign: SignView) -> tuple[bool, bool, int]:
        # What keeps a quiet launch alive must be on the screen, and the log always is.
        return not sign.visible, not sign.alive and sign.name != "log", rank.get(sign.name, len(rank))

    kept = sorted(signs, key=weight)[: max(1, height)]
    return tuple(sign for sign in signs if sign in kept)


def row(sign: SignView, now: float, width: int) -> Row:
    """`● GPU work      4 m 12 s ago   0 % everywhere`."""
    name = left(clean(sign.name), 13)
    room = 13 if width >= 46 else 9
    if not sign.visible:
        words = _text(sign, "faint", width - 15 - room)
        return fit((("– ", "faint"), (name, "faint"), (right("unseen", room), "faint"), words), width)
    mark = ("● ", "good") if sign.alive else ("○ ", "dim")
    when = "now" if sign.alive and sign.last is not None and now - sign.last < 1.5 else _when(sign, now, wide=room > 9)
    ink = "good" if sign.alive else "dim" if sign.last is None else "text"
    return fit((mark, (name, "text"), (right(when, room), ink), _text(sign, "dim", width - 15 - room)), width)


def _text(sign: SignView, ink: str, room: int) -> Span:
    # The age stands beside it: a line's own time stamp and rank need not.
    words = _STAMP.sub("", clean(sign.text)) if sign.name == "log" else _whole(clean(sign.text), room - 2)
    return f"  {shorten(words, room - 2)}", ink


def _whole(words: str, room: int) -> str:
    """As many whole parts of it as there is room for: half of a number says less than nothing."""
    parts = words.split(", ")
    kept = next((count for count in range(len(parts), 0, -1) if cells(", ".join(parts[:count])) <= room), 0)
    return ", ".join(parts[:kept]) or words


def _when(sign: SignView, now: float, *, wide: bool) -> str:
    if sign.last is None:
        return "never"
    return f"{age(now - sign.last)} ago" if wide else age(now - sign.last)
