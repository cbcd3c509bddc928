"""`tuimon demo --serve SCENARIO`: the demo's host alone, for strangers who connect with ssh."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

from tuimon.demo.host import DemoHost

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(scenario: str, pace: str) -> int:
    """Print one JSON line, serve until SIGINT, SIGTERM or SIGHUP. Raises UnknownScenario, UnknownPace, DemoFailed."""
    return asyncio.run(_serve(DemoHost(scenario, pace)))


async def _serve(host: DemoHost) -> int:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP:
        loop.add_signal_handler(number, told_to_stop.set)
    try:
        await host.open()
        sys.stdout.write(json.dumps(_told(host)) + "\n")
        sys.stdout.flush()
        await told_to_stop.wait()
    finally:
        await host.close()
    return 0


def _told(host: DemoHost) -> dict[str, Any]:
    """The line; key and known_hosts lie in the launch's folder, which goes with it."""
    launch, server = host.launch, host.server
    assert launch is not None  # noqa: S101 - open
    assert server is not None  # noqa: S101
    key, known_hosts = launch.folder / "id_ed25519", launch.folder / "known_hosts"
    key.touch(0o600)  # ssh refuses a key that others can read
    key.write_bytes(server.client_key.export_private_key())
    known_hosts.write_text(server.known_hosts)
    return {
        "port": server.port,
        "user": server.user,
        "key": str(key),
        "known_hosts": str(known_hosts),
        "log": str(launch.log),
        "pids": list(launch.pids),
        "trouble_at_s": host.trouble_at,
    }
