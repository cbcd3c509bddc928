"""Advice on the screen: an act is a key, the user's own where it was moved."""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.launch.steps import Act, Advice
from tuimon.ui.actions import ACTIONS, Action, shown

_keys: dict[str, str] = {}
_words: dict[str, str] = {}


def use(actions: Sequence[Action]) -> None:
    """The table that holds from now on, in all of this process."""
    _keys.clear()
    _keys.update({action.id: shown(action.keys[0]) for action in actions if action.keys})
    _words.update({action.id: action.word for action in actions})


use(ACTIONS)


def pressing(advice: Advice | None) -> str:
    """The advice with its keys; empty without one."""
    return advice.words(_press) if advice is not None else ""


def _press(act: Act) -> str:
    # An action whose key went to another one is still in the palette.
    return f"press {_keys[act]}" if act in _keys else f"choose {_words[act]}"
