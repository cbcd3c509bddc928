"""The launch in a container that had ended before anyone saw it run: what its engine still tells of it."""

from __future__ import annotations

from tuimon.hosts.ending import Ending
from tuimon.launch.events import ServerFound
from tuimon.watch.named import named

SLACK = 3.0
"""Seconds: an engine notes the start of a first process later than the kernel does."""


def is_another(how: Ending, server: ServerFound | None) -> bool:
    """Whether this end is not that of `server`, but of a launch that nobody saw."""
    if server is None:
        return True
    return how.began is not None and server.started is not None and server.started < how.began - SLACK


def server(how: Ending) -> ServerFound:
    """The launch, as the probe would have told it; pid 1, because the container was there for it."""
    told = named(how.argv)
    return ServerFound(pid=1, argv=told.argv, engine=told.engine, model=told.model, port=told.port, started=how.began)
