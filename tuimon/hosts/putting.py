"""A file put on a host through a command, the same way wherever commands can be run."""

from __future__ import annotations

from tuimon.hosts.command import putting
from tuimon.hosts.errors import HostError, TransferFailed
from tuimon.hosts.host import Host
from tuimon.hosts.quoting import quoted


async def put(host: Host, content: bytes, path: str, mode: int) -> None:
    """Write a file there, atomically. Raises TransferFailed."""
    try:
        done = await host.run(putting(path, len(content), mode), stdin=content, timeout=60.0)
    except HostError as error:
        raise TransferFailed(f"{path} could not be written on {host.name}: {error}", error.advice) from error
    if done.exit != 0:
        said = quoted(done.stderr) or "it arrived incomplete"
        raise TransferFailed(f"{path} could not be written on {host.name}: {said}")
