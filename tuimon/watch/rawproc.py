"""Raw text of /proc and nvidia-smi → events. Foreign bytes: what makes no sense is left out."""

# The program's modules have no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

import re
from collections.abc import Iterator

from tuimon.launch.events import Gpu, HostLoad, Process, Sample, ServerFound, ServerGone
from tuimon.probe.program import recognise, redact
from tuimon.probe.program.procfs import PAGE, TICK, Stat, number_after
from tuimon.watch.named import named

MOST = 4096
"""Processes that are looked at."""
_LINK = re.compile(r"/proc/\d+/fd/[12] -> (/[^\x00-\x1f]*)$")


class Look:
    """One round of the script, by section."""

    def __init__(self, text: bytes) -> None:
        self._parts: dict[str, bytes] = {}
        for part in (b"\n" + text).split(b"\n@")[1:]:
            name, _, body = part.partition(b"\n")
            self._parts[name.decode("ascii", "replace")] = body

    def part(self, name: str) -> bytes:
        """A section's text."""
        return self._parts.get(name, b"")

    def processes(self) -> dict[int, Stat]:
        """All processes by pid."""
        found: dict[int, Stat] = {}
        for line in self.part("stat").split(b"\n")[:MOST]:
            try:
                found[int(line.split(b" ", 1)[0])] = Stat(line)
            except (ValueError, IndexError):
                continue
        return found

    def arguments(self) -> dict[int, list[str]]:
        """Command lines of possible servers."""
        found: dict[int, list[str]] = {}
        for line in self.part("argv").decode("utf-8", "replace").splitlines()[:MOST]:
            path, _, words = line.partition(" ")
            pid = path.removeprefix("/proc/").removesuffix("/cmdline")
            if pid.isdigit():
                found[int(pid)] = words.strip("\x1f").split("\x1f")[:512]
        return found

    def log(self) -> str | None:
        """Where the server's output goes, if that is a file."""
        for line in self.part("fd").decode("utf-8", "replace").splitlines():
            link = _LINK.search(line)
            if link and not link[1].startswith("/dev/"):
                return link[1]
        return None


class Reader:
    """Remembers which server it told of."""

    def __init__(self, log: str | None) -> None:
        self.pid: int | None = None
        self._log = log
        self._told: ServerFound | None = None

    def read(
        self, look: Look, gpus: tuple[Gpu, ...] | None, note: str | None
    ) -> Iterator[ServerFound | ServerGone | Sample]:
        """The events of one look."""
        processes, arguments = look.processes(), look.arguments()
        uptime, load = _numbers(look.part("up"))
        living = processes.get(self.pid) if self.pid else None
        if self.pid is not None and (living is None or living.state in {"Z", "X"}):
            yield ServerGone(pid=self.pid)
            self.pid = self._told = None
        found = self._server(processes, arguments, uptime, look)
        if found is not None and found != self._told:
            self._told = found
            yield found
        yield Sample(
            mono=uptime or 0.0,
            gpus=gpus,
            gpu_note=note,
            processes=_tree(self.pid, processes, arguments) if self.pid else None,
            host=HostLoad(
                load=load,
                mem_available=_kilobytes(look, b"MemAvailable:"),
                mem_total=_kilobytes(look, b"MemTotal:"),
            ),
        )

    def _server(
        self, processes: dict[int, Stat], arguments: dict[int, list[str]], uptime: float | None, look: Look
    ) -> ServerFound | None:
        known = self.pid is not None
        if not known:
            launches = [pid for pid in arguments if pid in processes and recognise.launch(arguments[pid])]
            roots = [pid for pid in launches if processes[pid].ppid not in launches]
            self.pid = max(roots, key=lambda pid: (processes[pid].start, pid), default=None)
        pid = self.pid
        if pid is None or pid not in arguments:
            return None
        argv, stat = arguments[pid], processes[pid]
        told = named(argv)
        if told.engine is None:
            return None
        return ServerFound(
            pid=pid,
            argv=told.argv,
            engine=told.engine,
            model=told.model,
            log=self._log or (look.log() if known else None),
            log_note="as given" if self._log else "a file that stdout or stderr leads to, if there is one",
            port=told.port,
            age=None if uptime is None or self._told is not None else max(0.0, uptime - stat.start / TICK),
            ticks=stat.start,
            ppid=stat.ppid,
        )


def _tree(root: int, processes: dict[int, Stat], arguments: dict[int, list[str]]) -> tuple[Process, ...]:
    members = {root}
    grew = True
    while grew:
        more = {pid for pid, stat in processes.items() if stat.ppid in members} - members
        members |= more
        grew = bool(more)
    return tuple(_process(pid, processes[pid], arguments.get(pid)) for pid in sorted(members) if pid in processes)


def _process(pid: int, stat: Stat, argv: list[str] | None) -> Process:
    return Process(
        pid=pid,
        ppid=stat.ppid,
        state=stat.state,
        name=stat.comm,
        title=" ".join(redact.arguments(argv))[:300] if argv else None,
        rank=recognise.rank(argv[0]) if argv else None,
        started=float(stat.start),
        cpu=(stat.number(11) + stat.number(12)) / TICK,
        system=stat.number(12) / TICK,
        children_cpu=(stat.number(13) + stat.number(14)) / TICK,
        minor_faults=stat.number(7),
        major_faults=stat.number(9),
        threads=stat.number(17),
        rss=stat.number(21) * PAGE,
    )


def _numbers(text: bytes) -> tuple[float | None, float | None]:
    """Uptime and load, from /proc/uptime and /proc/loadavg."""
    uptime, load, *_ = [*text.decode("ascii", "replace").split("\n"), "", ""]
    return _float(uptime.partition(" ")[0]), _float(load.partition(" ")[0])


def _kilobytes(look: Look, name: bytes) -> int | None:
    value = number_after(look.part("memory"), name)
    return None if value is None else int(value) * 1024


def gpu(line: bytes) -> Gpu | None:
    """A line of nvidia-smi's CSV; None where it is none."""
    words = [word.strip() for word in line.decode("utf-8", "replace").split(",")]
    if len(words) != 10 or not words[0].isdigit():
        return None
    util, mem_util, used, total, power, limit, temperature, clock = (_float(word) for word in words[2:])
    return Gpu(
        index=int(words[0]),
        name=words[1][:80],
        util=util,
        mem_util=mem_util,
        mem_used=None if used is None else int(used * 1024**2),
        mem_total=None if total is None else int(total * 1024**2),
        power=power,
        power_limit=limit,
        temperature=None if temperature is None else int(temperature),
        sm_clock=None if clock is None else int(clock),
        error="the GPU is lost" if "lost" in line.decode("utf-8", "replace").lower() else None,
    )


def _float(word: str) -> float | None:
    """A number; None for `[N/A]`, `[Not Supported]`, `ERR!`."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None
