"""What can be seen and done on a host: looked at once, harmlessly, by the same means that the watching uses."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Literal, cast

import msgspec
from msgspec import Struct

from tuimon.diagnose import collectives, stacks, targets
from tuimon.hosts.errors import HostError
from tuimon.hosts.finding import find_python
from tuimon.hosts.host import Host, WithPython
from tuimon.hosts.quoting import quoted
from tuimon.launch.events import AnyEvent, Health, Sample, ServerFound
from tuimon.probe import send

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tuimon.hosts.host import Channel, LogPiece

IDS = ("ssh", "python", "nvml", "proc", "pyspy", "ptrace", "ras", "log", "health")
LOOKING = 8.0
"""Seconds for the probe: it looks for a server every 2 s and asks for its health at once."""
NO_SERVER = 4.0
"""Seconds without a server after which there is none."""
_START_ONE = "Start the server and look again"
# As find.py names it; nothing else of that folder is touched.
CLEAN = 'd=~/.cache/tuimon; for f in "$d"/py-spy-*; do test -f "$f" && rm -f "$f" && echo "$f"; done; rmdir "$d"'


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    id: str
    state: Literal["ok", "limited", "missing", "unknown"]
    found: str
    fix: str | None = None


class Seen(Struct):
    """What the probe told."""

    server: ServerFound | None = None
    sample: Sample | None = None
    health: Health | None = None


async def look(host: Host, options: send.ProbeOptions) -> list[Check]:
    """All checks of a host that is connected. Raises HostUnreachable when the link breaks."""
    checks = [Check("ssh", "ok", host.detail or host.name)]
    python = await _python(host)
    checks.append(python)
    if python.state == "missing":
        why = "needs python3 on the host"
        return [*checks, *(Check(each, "unknown", why, python.fix) for each in IDS[2:])]
    seen = await _probe(host, options)
    checks += [nvml(seen), proc(seen)]
    checks += await _stacks(host, seen)
    checks.append(await _ras(host, seen))
    checks.append(await _log(host, seen))
    checks.append(health(seen))
    return checks


async def clean(host: Host) -> tuple[str, ...]:
    """Remove what a look at stacks left in the host's cache; the paths."""
    done = await host.run(["sh", "-c", CLEAN])
    return tuple(quoted(line) for line in done.stdout.splitlines()[:100])


async def _python(host: Host) -> Check:
    fix = "Install Python 3.6 or later, or put it on the PATH of logins without a terminal"
    tried = await host.run(
        [getattr(host, "python", "python3"), "-I", "-c", "import sys; print(sys.version.split()[0])"]
    )
    if tried.exit == 0:
        return Check("python", "ok", f"Python {quoted(tried.stdout)}")
    found = await find_python(host)
    if found is None:
        return Check("python", "missing", f"no python3: {quoted(tried.stderr)}", fix)
    if isinstance(host, WithPython):
        host.python = found
    return Check("python", "limited", f"python3 is not on the PATH; {quoted(found)} is used", fix)


async def _probe(host: Host, options: send.ProbeOptions) -> Seen:
    seen = Seen()
    channel = await host.start(send.command(getattr(host, "python", "python3")))
    try:
        channel.write(send.payload(options, getattr(host, "probe_nvml", None)))
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(LOOKING):
            await _listen(channel, seen, began)
    except TimeoutError:
        pass
    finally:
        channel.end_input()
    return seen


async def _listen(channel: Channel, seen: Seen, began: float) -> None:
    pending = b""
    while not _enough(seen, asyncio.get_running_loop().time() - began):
        piece = await channel.read()
        if not piece:
            return
        *lines, pending = (pending + piece)[-(8 << 20) :].split(b"\n")
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                _take(msgspec.json.decode(line, type=AnyEvent), seen)


def _take(event: AnyEvent, seen: Seen) -> None:
    if isinstance(event, ServerFound):
        seen.server = event
    elif isinstance(event, Sample):
        seen.sample = event
    elif isinstance(event, Health):
        seen.health = event


def _enough(seen: Seen, waited: float) -> bool:
    sample = seen.sample
    if sample is None or (sample.gpus is None and "starting" in (sample.gpu_note or "")):
        return False
    if seen.server is None:
        return waited > NO_SERVER
    return bool(sample.processes) and (seen.server.port is None or seen.health is not None)


def nvml(seen: Seen) -> Check:
    """GPUs."""
    sample = seen.sample
    if sample is None or sample.gpus is None:
        note = sample.gpu_note if sample else None
        return Check("nvml", "unknown", note or "the probe told nothing", "Does nvidia-smi work there?")
    if not sample.gpus:
        return Check("nvml", "missing", "no GPU on this machine")
    names = sorted({gpu.name or "GPU" for gpu in sample.gpus})
    found = f"{len(sample.gpus)} × {', '.join(names)}"
    broken = [f"GPU {gpu.index}: {gpu.error}" for gpu in sample.gpus if gpu.error]
    if broken:
        return Check("nvml", "limited", f"{found}; {'; '.join(broken)}", "Look at: nvidia-smi, dmesg | grep Xid")
    return Check("nvml", "ok", found)


def proc(seen: Seen) -> Check:
    """Processes and their counters."""
    if seen.sample is None:
        return Check("proc", "unknown", "the probe told nothing", "Is /proc mounted there?")
    processes = seen.sample.processes
    if not processes:
        return Check("proc", "ok", "no server runs; processes can be listed", _START_ONE)
    living = [process for process in processes if process.state not in {"Z", "X"}]
    blind = [process for process in living if process.read_bytes is None]
    if blind:
        return Check(
            "proc",
            "limited",
            f"{len(processes)} processes of the server; of {len(blind)} the I/O counters cannot be read",
            f"Log in as {seen.server.user if seen.server and seen.server.user else 'its user'} or root",
        )
    return Check("proc", "ok", f"{len(processes)} processes of the server, all counters")


async def _stacks(host: Host, seen: Seen) -> list[Check]:
    processes = seen.sample.processes if seen.sample else None
    wanted = targets.choose(processes, seen.server.pid if seen.server else None)[:1]
    if not wanted:
        why = "there is no server whose stack could be read"
        return [Check(each, "unknown", why, _START_ONE) for each in ("pyspy", "ptrace")]
    try:
        look = await stacks.dump(host, wanted)
    except HostError as error:
        return [Check(each, "unknown", str(error), error.advice or None) for each in ("pyspy", "ptrace")]
    if look.ranks:
        found = f"the stack of pid {wanted[0].pid} was read without stopping it"
        return [Check("pyspy", "ok", found), Check("ptrace", "ok", "its memory may be read")]
    reason = look.unread[0].reason if look.unread else "the host said nothing"
    if "py-spy" in reason and ("no py-spy" in reason or "executed" in reason or "checksum" in reason):
        unknown = Check("ptrace", "unknown", "needs py-spy", "See pyspy")
        return [Check("pyspy", "missing", reason, "pip install py-spy in the server's environment"), unknown]
    fix = "Log in as the server's user or root; in a container: --cap-add SYS_PTRACE; kernel.yama.ptrace_scope=0"
    return [Check("pyspy", "ok", "py-spy runs there"), Check("ptrace", "limited", reason, fix)]


async def _ras(host: Host, seen: Seen) -> Check:
    if seen.server is None:
        return Check("ras", "unknown", "there is no server to ask", _START_ONE)
    try:
        answer = await collectives.ask(host, {}, seen.server.pid)
    except HostError as error:
        return Check("ras", "unknown", str(error), error.advice or None)
    first = (answer.text or "").partition("\n")[0]
    if answer.counts:
        return Check("ras", "ok", first or "it answers")
    return Check("ras", "missing", first, "Only multi-GPU servers with NCCL 2.24 or later have it")


async def _log(host: Host, seen: Seen) -> Check:
    server = seen.server
    source = getattr(host, "log_source", None)
    path = (server.log if server else None) or source
    if path is None:
        why = (server.log_note if server else None) or "there is no server whose log could be found"
        return Check("log", "missing" if server else "unknown", why, "Give --log" if server else _START_ONE)
    pieces = cast("AsyncGenerator[LogPiece]", host.follow(path, -1))
    try:
        async with asyncio.timeout(5.0), aclosing(pieces):
            piece = await anext(pieces)
    except TimeoutError:
        return Check("log", "ok", f"{path}: nothing in it yet")
    except HostError as error:
        return Check("log", "missing", str(error), error.advice or "Give --log")
    if piece.kind in {"missing", "denied"}:
        return Check("log", "missing", f"{path}: {quoted(piece.reason)}", "Log in as the server's user or root")
    note = "what the container prints" if path == source else server.log_note if server else None
    return Check("log", "ok", f"{path} ({note or 'as given'})")


def health(seen: Seen) -> Check:
    """The server's port."""
    asked = seen.health
    if seen.server is None:
        return Check("health", "unknown", "there is no server to ask", _START_ONE)
    if asked is None:
        return Check("health", "unknown", "its port is not known", "Give --port")
    where = f"{asked.address}{asked.path or ''}"
    if asked.error:
        return Check("health", "limited", f"{where}: {asked.error}", "Not ready yet, or another port: give --port")
    if asked.status == 401:
        return Check("health", "limited", f"{where}: wants an API key", "Give --api-key-env")
    return Check("health", "ok", f"{where}: {asked.status or 'the port is open'}")
