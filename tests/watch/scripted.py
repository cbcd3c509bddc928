"""A host made of script and a clock that the test turns, for LiveWatch on its own thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from tuimon.config import Settings
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.launch.events import (
    AnyEvent,
    Finding,
    Process,
    Sample,
    ServerFound,
)  # fmt: skip
from tuimon.launch.view import LaunchView, State, Verdict
from tuimon.watch.clock import Clock
from tuimon.watch.later import nothing_yet
from tuimon.watch.live import LiveWatch

Kind = TypeVar("Kind")


class HandClock(Clock):
    """Time stands still until `pass_time`; then the sleepers whose time has come wake, in order."""

    def __init__(self) -> None:
        self._time = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._time

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._time + seconds, woken))
        await woken

    async def pass_time(self, seconds: float) -> None:
        end = self._time + seconds
        await settle()
        while True:
            self._sleepers = [entry for entry in self._sleepers if not entry[1].done()]
            due = min((at for at, _ in self._sleepers), default=end + 1)
            if due > end:
                break
            self._time = max(due, self._time)
            for at, woken in self._sleepers:
                if at <= due and not woken.done():
                    woken.set_result(None)
            await settle()
        self._time = end


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


class ScriptedChannel:
    """A program that says what the test says."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.heard = b""
        self.ended = False
        self.status: int | None = 0
        self.stderr = ""

    async def read(self) -> bytes:
        piece = await self.said.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    def write(self, text: bytes) -> None:
        self.heard += text

    def end_input(self) -> None:
        self.ended = True

    async def wait(self) -> int | None:
        return self.status

    def errors(self) -> str:
        return self.stderr


class ScriptedHost:
    """A host whose link, probe and log are in the test's hands."""

    name = "gpu-17"
    detail = "root@10.1.2.3:22"

    def __init__(self) -> None:
        self.connects: list[Exception | None] = []
        """What the next connects do; nothing left = they succeed."""
        self.tries = 0
        self.starts: list[Exception] = []
        self.channels: list[ScriptedChannel] = []
        self.follows: list[tuple[str, int, int | None]] = []
        self.log: asyncio.Queue[LogPiece | Exception] = asyncio.Queue()
        self.answers: Callable[[Sequence[str]], Completed] = lambda _: Completed(1, b"", b"")
        self.broken: asyncio.Future[str] | None = None
        self.closed = 0
        self.python = "python3"
        self.hangs_at_close = False

    async def connect(self) -> None:
        self.tries += 1
        if self.connects and (error := self.connects.pop(0)):
            raise error
        self.broken = asyncio.get_running_loop().create_future()

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        return self.answers(argv)

    async def start(self, argv: Sequence[str]) -> Channel:
        if self.starts:
            raise self.starts.pop(0)
        self.channels.append(ScriptedChannel())
        return self.channels[-1]

    async def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        self.follows.append((path, offset, inode))
        while True:
            piece = await self.log.get()
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def put(self, content: bytes, path: str, mode: int) -> None:
        raise NotImplementedError

    async def lost(self) -> str:
        assert self.broken
        return await asyncio.shield(self.broken)

    async def close(self) -> None:
        self.closed += 1
        if self.hangs_at_close:
            await asyncio.Event().wait()


class Believer:
    """Keeps events; its verdict is the test's."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.state: State = "starting"
        self.wants_stacks = False
        self.fails_at: type | None = None

    def apply(self, event: AnyEvent) -> None:
        if self.fails_at and isinstance(event, self.fails_at):
            raise ValueError("cannot believe it")
        self.events.append(event)

    def snapshot(self, now: float) -> LaunchView:
        verdict = Verdict(self.state, 990.0, "", wants_stacks=self.wants_stacks)
        return msgspec.structs.replace(nothing_yet("gpu-17", now), verdict=verdict)


class Watched:
    """A LiveWatch with everything that a test turns and looks at."""

    def __init__(self, settings: Settings) -> None:
        self.host = ScriptedHost()
        self.clock = HandClock()
        self.believer = Believer()
        self.watch = LiveWatch(self.host, settings, clock=self.clock, launch=self.believer)

    def start(self) -> None:
        self.watch.start()
        self.passes(0)

    def passes(self, seconds: float) -> None:
        """Let time pass on the collector's thread."""
        self.do(self.clock.pass_time(seconds))

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        assert self.watch._loop
        asyncio.run_coroutine_threadsafe(work, self.watch._loop).result(10)

    def until(self, true: Callable[[], bool]) -> None:
        """Let the real time pass that a thread of the executor takes."""
        deadline = time.monotonic() + 10
        while not true():
            assert time.monotonic() < deadline
            self.passes(0)

    def says(self, *events: AnyEvent) -> None:
        """The probe says something."""
        self.says_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))

    def says_bytes(self, piece: bytes | Exception) -> None:
        async def say() -> None:
            self.host.channels[-1].said.put_nowait(piece)
            await settle()

        self.do(say())

    def logs(self, *pieces: LogPiece | Exception) -> None:
        """The tail says something."""

        async def say() -> None:
            for piece in pieces:
                self.host.log.put_nowait(piece)
            await settle()

        self.do(say())

    def loses_link(self, reason: str = "the connection broke") -> None:
        async def lose() -> None:
            assert self.host.broken
            self.host.broken.set_result(reason)
            await settle()

        self.do(lose())

    def seen(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.believer.events if isinstance(event, kind)]

    def findings(self) -> list[str]:
        return [event.text for event in self.seen(Finding)]


SERVER = ServerFound(pid=41, argv=("sglang",), log="/data/server.log")
SAMPLE = Sample(mono=1.0, processes=(Process(pid=42, ppid=41, state="S", rank="TP0", title="sglang::scheduler_TP0"),))
