"""Small pieces of the ways to a host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import asyncssh

from tests.watch.scripted import ScriptedChannel
from tuimon.hosts import hostkey, ways
from tuimon.hosts.host import Channel, Completed, LogPiece
from tuimon.hosts.inside import Inside


class Broken:
    """A machine on which a command meets a bug of ours."""

    name = detail = "machine"

    async def connect(self) -> None:
        """At once."""

    async def start(self, _argv: Sequence[str]) -> Channel:
        """A program that greets and ends."""
        greets = ScriptedChannel()
        greets.said.put_nowait(b"tuimon\n")
        greets.said.put_nowait(b"")
        return greets

    async def run(
        self, _argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 10.0, limit: int = 1 << 20
    ) -> Completed:
        raise RuntimeError("bug")

    def follow(self, *_where: object) -> AsyncIterator[LogPiece]:
        raise NotImplementedError

    async def put(self, content: bytes, path: str, mode: int) -> None:
        """Nowhere."""

    async def lost(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_bug_of_ours_while_a_container_ends_leaves_no_link_that_looks_up_for_ever() -> None:
    host = Inside("machine/docker:one", Broken(), ways.Container("one"))
    await host.connect()
    async with asyncio.timeout(5):
        assert await host.lost() == "an error of tuimon's own: RuntimeError('bug')"
    await host.close()


def test_known_hosts_is_taken_apart_once_and_again_when_it_changes(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    path = tmp_path / "known_hosts"
    path.write_text(f"gpu-17 {key}\nnonsense\n")
    first = hostkey.trusted([str(path)])
    assert hostkey.trusted([str(path)]) is first
    assert not first.match("gpu-18", "", None)[0]
    path.write_text(f"gpu-18 {key}")
    assert hostkey.trusted([str(path)]).match("gpu-18", "", None)[0]
