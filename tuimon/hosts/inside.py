"""A place inside (or behind) another machine: each command enters it anew, by the way that leads there.

Whether it is still there is told by one small program that is kept inside and answers every beat: neither `docker exec`
nor `kubectl exec` notices by itself that the other end has gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from tuimon.hosts import frames
from tuimon.hosts.beating import EVERY, PATIENCE
from tuimon.hosts.command import MARK, collect, guarded
from tuimon.hosts.ending import Ending
from tuimon.hosts.errors import CannotStart, CommandTimedOut, HostError, HostUnreachable, PlaceGone
from tuimon.hosts.host import Ask, Asking, Channel, Completed, Host, LogPiece
from tuimon.hosts.putting import put
from tuimon.hosts.quoting import quoted
from tuimon.hosts.ways import JUST_NOW, Way
from tuimon.probe.send import is_stream

ENTERING = 20.0
"""Seconds for the way in; `kubectl exec` over a slow API takes some."""
SILENT = 20.0
"""Seconds without an answer to a beat after which the place counts as lost."""
LOOKS, LOOK_AGAIN = 5, 0.4
"""Looks at how the place ended, and seconds between them."""
# One read per beat; without `timeout` (no coreutils, no BusyBox) it ends with its stdin only.
HOLD = (
    f"echo tuimon; command -v timeout >/dev/null && t='timeout {PATIENCE:.0f}'; "
    'while x=$($t dd bs=64 count=1 2>/dev/null) && test -n "$x"; do echo; done'
)


class Inside:
    """A host that is entered from another one."""

    def __init__(self, name: str, outer: Host, way: Way) -> None:
        self._name = name
        self._outer = outer
        self._way = way
        self._held: Channel | None = None
        self._gone: asyncio.Future[str] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._ending: Ending | None = None
        self._left: str | None = None
        """Why nothing more can be run there."""
        self._seen: float | None = None
        """When it last answered. By the wall clock, which goes on while a laptop sleeps."""
        self.python = "python3"
        """The interpreter for our programs there."""

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def detail(self) -> str:
        """`the container vllm on root@10.1.2.3:22`; empty before `connect`."""
        return self._way.detail(self._outer.detail) if self._gone else ""

    @property
    def ending(self) -> Ending | None:
        """How the place ended: once `lost` has returned, or where `connect` raised PlaceGone; None = not known."""
        return self._ending

    @property
    def ask(self) -> Ask | None:
        """Who asks for secrets on the way to the machine before it."""
        return self._outer.ask if isinstance(self._outer, Asking) else None

    @ask.setter
    def ask(self, ask: Ask | None) -> None:
        if isinstance(self._outer, Asking):
            self._outer.ask = ask

    @property
    def log_source(self) -> str | None:
        """What to follow where the server's output leads out of the place."""
        return self._way.log

    def enters(self, argv: Sequence[str]) -> list[str]:
        """What the machine before it is given to run `argv` there."""
        return self._way.enter(argv)

    async def connect(self) -> None:
        """Open the link and go in. Raises HostUnreachable, HostKeyUnknown, AccessDenied.

        After a PlaceGone with an `ending` what the place printed can still be followed.
        """
        await self.close()
        await self._outer.connect()
        self._left, self._ending = None, None
        gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            held = await self._go_in()
        except PlaceGone as error:
            self._left = str(error)
            self._ending = await self._how_it_ended(looks=1)
            gone.set_result(self._left)
            self._gone = gone
            raise
        self._held, self._gone = held, gone
        self._beating = asyncio.create_task(self._hold(held, gone))

    async def _go_in(self) -> Channel:
        held = await self._enter(["sh", "-c", HOLD])
        try:
            async with asyncio.timeout(ENTERING):
                heard = b""
                while b"tuimon\n" not in heard:
                    piece = await held.read()
                    if not piece:
                        status = await held.wait()
                        raise self._way.trouble(held.errors() + heard.decode("utf-8", "replace"), status)
                    heard = (heard + piece)[-65536:]
        except TimeoutError:
            held.end_input()
            raise HostUnreachable(f"{self._way.words} was not entered within {ENTERING:g} s") from None
        return held

    async def _hold(self, held: Channel, gone: asyncio.Future[str]) -> None:
        """Beat, see that each is answered, and notice the end at once: it may be up again in 0.1 s."""
        reason = "it has stopped answering"
        try:
            while await self._beats(held):
                pass
            self._left = f"{self._way.words} is gone"
            self._ending = await self._how_it_ended(LOOKS)
            said = quoted(held.errors())
            reason = self._left + (f": {said}" if said else "")
        except TimeoutError:
            pass
        except HostError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001  nobody else would notice, and the link would stay up for ever
            reason = f"an error of tuimon's own: {error!r}"
        if not gone.done():
            gone.set_result(reason)

    async def _beats(self, held: Channel) -> bool:
        """One beat and its answer; False where the program inside has ended. Raises TimeoutError."""
        self._seen = time.time()
        held.write(b".\n")
        async with asyncio.timeout(SILENT):
            if not await held.read():
                return False
        try:
            async with asyncio.timeout(EVERY):
                while await held.read():
                    pass
        except TimeoutError:
            return True
        return False

    async def _how_it_ended(self, looks: int) -> Ending | None:
        """The engine sees a moment later than we do that a first process has ended."""
        away = 0.0 if self._seen is None else max(0.0, time.time() - self._seen)
        states = self._way.states(JUST_NOW + int(away))
        for _look in range(looks if states else 0):
            answered = False
            for argv in states:
                try:
                    told = await self._outer.run(list(argv), timeout=ENTERING)
                except HostError:
                    return None
                answered = answered or told.exit == 0
                ending = self._way.ending(told.stdout)
                if ending is not None:
                    return ending
            if not answered:
                return None
            await asyncio.sleep(LOOK_AGAIN)
        return None

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a short command; of its stderr the last 4 KB are kept. Raises CommandTimedOut, HostUnreachable."""
        channel: Channel | None = None
        try:
            async with asyncio.timeout(timeout):
                channel = await self._enter(guarded(argv, timeout, len(stdin)))
                if stdin:
                    channel.write(stdin)
                out, said, cut = await collect(_Output(channel), _Silence(), limit, channel.end_input)
                status = await channel.wait()
        except TimeoutError:
            raise CommandTimedOut(f"{argv[0]} did not end within {timeout:g} s in {self._way.words}") from None
        finally:
            if channel is not None:
                channel.end_input()  # the guard ends the command
        complaints = channel.errors().encode().rpartition(MARK)[2]
        return Completed(status, out, said + complaints, cut)

    async def start(self, argv: Sequence[str]) -> Channel:
        """Start a program of ours that ends when its stdin ends. Raises HostUnreachable, ChannelRefused."""
        return await self._enter(argv)

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The bytes of a log from `offset` on, for ever; what the place prints is followed from outside."""
        if is_stream(path):
            return self._outer.follow(path, offset, inode, mark)
        return frames.follow(self, path, offset, inode, mark)

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Write a file there, atomically. Raises TransferFailed."""
        await put(self, content, path, mode)

    async def lost(self) -> str:
        """Wait until the link breaks or the place is gone; the reason in words."""
        if self._gone is None:
            return "not connected"
        outer = asyncio.ensure_future(self._outer.lost())
        try:
            await asyncio.wait({outer, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            return outer.result() if outer.done() else self._gone.result()
        finally:
            outer.cancel()

    async def close(self) -> None:
        """Leave it and close the link."""
        held, self._held, self._gone = self._held, None, None
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
        if held is not None:
            held.end_input()
        await self._outer.close()

    async def _enter(self, argv: Sequence[str]) -> Channel:
        if self._left:  # started again at once it is another place, with other processes under the same pids
            raise HostUnreachable(self._left)
        try:
            return await self._outer.start(self._way.enter(argv))
        except CannotStart as error:
            raise self._way.trouble(str(error), 127) from error


class _Output:
    """A channel's stdout as a stream."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def read(self, _n: int, /) -> bytes:
        """Some bytes of it."""
        return await self._channel.read()


class _Silence:
    """A stream that is at its end: a channel keeps its stderr itself."""

    async def read(self, _n: int, /) -> bytes:
        """Nothing."""
        return b""
