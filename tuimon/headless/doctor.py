"""`tuimon doctor`: what can be seen and done on a host, each with the fix."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from tuimon.diagnose import checkup
from tuimon.diagnose.checkup import Check
from tuimon.headless import exit_codes
from tuimon.headless.plain import plain, say, say_json
from tuimon.hosts import pick
from tuimon.hosts.beating import PATIENCE
from tuimon.hosts.errors import HostError
from tuimon.probe.send import ProbeOptions
from tuimon.watch.loop import new_loop

if TYPE_CHECKING:
    from tuimon.config import Settings

SCHEMA = "tuimon.doctor/1"
_MARKS = {"ok": "✔ ok", "limited": "! limited", "missing": "✖ missing", "unknown": "? unknown"}


def run(spec: str, settings: Settings, *, as_json: bool, clean: bool) -> int:
    """Look, print, return the exit code: 0 where log and processes can be seen, else 1; 6 where the host cannot be."""
    with asyncio.Runner(loop_factory=lambda: new_loop(_stray)) as runner:
        checks, removed = runner.run(examine(spec, settings, clean=clean))
    if as_json:
        say_json(report(spec, checks, removed))
    else:
        say_all(spec, checks, removed, clean=clean)
    return exit_code(checks)


async def examine(spec: str, settings: Settings, *, clean: bool) -> tuple[list[Check], tuple[str, ...]]:
    """Connect and look; what was removed comes second."""
    host = pick.host(spec, settings.ssh_command)
    checks: list[Check] = []
    removed: tuple[str, ...] = ()
    try:
        await host.connect()
        checks = await checkup.look(host, options(settings))
        if clean:
            removed = await checkup.clean(host)
    except HostError as error:
        first = Check("ssh", "missing", str(error), error.advice or None)
        unseen = [Check(each, "unknown", "the host cannot be reached") for each in checkup.IDS[1:]]
        checks = [first, *unseen]
    finally:
        await host.close()
    return checks, removed


def options(settings: Settings) -> ProbeOptions:
    """What the probe is told, as in a watch."""
    key = os.environ.get(settings.api_key_env) if settings.api_key_env else None
    return ProbeOptions(
        pid=settings.pid,
        port=settings.port,
        log=settings.log,
        engine=settings.engine,
        api_key=key,
        patience=PATIENCE,
    )


def exit_code(checks: list[Check]) -> int:
    """What INTERFACES says."""
    states = {check.id: check.state for check in checks}
    if states["ssh"] != "ok":
        return exit_codes.UNREACHABLE
    seen = {"ok", "limited"}
    return exit_codes.FINE if states["log"] in seen and states["proc"] in seen else exit_codes.PROBLEM


def report(spec: str, checks: list[Check], removed: tuple[str, ...]) -> dict[str, Any]:
    """The document of docs/schema/doctor.json."""
    rows = [{"id": each.id, "state": each.state, "found": each.found, "fix": each.fix} for each in checks]
    return {"schema": SCHEMA, "host": spec, "checks": rows, "removed": list(removed)}


def say_all(spec: str, checks: list[Check], removed: tuple[str, ...], *, clean: bool) -> None:
    """A line for each check, and the fix below it."""
    say(plain(spec))
    for check in checks:
        say(f"  {check.id:7} {_MARKS[check.state]:10} {plain(check.found)}")
        if check.fix and check.state != "ok":
            say(f"  {'':18} → {plain(check.fix)}")
    if clean:
        words = ", ".join(map(plain, removed)) or "nothing of tuimon's lay there"
        say(f"  cleaned: {words}")


def _stray(_where: str, error: BaseException) -> None:
    sys.stderr.write(f"tuimon: {type(error).__name__}: {plain(str(error))}\n")
