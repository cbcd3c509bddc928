"""`tuimon checkpoint [HOST:]PATH`: preflight of a draft model, before a launch that fails or, worse, does not fail."""

from __future__ import annotations

import asyncio
import re
import sys

from tuimon.diagnose import preflight
from tuimon.diagnose.checkpoint import Checkpoint, read, read_local
from tuimon.diagnose.errors import BadCheckpoint
from tuimon.diagnose.preflight import Preflight
from tuimon.errors import TuimonError
from tuimon.headless import exit_codes
from tuimon.headless.plain import say, say_json
from tuimon.hosts.errors import BadAddress, HostError
from tuimon.hosts.host import Host

_HOST_AND_PATH = re.compile(
    r"^(?P<host>(?:[a-z0-9]+:[^/:]+|\[[^/\]]+\](?::\d+)?|[^/:\[\]]+(?::\d{1,5})?)):(?P<path>[^:].*)$"
)


def split(spec: str) -> tuple[str | None, str]:
    """`[HOST:]PATH`; a path that begins with `.`, `/` or `~` is local whatever else is in it."""
    if spec.startswith((".", "/", "~")):
        return None, spec
    match = _HOST_AND_PATH.match(spec)
    return (match["host"], match["path"]) if match else (None, spec)


def run(spec: str, target: str | None, engine: str | None, engine_version: str | None, *, as_json: bool) -> int:
    """Check, print, return the exit code: 0 ok or unknown, 1 broken or silent, 2 unreadable, 6 host unreachable."""
    try:
        found = asyncio.run(check(spec, target, engine, engine_version))
    except BadCheckpoint as error:
        return failed(spec, target, engine, error, exit_codes.USAGE, as_json=as_json)
    except HostError as error:
        code = exit_codes.USAGE if isinstance(error, BadAddress) else exit_codes.UNREACHABLE
        return failed(spec, target, engine, error, code, as_json=as_json)
    if as_json:
        say_json(preflight.as_document(found))
    else:
        say(preflight.as_text(found))
    return exit_codes.PROBLEM if found.verdict in {"broken", "silent"} else exit_codes.FINE


async def check(spec: str, target: str | None, engine: str | None, version: str | None) -> Preflight:
    """Read both, each where it lies. Raises BadCheckpoint, HostError."""
    name, path = split(spec)
    other_name, other_path = split(target) if target else (None, "")
    host = await connected(name) if name else None
    try:
        draft = await fetch(host, path)
        if not target:
            return preflight.judge(draft, None, engine, version)
        if other_name not in {None, name}:  # only then does it lie elsewhere than the draft
            if host:
                await host.close()
            host = await connected(str(other_name))
        return preflight.judge(draft, await fetch(host, other_path, headers=False), engine, version)
    finally:
        if host:
            await host.close()


async def connected(name: str) -> Host:
    """The host, linked. Raises HostError."""
    from tuimon.hosts import pick  # noqa: PLC0415  a local checkpoint needs no SSH

    host = pick.host(name)
    await host.connect()
    return host


async def fetch(host: Host | None, path: str, *, headers: bool = True) -> Checkpoint:
    """A checkpoint, there or here."""
    return await read(host, path, headers=headers) if host else read_local(path, headers=headers)


def failed(spec: str, target: str | None, engine: str | None, error: TuimonError, code: int, *, as_json: bool) -> int:
    """Say why nothing could be checked."""
    if as_json:
        empty = {"schema": preflight.SCHEMA, "path": split(spec)[1], "target": target, "engine": engine or "sglang"}
        rest: dict[str, object] = {"engine_version": None, "format": "unknown", "verdict": "unknown", "findings": []}
        say_json({**empty, **rest, "error": error.sentence()})
    sys.stderr.write(f"tuimon: {error.sentence()}\n")
    return code
