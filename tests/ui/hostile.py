"""Launches whose every name and line is hostile text. As a program: one of them on the screen, for a real terminal."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import Cranked
from tuimon.config import Settings
from tuimon.launch.escapes import clean
from tuimon.launch.steps import Advice
from tuimon.launch.taming import tamed
from tuimon.launch.view import Evidence, LaunchView, LogLine, PhaseView, ProcessView, Suspect
from tuimon.ui.app import TuimonApp

PIECES = (
    "\x1b[2J", "\x1b]0;pwned\x07", "\x9b31m", "\x1bP+q\x1b\\", "\x00", "\x7f", "\r", "\n", "\t", "\x08\x08",
    "[bold]", "[/]", "[@click=app.quit]x[/]", "\\[", "{x}", "%s",
    "\u202e", "\u202d", "\u2066", "\u200f", "\u061c", "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f",
    "日本語", "한국어", "ｆｕｌｌ", "ﾊﾝｶｸ", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "☎️", "❤️", "✈", "🧑🏿‍🚀", "⚠", "‼",
    "e\u0301\u0301\u0301", "क्षि", "ก็", "ﷺ", "௵", "꧅", "ᄀ\u1161\u11a8", "\u1160", "\u115f", "\u3164", "\uffa0",
    "\ud800", "\U000e0041", "\ufffe", "\u2028", "\u0085", "￼", "½", "–", "…", "│", "─", "a", " ", "log line", "0123",
)  # fmt: skip
"""Escape codes, markup, bidi, zero-width, wide, joined, combining, unassigned, and what frames are made of."""


def text(chance: random.Random, most: int = 12) -> str:
    """Some pieces in a row; now and then a very long one."""
    return "".join(chance.choices(PIECES, k=chance.randint(1, 400 if chance.random() < 0.1 else most)))


SGR = ("31", "", "0", "1;4", "7", "8", "5", "30;40", "97;107", "38;5;0", "48;5;231", "38;2;0;0;0", "2;37", "38;5", ";;")


def line(chance: random.Random, number: int) -> LogLine:
    """A line of a log, half of them coloured."""
    words = text(chance)
    if chance.random() < 0.5:
        return LogLine(number, words, launches.NOW, clock=text(chance)[:9], rank=text(chance))
    pieces = [f"\x1b[{chance.choice(SGR)}m{text(chance, 3)}" for _ in range(chance.randint(1, 9))]
    written = "".join(pieces).encode("utf-8", "replace")
    return LogLine(number, tamed(clean(written)), launches.NOW, written=written)


def view(seed: int) -> LaunchView:
    """A launch of hostile names."""
    chance = random.Random(seed)
    base = launches.MOMENTS[chance.choice(sorted(launches.MOMENTS))]()

    def t() -> str:
        return text(chance)

    evidence = (Evidence("log", 3.0, t()),)
    verdict = replace(
        base.verdict, headline=t(), advice=Advice((t(),)), kind=t(), phase=t(), countdown=t(), evidence=evidence
    )
    return replace(
        base,
        host=t(),
        link=replace(base.link, detail=t(), reason=t()),
        server=replace(launches.SERVER, model=t(), log=t(), engine=t(), version=t(), shape=t(), ranks=(t(), t())),
        verdict=replace(verdict, suspects=(Suspect(t(), 7, t()),), unseen=(t(),)),
        phases=tuple(PhaseView(t(), phase.state, note=t(), seconds=phase.seconds) for phase in base.phases),
        gpus=tuple(replace(gpu, rank=t(), word=t(), name=t()) for gpu in launches.gpus()),
        signs=tuple(replace(sign, name=t(), text=t()) for sign in base.signs),
        processes=tuple(ProcessView(t(), (n,), "S", t(), 1.0, 1, 1, note=t(), depth=n % 3) for n in range(4)),
        health=replace(base.health, address=t(), path=t(), error=t()),
        lines=launches.Window([line(chance, n) for n in range(60)]),
        commands=(t(), t()),
        findings=(t(),),
        error=t(),
    )


if __name__ == "__main__":
    TuimonApp(Cranked(view(int(sys.argv[1]))), Settings()).run()
