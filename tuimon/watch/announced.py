"""A host whose every command is an event: what was sent, why, how long it took."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Sequence

from tuimon.errors import TuimonError
from tuimon.hosts.host import Channel, Completed, Host, LogPiece
from tuimon.launch.events import AnyEvent, CommandRun
from tuimon.watch.clock import Clock

_LONGEST_WORD = 80


class Announced:
    """The same host, telling `post` of each command; `why` is said with it."""

    def __init__(self, host: Host, why: str, post: Callable[[AnyEvent], None], clock: Clock) -> None:
        self._host = host
        self._why = why
        self._post = post
        self._clock = clock

    @property
    def name(self) -> str:
        """The host's."""
        return self._host.name

    @property
    def python(self) -> str:
        """The interpreter that the host's programs are run with."""
        return getattr(self._host, "python", "python3")

    @property
    def detail(self) -> str:
        """The host's."""
        return self._host.detail

    async def connect(self) -> None:
        """The host's."""
        await self._host.connect()

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """The host's, announced when it has ended."""
        began = self._clock.now()
        try:
            done = await self._host.run(argv, stdin=stdin, timeout=timeout, limit=limit)
        except TuimonError as error:
            self._say(shown(argv), began, error=str(error))
            raise
        self._say(shown(argv), began, exit_status=done.exit)
        return done

    async def start(self, argv: Sequence[str]) -> Channel:
        """The host's, announced at its start."""
        channel = await self._host.start(argv)
        self._post(CommandRun(command=shown(argv), why=self._why))
        return channel

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The host's, announced at its start."""
        self._post(
            CommandRun(
                command=f"follow {shlex.quote(path)} from {f'after {mark}' if mark else f'byte {offset}'}",
                why=self._why,
            )
        )
        return self._host.follow(path, offset, inode, mark)

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """The host's, announced when it has ended."""
        began = self._clock.now()
        command = f"write {shlex.quote(path)} ({len(content)} bytes)"
        try:
            await self._host.put(content, path, mode)
        except TuimonError as error:
            self._say(command, began, error=str(error))
            raise
        self._say(command, began, exit_status=0)

    async def lost(self) -> str:
        """The host's."""
        return await self._host.lost()

    async def close(self) -> None:
        """The host's."""
        await self._host.close()

    def _say(self, command: str, began: float, exit_status: int | None = None, error: str | None = None) -> None:
        duration = self._clock.now() - began
        self._post(CommandRun(command=command, why=self._why, duration=duration, exit=exit_status, error=error))


def shown(argv: Sequence[str]) -> str:
    """The command as a shell would take it, long words (programs) cut."""
    return shlex.join(word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…" for word in argv)
