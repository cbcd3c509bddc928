"""What the screen and the scripts are given: frozen snapshots of one launch.

Instants (`at`, `since`, `ready_at` …) are on tuimon's clock, seconds since the epoch; an age is `now - instant`.
Unknown is None and must be shown as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from tuimon.launch.events import Collectives, Report, Stacks
from tuimon.launch.steps import Advice

State = Literal[
    "waiting", "starting", "quiet", "stalled", "spinning", "frozen", "crashed",
    "ready", "serving", "failing", "finished", "unreachable",
]  # fmt: skip
RED: frozenset[State] = frozenset({"stalled", "spinning", "frozen", "crashed", "failing"})

Severity = Literal["milestone", "progress", "info", "warning", "error", "fatal"]


class Suspect(Struct, frozen=True):
    """A rank (or process) that seems to be behind."""

    rank: str | None
    pid: int | None
    reason: str


class Evidence(Struct, frozen=True):
    """One sign of life, with its age, as a reason for the verdict."""

    sign: str
    age: float | None
    """Seconds; None = never seen, or cannot be seen."""
    text: str


class Missing(Struct, frozen=True):
    """A milestone that should have come."""

    milestone: str
    """In words: "draft model load"."""
    because: str
    """Why it is expected: "expected (speculative_algorithm=EAGLE3), not seen"."""
    rank: str | None = None


class Verdict(Struct, frozen=True):
    """The judgement, with everything that explains it."""

    state: State
    since: float
    """When the state's reason began (for a stall: the last sign of life)."""
    headline: str
    """The banner in one line, without the age: "after “CUDA graphs”, nothing alive"."""
    kind: str | None = None
    """What kind of hang it looks like: "host deadlock", "collective spin", "storage" …"""
    phase: str | None = None
    certain: bool = False
    suspects: tuple[Suspect, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
    unseen: tuple[str, ...] = ()
    """Signs that cannot be seen here."""
    advice: Advice | None = None
    """What to do next."""
    alarms: tuple[str, ...] = ()
    """Alarms beside the state, e.g. `useless_draft`."""
    countdown: str | None = None
    """The server's own timer that will act, in words with its remaining time."""
    wants_stacks: bool = False
    """The judge asks for a look at the stacks."""


class LinkView(Struct, frozen=True):
    """The light "link"."""

    state: Literal["connecting", "up", "lost", "refused"]
    since: float
    detail: str | None = None
    reason: str | None = None
    next_try: float | None = None


class ServerView(Struct, frozen=True):
    """Who is launched."""

    pid: int
    engine: str | None
    version: str | None
    model: str | None
    log: str | None
    log_note: str | None
    address: str | None
    port: int | None
    started: float | None
    """tuimon's clock."""
    shape: str | None
    """`tp 8 · EAGLE3`: parallel sizes and speculation, from the arguments."""
    ranks: tuple[str, ...]
    launch: int
    """1 for the first launch seen, 2 after a relaunch."""
    argv: tuple[str, ...] = ()


class RunningView(Struct, frozen=True):
    """One of several launches on the host."""

    pid: int
    engine: str | None
    model: str | None
    port: int | None
    started: float | None
    """tuimon's clock."""
    watched: bool


class PhaseView(Struct, frozen=True):
    """One line of the timeline."""

    name: str
    state: Literal["done", "running", "missing", "failed", "expected"]
    start: float | None = None
    """tuimon's clock."""
    end: float | None = None
    rank: str | None = None
    """Only where the phase belongs to one rank."""
    count: float | None = None
    total: float | None = None
    rate: float | None = None
    """Counts per second."""
    eta: float | None = None
    """Seconds left."""
    usual: float | None = None
    """Seconds this phase took before, on this host."""
    note: str | None = None
    seconds: float | None = None
    """Duration, measured or as the log tells it."""


class GrowthView(Struct, frozen=True):
    """How the log grew."""

    total: int | None
    """Bytes."""
    rate: float | None
    """Bytes/s over the last 5 s."""
    buckets: tuple[float | None, ...]
    """Bytes per bucket, oldest first; None = a gap (nobody looked)."""
    bucket: float
    """Seconds per bucket."""
    last_growth: float | None
    last_line: float | None
    """When the last line that counts was seen (or, started late, the log's mtime)."""


class GpuView(Struct, frozen=True):
    """One GPU row."""

    index: int
    rank: str | None
    work: float | None
    """0–1, true work: memory traffic, DRAM bandwidth or power over this GPU's own idle; None = cannot be told."""
    util: float | None
    mem_used: int | None
    mem_total: int | None
    power: float | None
    power_limit: float | None
    temperature: int | None
    history: tuple[float | None, ...]
    """`work`, 0–1, one per bucket of 2 s, oldest first; None = gap."""
    word: str | None
    """Said when utilisation lies or something is wrong: "100 % busy, no work", "NVML silent 12 s", "Xid 79"."""
    suspect: bool = False
    name: str | None = None
    sm_clock: int | None = None
    pids: tuple[int, ...] = ()


class SignView(Struct, frozen=True):
    """One sign of life."""

    name: str
    """log, GPU work, GPU memory, link traffic, disk reads, host work, compilers, network, answers, stacks."""
    last: float | None
    """When last seen; None = never."""
    visible: bool
    """False = cannot be seen here."""
    text: str
    """Its reading in words: "0 % everywhere, idle power"."""
    alive: bool = False
    """Seen within the last few seconds."""


class ProcessView(Struct, frozen=True):
    """A process, or several that read the same."""

    label: str
    """`scheduler TP[0-2,4-7]`"""
    pids: tuple[int, ...]
    states: str
    """State letters seen, worst first."""
    waits_in: str | None
    cpu: float | None
    """% of one core."""
    rss: int | None
    """Bytes, summed."""
    threads: int | None
    suspect: bool = False
    depth: int = 0
    note: str | None = None


class HealthView(Struct, frozen=True):
    """The health strip."""

    address: str | None
    path: str | None
    last: float | None
    status: int | None
    error: str | None
    latency: float | None
    history: tuple[Literal["ok", "open", "refused", "error", "timeout", "gap"], ...]
    """Oldest first."""
    ready_at: float | None = None
    answered_at: float | None = None
    """Last time it answered."""


class ServingView(Struct, frozen=True):
    """After ready."""

    running: int | None
    queued: int | None
    tokens_per_second: float | None
    accept_length: float | None
    at: float | None
    """When these were said."""


class Episode(Struct, frozen=True):
    """A stretch of red that ended, kept in the timeline."""

    state: State
    kind: str | None
    start: float
    end: float | None
    phase: str | None
    suspects: tuple[Suspect, ...] = ()


class EarlierLaunch(Struct, frozen=True):
    """A launch that was followed by another one on the same host."""

    launch: int
    """1 for the first launch seen."""
    pid: int
    began: float
    ended: float
    ready_at: float | None
    state: State
    """The last verdict on it."""
    headline: str


class LogLine(Struct, frozen=True):
    """One line for display: clean text, no control characters, no secrets."""

    number: int
    """Absolute, from 0, never reused."""
    text: str
    """Message without time and rank prefix, cut to 4,000 characters."""
    at: float
    """When we saw it."""
    time: float | None = None
    """The log's own time, s since the epoch in the host's zone as if it were UTC; None where the line has none."""
    clock: str | None = None
    """The log's own time as written: `15:46:58`."""
    rank: str | None = None
    severity: Severity = "info"
    rule: str | None = None
    """Grammar rule that matched."""
    ours: bool = False
    """Caused by our own health questions."""
    gap: bool = False
    """Not a line of the log: a mark for something we skipped or that was reset."""
    raw: str | None = None
    """The whole line where `text` is not all of it (for copying and search)."""
    written: bytes | None = None
    """The line as the server wrote it, escapes and all, where it has colours: for `colours.runs` alone."""


class Lines(Protocol):
    """A frozen window over the logbook: absolute numbering, cheap to take, safe to read from another thread."""

    @property
    def first(self) -> int:
        """Number of the oldest line still held."""

    @property
    def end(self) -> int:
        """One past the newest line."""

    def __getitem__(self, number: int) -> LogLine:
        """The line with this absolute number; raises IndexError when it is not held."""

    def slice(self, start: int, stop: int) -> Sequence[LogLine]:
        """Lines from `start` to before `stop`, clipped to what is held."""


class LaunchView(Struct, frozen=True):
    """Everything the screen shows at one instant."""

    now: float
    host: str
    link: LinkView
    verdict: Verdict
    server: ServerView | None
    data_age: float | None
    """Seconds since the last sample; None = none yet."""
    phases: tuple[PhaseView, ...]
    growth: GrowthView
    gpus: tuple[GpuView, ...] | None
    gpu_note: str | None
    signs: tuple[SignView, ...]
    processes: tuple[ProcessView, ...] | None
    health: HealthView
    serving: ServingView | None
    lines: Lines
    stacks: Stacks | None = None
    """The latest look."""
    episodes: tuple[Episode, ...] = ()
    findings: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands sent to the host, newest last."""
    probe_cost: float | None = None
    """% of one core on the host."""
    usual_launches: int = 0
    launches: tuple[RunningView, ...] = ()
    """All launches on the host, newest first, where there are several."""
    error: str | None = None
    """First error of the log in one line, with its advice."""
    earlier: tuple[EarlierLaunch, ...] = ()
    """Launches before this one, oldest first."""
    collectives: Collectives | None = None
    """What NCCL or a flight recorder said last."""
    reports: tuple[Report, ...] = ()
    """The latest of each action."""
    own_errors: tuple[str, ...] = ()
    """What went wrong in tuimon itself, in words, each once, newest last; they outlive a relaunch, and stand among
    `findings` too."""
    broken: str | None = None
    """tuimon's own failure in words: nothing is judged now, and everything else here is old."""

    def report(self, of: str) -> Report | None:
        """The latest report of an action."""
        return next((report for report in self.reports if report.of == of), None)
