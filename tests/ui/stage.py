"""A stage for the app: a watching cranked by hand, and the screen as plain text."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace
from textual.pilot import Pilot

from tuimon.config import Settings
from tuimon.launch.view import LaunchView
from tuimon.ui.app import TuimonApp
from tuimon.watch.watching import Action

GOLDENS = Path(__file__).parent / "goldens"
"""Screens that were looked at; `TUIMON_GOLDENS=write` writes them anew."""


class Cranked:
    """A watching whose view changes when the test says so."""

    def __init__(self, view: LaunchView) -> None:
        self.view = view
        self.asked: list[Action] = []
        self.started = False
        self.busy: Action | None = None

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.started = False

    def ask(self, action: Action) -> None:
        self.asked.append(action)


class Stage:
    """The app, what it watches, and what can be read on it."""

    def __init__(self, app: TuimonApp, pilot: Pilot[None], watching: Cranked) -> None:
        self.app = app
        self.pilot = pilot
        self.watching = watching

    async def crank(self, view: LaunchView | None = None, *, seconds: float = 0.0) -> None:
        """Give the next view, or the same one so many seconds later, and let it be drawn."""
        view = view or self.watching.view
        self.watching.view = replace(view, now=view.now + seconds)
        self.app.tick()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def text(self) -> str:
        """What is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips) + "\n"

    def line(self, number: int) -> str:
        return self.text().splitlines()[number]

    def has(self, *words: str) -> bool:
        text = self.text()
        return all(word in text for word in words)


@asynccontextmanager
async def staged(
    view: LaunchView, size: tuple[int, int] = (120, 40), settings: Settings | None = None
) -> AsyncIterator[Stage]:
    """The app running on `view`."""
    watching = Cranked(view)
    app = TuimonApp(watching, settings or Settings())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        stage = Stage(app, pilot, watching)
        await stage.crank()
        yield stage


async def differing(
    stage: Stage, moment: str, sizes: Sequence[tuple[int, int]], draw: Callable[[], Awaitable[object]]
) -> list[str]:
    """The screens of this moment that are not as they were looked at."""
    differs: list[str] = []
    for width, height in sizes:
        await stage.pilot.resize_terminal(width, height)
        await draw()
        text = stage.text()
        path = GOLDENS / f"{moment}-{width}x{height}.txt"
        if os.environ.get("TUIMON_GOLDENS") == "write":
            path.write_text(text, encoding="utf-8")
        if text != path.read_text(encoding="utf-8"):
            differs.append(f"{path.name} is now:\n{text}")
    return differs
