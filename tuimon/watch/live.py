"""LiveWatch: a host being watched, on a thread and an event loop of its own.

A terminal that stops reading stops the screen's loop (9 heartbeats of 60 measured): the watching may not live there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tuimon.config import Settings
from tuimon.hosts import pick
from tuimon.hosts.host import Asking, Host
from tuimon.launch.events import AnyEvent, Gap
from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView
from tuimon.watch.asking import Question
from tuimon.watch.board import Believing, Board
from tuimon.watch.clock import Clock
from tuimon.watch.later import Later
from tuimon.watch.loop import new_loop
from tuimon.watch.tending import end, tend, within
from tuimon.watch.watching import Action

if TYPE_CHECKING:
    from tuimon.watch.actions import Actions
    from tuimon.watch.linking import Linking

MAKE_AFTER = 0.1
"""Seconds from the first try to connect until the grammars are compiled: a host near by has our program by then."""
STOPPED = 5.0
"""Views further apart mean that tuimon itself stood still (a suspended laptop, SIGSTOP)."""
_STOP_WITHIN = 3.0


class LiveWatch:
    """Watches one host. Raises HostError where `host` is no host."""

    def __init__(
        self, host: Host | str, settings: Settings, *, clock: Clock | None = None, launch: Believing | None = None
    ) -> None:
        self._host = pick.host(host, settings.ssh_command) if isinstance(host, str) else host
        self._settings = settings
        self._later = Later(self._host.name, settings.patience)
        self._board = Board(launch or self._later, clock or Clock())
        self._ready_made = launch is not None
        self.asks = False
        """Somebody sits before it who can be asked for the passphrase of a key."""
        self._question = Question()
        self._actions: Actions | None = None
        self._linking: Linking | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="tuimon-watch", daemon=True)

    def start(self) -> None:
        """Begin; returns before anything is connected."""
        from tuimon.watch.actions import Actions  # noqa: PLC0415  the first frame need not wait for these
        from tuimon.watch.linking import Linking  # noqa: PLC0415  10 ms, as above

        self._loop = new_loop(self._board.trouble)
        self._stop = asyncio.Event()
        self._actions = Actions(self._board, self._settings)
        self._linking = Linking(self._host, self._board, self._settings, self._actions, self._question)
        if self.asks and isinstance(self._host, Asking):
            self._host.ask = self._question.ask
        self._thread.start()

    def stop(self) -> None:
        """End the collector and close the link; waits at most 3 s."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._call(self._stop.set)
            self._thread.join(_STOP_WITHIN)

    @property
    def view(self) -> LaunchView:
        """The latest snapshot."""
        return self._board.view

    @property
    def busy(self) -> Action | None:
        """The action that is running now."""
        return self._actions.busy if self._actions else None

    def ask(self, action: Action) -> None:
        """Ask for an action; while the link is down it also means: try again now."""
        if self._actions is not None:
            self._call(partial(self._actions.ask, action))
            self.retry()

    def retry(self) -> None:
        """Try to connect now, also where the host refused us."""
        if self._linking is not None:
            self._call(self._linking.hurry)

    def see(self, pid: int) -> None:
        """See this launch from now on, of several on the host."""
        if self._linking is not None:
            self._call(partial(self._linking.see, pid))

    @property
    def secret_wanted(self) -> str | None:
        """The secret that is wanted now, in words; None = nothing."""
        return self._question.words

    def give_secret(self, secret: str | None) -> None:
        """Give the secret, or None for no; from any thread."""
        self._question.answer(secret)

    def on_event(self, listener: Callable[[AnyEvent], None]) -> None:
        """Call `listener` with every event, on the collector's thread; its errors are contained."""
        self._board.listen(listener)

    def on_view(self, call: Callable[[], None]) -> None:
        """Call `call` after each new view, on the collector's thread; it must not raise."""
        self._board.on_view = call

    def post(self, event: AnyEvent) -> None:
        """Take in an event that is not the host's to tell (usual times, a diagnosis); from any thread."""
        if self._thread.is_alive():
            self._call(partial(self._board.post, event))
        else:
            self._board.post(event)

    def wait_for(self, predicate: Callable[[LaunchView], bool], timeout: float) -> LaunchView:
        """Block until a view satisfies `predicate`, at most `timeout` seconds; the latest view either way."""
        return self._board.wait_for(predicate, timeout)

    def _call(self, function: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(function)
            except RuntimeError:  # closed between the question and the call
                return

    def _main(self) -> None:
        assert self._loop is not None  # noqa: S101  start() made it
        asyncio.set_event_loop(self._loop)
        # One after the other: threads that all import share one interpreter, and the link is what others wait for.
        prepare = getattr(self._host, "prepare", None)
        try:
            if prepare is not None:
                prepare()
            self._loop.run_until_complete(self._watch())
        except Exception as error:  # noqa: BLE001  the last resort of the thread
            self._board.trouble("watching", error)
        finally:
            # Not shutdown_default_executor: it would wait for a name server that does not answer.
            self._loop.close()

    async def _watch(self) -> None:
        assert self._stop is not None  # noqa: S101  start() made them
        assert self._linking is not None  # noqa: S101
        work = {
            asyncio.create_task(tend("view", self._ticking, self._board)),
            asyncio.create_task(tend("link", self._linking.run, self._board)),
        }
        making = asyncio.get_running_loop().call_later(MAKE_AFTER, self._begin_making)
        try:
            await self._stop.wait()
        finally:
            making.cancel()
            await end(work, 0.5)
            try:
                async with asyncio.timeout(2.0):
                    await self._host.close()
            except TimeoutError:
                pass
            finally:
                await end(asyncio.all_tasks() - {asyncio.current_task()}, 0.2)

    async def _ticking(self) -> None:
        board, clock = self._board, self._board.clock
        last = clock.now()
        while True:
            # Looking four times a second whether something came cost a silent launch 0.05 % of a core.
            if board.changed:
                await clock.sleep(board.rest())
            else:
                board.came.clear()
                with suppress(TimeoutError):
                    await within(clock, board.rest(), board.came.wait())
            now = clock.now()
            if now - last > STOPPED:
                board.post(Gap(of="tuimon", since=last, reason=f"tuimon stood still for {age(now - last)}"))
            last = now
            board.tick()

    def _begin_making(self) -> None:
        threading.Thread(target=self._make, name="tuimon-making", daemon=True).start()

    def _make(self) -> None:
        """What is wanted soon, but not for the link; on a thread of its own."""
        # A failure is kept there, and shown.
        with suppress(Exception):
            if not self._ready_made:
                self._later.make()
