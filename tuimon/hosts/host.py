"""The protocol that every way of reaching a machine keeps. Commands are argument lists, never shell text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct


class Completed(Struct, frozen=True):
    """A command that ended."""

    exit: int | None
    """None = unknown (the link broke, or the host did not say)."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Output went beyond the limit and was cut."""


class LogPiece(Struct, frozen=True):
    """Something the tail of a file told."""

    kind: Literal["text", "rotated", "truncated", "skipped", "missing", "denied"]
    offset: int
    """text: where these bytes begin; else where reading goes on."""
    text: bytes = b""
    skipped: int = 0
    reason: str = ""
    inode: int | None = None
    """The file that these bytes are from; None where unknown."""
    mark: str | None = None
    """After this piece reading goes on here, where the log is no file."""
    age: float | None = None
    """Seconds since the last of these bytes was written, told where that was before we came and the log is no file."""


class Channel(Protocol):
    """A long-running program on the host; it ends when its stdin ends."""

    async def read(self) -> bytes:
        """Some bytes of its stdout; b"" when it has ended. Raises HostUnreachable when the link breaks."""

    def write(self, text: bytes) -> None:
        """Send bytes to its stdin."""

    def end_input(self) -> None:
        """Close its stdin; our programs end then."""

    async def wait(self) -> int | None:
        """Its exit status, None where unknown."""

    def errors(self) -> str:
        """The last 4 KB of its stderr, decoded with replacement."""


@runtime_checkable
class WithPython(Protocol):
    """A host that can be told which interpreter runs our programs there."""

    python: str
    """"python3" until a better one is found."""


Ask = Callable[[str], Awaitable[str | None]]
"""Asks the user for a secret, given words for it; None = the user would not."""


@runtime_checkable
class Asking(Protocol):
    """A host whose `connect` may need a secret of the user's."""

    ask: Ask | None
    """Who asks; None = nobody does, and `connect` says what the user can do instead."""


class Host(Protocol):
    """A machine we can run things on. One connection; at most four channels at a time."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def detail(self) -> str:
        """How it is reached, in words; empty before `connect`."""

    async def connect(self) -> None:
        """Open the link. Raises HostUnreachable, HostKeyUnknown or AccessDenied."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a short command; at most `limit` bytes of each stream are kept.

        Raises CommandTimedOut, HostUnreachable.
        """

    async def start(self, argv: Sequence[str]) -> Channel:
        """Start a long-running program that ends when its stdin ends."""

    def follow(
        self, path: str, offset: int, inode: int | None = None, mark: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """The bytes of a log from `offset` on, for ever; offset -1 = head and tail of what is there, then on.

        path: a file, or `docker:NAME`, `k8s:NAMESPACE/POD`, `journal:UNIT` for output that is none.
        inode: the file that `offset` belongs to; where another lies there now, it was rotated meanwhile.
        mark: where output that is no file goes on, as its last piece told; `@SECONDS` = since then.
        """

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Write a file on the host, atomically. Raises TransferFailed."""

    async def lost(self) -> str:
        """Wait until the link breaks; the reason in words."""

    async def close(self) -> None:
        """Close the link and all channels; safe to call twice."""
