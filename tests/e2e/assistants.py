"""A real MCP client of a `tuimon mcp`, over stdio."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters


@asynccontextmanager
async def assistant(state: Path, *hosts: str, **environ: str) -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "tuimon", "mcp", *hosts], env={"TUIMON_STATE_DIR": str(state), **environ}
    )
    async with Client(command, read_timeout_seconds=70) as client:
        yield client
