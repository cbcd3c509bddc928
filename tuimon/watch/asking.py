"""A secret that is asked for by the collector, on its own loop, and given by the screen, from any thread."""

from __future__ import annotations

import asyncio


class Question:
    """At most one at a time. The secret stays here for as long as it takes to hand it on."""

    def __init__(self) -> None:
        self.words: str | None = None
        """What is asked for now; None = nothing."""
        self.willing = True
        """False once the user would not: then nobody is asked before the user wants to connect again."""
        self._given: str | None = None
        self._answered: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, words: str) -> str | None:
        """Wait for the answer, however long it takes; None = the user would not."""
        if not self.willing:
            return None
        self._loop, self._answered = asyncio.get_running_loop(), asyncio.Event()
        self.words = words
        try:
            await self._answered.wait()
        finally:
            given, self._given, self.words, self._answered = self._given, None, None, None
        self.willing = given is not None
        return given

    def answer(self, secret: str | None) -> None:
        """Take the answer; what comes unasked is dropped."""
        loop, answered = self._loop, self._answered
        if self.words is None or loop is None or answered is None:
            return
        self._given, self.words = secret, None
        try:
            loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # the watch has ended meanwhile
            self._given = None
