"""torch.distributed's debug server, where the program started one: stacks of all ranks from a native thread."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from tuimon.diagnose import sent
from tuimon.diagnose.pyspy import clean
from tuimon.diagnose.targets import Target
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host

PORT = 25999
"""`torch.distributed.debug.start_debug_server(port=25999)` is the default."""
TIMEOUT = 25.0
ADVICE = "The program must call torch.distributed.debug.start_debug_server()"
MOST_LINES = 20_000


async def ask(host: Host, targets: Sequence[Target], port: int = PORT) -> tuple[tuple[str, ...], str]:
    """Lines of the page with all stacks, and why there are none. Raises HostUnreachable."""
    options = {"pids": [target.pid for target in targets], "port": port}
    try:
        done = await sent.run(host, "debug_server", options, timeout=TIMEOUT)
    except CommandTimedOut:
        return (), "the debug server did not answer in time"
    return read(done.stdout)


def read(output: bytes) -> tuple[tuple[str, ...], str]:
    """The program's one line."""
    answer = sent.json_object(output)
    if answer is None:
        return (), "the host's answer cannot be read"
    if answer.get("absent"):
        return (), f"no process of this launch listens on port {PORT}: there is no debug server. {ADVICE}"
    page = answer.get("page")
    if not isinstance(page, str):
        return (), f"the debug server did not answer: {clean(str(answer.get('error', '')))}"
    return as_lines(page), ""


_TAG = re.compile(r"<[^<>]{0,2000}>")


def as_lines(page: str) -> tuple[str, ...]:
    """The words of a web page, one line each, nothing of its markup."""
    page = page[: 4 << 20]
    for element in ("head", "script", "style"):
        page = without(page, element)
    text = html.unescape(_TAG.sub("\n", page))
    lines = (clean(line.rstrip()) for line in text.splitlines()[:MOST_LINES])
    return tuple(line for line in lines if line.strip())


def without(page: str, element: str) -> str:
    """The page without these elements; one that is never closed takes the rest along."""
    parts = re.split(rf"<{element}\b", page, flags=re.IGNORECASE)
    kept = [parts[0]]
    for part in parts[1:]:
        _, closed, rest = part.partition(f"</{element}")
        kept.append(rest.partition(">")[2] if closed else "")
    return "".join(kept)
