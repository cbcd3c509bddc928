"""Everything that can be learned from a host.

One tagged union is the probe's wire format, the recording format and the only input of `Launch.apply`. Two clocks:
`at` is tuimon's own (seconds since the epoch, never jumps; ages are differences of it), `host_time` is what the host's
wall clock claimed (may lie or jump; only shown, and compared with the host's own file times). Unknown is `None`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# Told as part of an event, so found beside the events.
from tuimon.launch.machine import Gpu as Gpu
from tuimon.launch.machine import HostLoad as HostLoad
from tuimon.launch.machine import LogStat as LogStat
from tuimon.launch.machine import ProbeCost as ProbeCost
from tuimon.launch.machine import Process as Process
from tuimon.launch.machine import Thread as Thread

_SAME_START = 2.0
"""Seconds by which two readings of a process's start may differ."""


class Event(Struct, frozen=True, kw_only=True, tag=True, tag_field="event"):
    """What every event carries."""

    at: float = 0.0
    """tuimon's clock, s since the epoch; set on arrival (the probe sends 0)."""
    host_time: float | None = None
    """The host's wall clock, s since the epoch."""


class Linked(Event, frozen=True, kw_only=True, tag=True):
    """The link to the host is up."""

    host: str
    detail: str | None = None
    """How, in words: user, address, jump hosts."""


class Unlinked(Event, frozen=True, kw_only=True, tag=True):
    """The link is down; nothing is judged until `Linked`."""

    reason: str
    next_try: float | None = None
    """tuimon's clock; None = no further try without the user (wrong key, unknown host key)."""
    refused: bool = False
    """True where trying again is pointless until the user acts."""


class ServerFound(Event, frozen=True, kw_only=True, tag=True):
    """A server (or its launch) was found; a new pid means a new launch."""

    pid: int
    argv: tuple[str, ...] = ()
    """Command line with secrets already replaced by `***`."""
    engine: str | None = None
    """sglang, vllm, trtllm, llamacpp, torchrun …"""
    version: str | None = None
    model: str | None = None
    log: str | None = None
    """Path of the log on the host; None where stdout leads nowhere readable."""
    log_note: str | None = None
    """How the log was found, or in one sentence why it cannot be read and what to do."""
    address: str | None = None
    """Where to ask for health, from the host itself: 127.0.0.1 or the bound address."""
    port: int | None = None
    started: float | None = None
    """Host wall clock when the process started."""
    age: float | None = None
    """Seconds since the launch by the host's monotonic clock."""
    cgroup: str | None = None
    user: str | None = None
    ppid: int | None = None
    ticks: int | None = None
    """When the process started, in clock ticks since boot: exact, where `started` follows the host's wall clock."""

    def same(self, other: ServerFound | None) -> bool:
        """Whether both tell of one launch; a container's first process is pid 1 each time."""
        if other is None or self.pid != other.pid:
            return False
        if self.ticks is not None and other.ticks is not None:
            return self.ticks == other.ticks
        return self.started is None or other.started is None or abs(self.started - other.started) < _SAME_START


class Running(Struct, frozen=True):
    """A launch that runs on the host."""

    pid: int
    engine: str | None = None
    model: str | None = None
    port: int | None = None
    age: float | None = None
    """Seconds since it began."""


class Launches(Event, frozen=True, kw_only=True, tag=True):
    """All launches that run on the host, newest first; told where there are several, and when that changes."""

    found: tuple[Running, ...]


class ServerGone(Event, frozen=True, kw_only=True, tag=True):
    """Every process of the server has exited."""

    pid: int
    exit: int | None = None
    """Exit status where it could be seen (negative = signal); usually None."""
    oom: bool = False
    """The kernel ended it for want of memory, as a container's engine tells."""


class LogText(Event, frozen=True, kw_only=True, tag=True):
    """Bytes of the log, raw."""

    offset: int
    text: bytes
    age: float | None = None
    """Seconds since the last of them was written, where that was before we came and no sample tells (no file)."""


class LogReset(Event, frozen=True, kw_only=True, tag=True):
    """The next `LogText` does not continue the last."""

    why: Literal["rotated", "truncated", "relaunched", "skipped", "reconnected"]
    offset: int
    """Where reading goes on, bytes."""
    skipped: int = 0
    """Bytes not read between the last text and `offset`."""


class LogUnreadable(Event, frozen=True, kw_only=True, tag=True):
    """The log cannot be followed."""

    path: str
    reason: str


class Sample(Event, frozen=True, kw_only=True, tag=True):
    """One look at the machine. Rates are differences of two samples over `mono`."""

    mono: float
    """Host monotonic clock, s."""
    gpus: tuple[Gpu, ...] | None = None
    """None = cannot be seen, () = this machine has none."""
    gpu_note: str | None = None
    """Why GPUs cannot be seen, in words."""
    processes: tuple[Process, ...] | None = None
    """The server's tree, zombies included; None = not looked, () = all gone."""
    strangers: dict[int, str] | None = None
    """Processes outside the tree that hold GPU memory: pid → title."""
    log: LogStat | None = None
    host: HostLoad | None = None
    cost: ProbeCost | None = None


class Health(Event, frozen=True, kw_only=True, tag=True):
    """One question to the health endpoint, asked from the host itself."""

    address: str
    path: str | None = None
    """None = only a TCP connect."""
    status: int | None = None
    error: str | None = None
    """refused, timeout, reset, not HTTP …; None where it answered (or the port opened)."""
    latency: float | None = None
    """Seconds."""
    listener: int | None = None
    """Pid that holds the listening socket, where it could be seen."""


class Metrics(Event, frozen=True, kw_only=True, tag=True):
    """Chosen values of /metrics once the server is ready."""

    values: dict[str, float]


class Frame(Struct, frozen=True):
    """One stack frame."""

    name: str
    file: str | None = None
    line: int | None = None


class ThreadStack(Struct, frozen=True):
    """One thread's stack, innermost frame first."""

    name: str | None
    frames: tuple[Frame, ...]
    tid: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None


class RankStack(Struct, frozen=True):
    """All Python threads of one process; the main thread last, as py-spy gives them."""

    pid: int
    rank: str | None
    threads: tuple[ThreadStack, ...]
    state: str | None = None
    """The main thread's state letter when it was looked at; T (stopped) tells more than any frame."""
    wchan: str | None = None
    """Kernel function that the main thread sleeps in: tells a lock from a socket where no Python frame does."""


class Unread(Struct, frozen=True):
    """A process whose stack could not be read."""

    pid: int
    rank: str | None
    reason: str


class Stacks(Event, frozen=True, kw_only=True, tag=True):
    """One nonblocking look at the stacks of all ranks."""

    ranks: tuple[RankStack, ...] = ()
    unread: tuple[Unread, ...] = ()
    cost: float | None = None
    """Wall seconds on the host."""
    saved: str | None = None
    """Path on this machine where the dump was written."""
    asked: bool = False
    """True where the user pressed the key, False where the judge asked."""


class CollectiveCount(Struct, frozen=True):
    """How many collectives a rank has launched on one communicator."""

    rank: str
    communicator: str
    launched: int | None
    pid: int | None = None
    missing: bool = False
    """The rank does not answer."""


class Collectives(Event, frozen=True, kw_only=True, tag=True):
    """What NCCL RAS or a flight recorder said."""

    source: str
    counts: tuple[CollectiveCount, ...]
    text: str | None = None
    moving: bool | None = None
    """Counts rose while it was looked at: who is behind now is not stuck. None = seen once only."""


class UsualTimes(Event, frozen=True, kw_only=True, tag=True):
    """How long the phases of this launch took the last times on this host."""

    phases: dict[str, float]
    """Phase name → seconds (median)."""
    launches: int
    """How many launches this comes from."""


OWN_ERROR = "own_error"
"""Kind of a finding about tuimon itself."""


class Finding(Event, frozen=True, kw_only=True, tag=True):
    """Something a diagnosis found that is worth a line of its own."""

    source: str
    """Which look found it: kernel, ras, checkpoint, discovery …"""
    kind: str
    text: str
    severity: Literal["info", "warning", "fatal"] = "info"
    fix: str | None = None
    pid: int | None = None
    rank: str | None = None


class Report(Event, frozen=True, kw_only=True, tag=True):
    """What an action found, in words for a reader; secrets are already replaced."""

    of: str
    """The action: diagnose, collectives, checkpoint, aim, abort, flight_recorder, native, debug_server."""
    text: str
    """Markdown."""
    saved: tuple[str, ...] = ()
    """Paths on this machine, the report itself first."""
    seconds: float | None = None
    """How long the looks took."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""
    asked: bool = False
    """True where the user pressed the key, False where a verdict asked."""


class CommandRun(Event, frozen=True, kw_only=True, tag=True):
    """A command that was sent to the host."""

    command: str
    why: str
    duration: float | None = None
    """Seconds; None while it runs."""
    exit: int | None = None
    error: str | None = None


class Gap(Event, frozen=True, kw_only=True, tag=True):
    """A stretch that nobody saw."""

    of: Literal["link", "samples", "log", "tuimon"]
    since: float
    """tuimon's clock."""
    reason: str


AnyEvent = (
    Linked | Unlinked | ServerFound | ServerGone | Launches | LogText | LogReset | LogUnreadable | Sample | Health
    | Metrics | Stacks | Collectives | UsualTimes | Finding | Report | CommandRun | Gap
)  # fmt: skip
