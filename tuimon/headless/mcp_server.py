"""`tuimon mcp`: an assistant's questions over stdio (Model Context Protocol)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from tuimon.headless import exit_codes
from tuimon.headless.mcp_watches import Watches

if TYPE_CHECKING:
    from tuimon.config import Settings


def run(hosts: Sequence[str], settings: Settings) -> int:
    """Serve on stdin and stdout until the client leaves. `hosts`: the only ones that may be asked about, () = any."""
    try:
        import mcp.server  # noqa: F401, PLC0415  an extra
    except ImportError:
        sys.stderr.write("tuimon: The package mcp is not installed. Install tuimon[mcp].\n")
        return exit_codes.PROBLEM
    from tuimon.headless.mcp_protocol import Server  # noqa: PLC0415  as above
    from tuimon.headless.mcp_tools import Answers  # noqa: PLC0415  as above

    watches = Watches(settings, hosts)
    try:
        anyio.run(Server(Answers(watches).tools).run_stdio_async)
    finally:
        watches.close()
    return exit_codes.FINE
