"""Three plain screens: the commands that were sent to the host, what was found, and the help."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from tuimon.launch.lasting import age
from tuimon.launch.view import RED, EarlierLaunch, Episode, LaunchView
from tuimon.ui.actions import Action, keys_of
from tuimon.ui.banner import NAMES
from tuimon.ui.brief import reasons
from tuimon.ui.pressing import pressing
from tuimon.ui.reasons import reason
from tuimon.ui.rows import Row, clean, fit, left
from tuimon.ui.sheet import SheetScreen
from tuimon.ui.words import clock

KEY = 13
"""Cells of the column of keys in the help."""


class CommandsScreen(SheetScreen):
    """Every command that was sent to the host, newest first."""

    TITLE = "Commands sent to the host"

    def slice(self, view: LaunchView) -> object:
        return view.commands, view.probe_cost

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        cost = "cost unknown" if view.probe_cost is None else f"{view.probe_cost:.1f} % of one core there"
        head: Row = fit(
            ((f"{len(view.commands)} commands on {clean(view.host)} · the probe takes {cost}", "dim"),), width
        )
        if not view.commands:
            return [head, (), (("nothing has been sent yet", "dim"),)]
        return [head, (), *_listed(tuple(reversed(view.commands)), width)]


class FindingsScreen(SheetScreen):
    """Everything that was found, in one place."""

    TITLE = "Findings"

    def slice(self, view: LaunchView) -> object:
        running = any(one.end is None for one in view.episodes)
        return (
            view.findings, view.episodes, view.earlier, view.error, view.stacks, _no_link(view), _now(view),
            int(view.now) if running else None,
        )  # fmt: skip

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        parts = (
            ("Now", _now(view)),
            ("Why there is no link", _no_link(view)),
            ("First error of the log", [view.error] if view.error else []),
            ("Findings", list(view.findings)),
            ("Red moments", [_episode(one, view.now) for one in view.episodes]),
            ("Earlier launches", [_earlier(one) for one in view.earlier]),
            ("Stacks", [view.stacks.saved] if view.stacks and view.stacks.saved else []),
        )
        lines: list[Row] = []
        for name, texts in parts:
            if texts:
                lines += [((name, "title"),), *_listed(texts, width), ()]
        return lines or [(("nothing has been found yet", "dim"),)]


def _no_link(view: LaunchView) -> list[str]:
    link = view.link
    return [words for words in (link.reason, link.detail) if words] if link.state in {"lost", "refused"} else []


def _now(view: LaunchView) -> list[str]:
    """The verdict with all that it rests on; a small banner has room for some of it."""
    verdict = view.verdict
    if verdict.state not in RED:
        return []
    who = [f"{one.rank or f'pid {one.pid}'}: {one.reason}" for one in verdict.suspects]
    return [
        f"{NAMES[verdict.state]}: {verdict.headline}",
        *([f"suspect {one}" for one in who]),
        *(f"{one.milestone}: {one.because}" for one in verdict.missing),
        *([", ".join(reasons(view))] if reasons(view) else []),
        *([verdict.countdown] if verdict.countdown else []),
        *([f"cannot be seen here: {', '.join(verdict.unseen)}"] if verdict.unseen else []),
        *([pressing(verdict.advice)] if verdict.advice else []),
    ]


def _episode(one: Episode, now: float) -> str:
    names = ", ".join(suspect.rank or f"pid {suspect.pid}" for suspect in one.suspects)
    where = f" in {one.phase}" if one.phase else ""
    kind = f" ({one.kind})" if one.kind else ""
    lasted = f"for {age(now - one.start)} so far" if one.end is None else f"for {age(one.end - one.start)}"
    return f"{clock(one.start)} {one.state} {lasted}{where}{kind} {names}".rstrip()


def _earlier(one: EarlierLaunch) -> str:
    ready = "" if one.ready_at is None else f", ready after {age(one.ready_at - one.began)}"
    return f"launch {one.launch}, pid {one.pid}, {clock(one.began)}{ready}: {one.state} · {one.headline}"


def _listed(texts: Sequence[str], width: int) -> list[Row]:
    """Each text wrapped, the second line on indented."""
    lines: list[Row] = []
    for text in texts:
        pieces = wrap(clean(text), width - 2, subsequent_indent="    ", break_long_words=True, break_on_hyphens=False)
        lines += [((("▸ " if not place else "  "), "faint"), (piece, "text")) for place, piece in enumerate(pieces)]
    return lines


class HelpScreen(SheetScreen):
    """All actions with their keys; those that cannot be used now say why."""

    TITLE = "Help"
    NARROWS = True
    KEYS = ("search", *SheetScreen.KEYS)

    def __init__(self, actions: tuple[Action, ...]) -> None:
        super().__init__()
        self._actions = actions
        self._wanted = ""

    def narrow(self, text: str) -> None:
        self._wanted = text.strip().lower()

    def slice(self, view: LaunchView) -> object:
        return self._wanted, tuple(reason(action, view) for action in self._actions)

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        lines: list[Row] = []
        shown = [action for action in self._actions if self._wanted in _text(action)]
        if self._wanted:
            many = f"{len(shown)} of {len(self._actions)} keys have “{clean(self._wanted)}”"
            lines += [((many, "dim"),), ()]
        for name, actions in groupby(shown, key=lambda action: action.group):
            lines += [((name, "title"),)]
            lines += [line for action in actions for line in _lines(action, view, width)]
            lines.append(())
        return lines if self._wanted else [*lines, *_legend(width)]


def _text(action: Action) -> str:
    """What a search looks through."""
    return f"{keys_of(action)} {action.word} {action.help} {action.group}".lower()


def _lines(action: Action, view: LaunchView, width: int) -> list[Row]:
    why = reason(action, view)
    words = f"{action.help} ({why})" if why else action.help
    return _beside(keys_of(action), words, width, *(("faint", "faint") if why else ("accent", "text")))


def _beside(word: str, words: str, width: int, ink: str, text: str) -> list[Row]:
    """A key and all of its help: a sentence often ends in what matters."""
    pieces = wrap(words, max(20, width - KEY - 2), break_on_hyphens=False)
    return [
        fit(((f"  {left(word if not place else '', KEY)}", ink), (piece, text)), width)
        for place, piece in enumerate(pieces)
    ]


def _legend(width: int) -> list[Row]:
    words = (
        (
            "work",
            "memory traffic or power over idle; a spinning collective has none at 100 %",
        ),
        ("● ○ ✖", "lights: seen, not known, lost"),
        ("◀", "suspect: the rank that seems to be behind"),
        ("·", "in a sparkline: nobody looked (a gap); a low line is zero"),
    )
    return [
        (("Signs", "title"),),
        *(line for sign, text in words for line in _beside(sign, text, width, "accent", "text")),
    ]
