"""One launch of a server, from the moment it was found: everything that was learned about it."""

from __future__ import annotations

from collections import deque

from tuimon.config import Patience
from tuimon.launch import serving
from tuimon.launch.attention import Attention
from tuimon.launch.deaths import Deaths
from tuimon.launch.events import (
    Collectives,
    Finding,
    Health,
    LogReset,
    LogText,
    LogUnreadable,
    Metrics,
    Process,
    Report,
    Sample,
    ServerFound,
    ServerGone,
    Stacks,
    UsualTimes,
)  # fmt: skip
from tuimon.launch.gpus import Gpus
from tuimon.launch.growth import Growth
from tuimon.launch.health import HealthStrip
from tuimon.launch.patience import idles
from tuimon.launch.reading import Reading
from tuimon.launch.told import Told
from tuimon.launch.view import Episode, ServerView
from tuimon.launch.vitals import Vitals

RUNNING_GAUGES = ("num_running_reqs", "num_requests_running")
MAX_FINDINGS = 50
BORN_SECONDS = 5.0
HELD_SECONDS = 2.0
"""Text waits so long for the first sample; without a sampler none comes."""


class Run:
    """State of one launch. Instants are tuimon's clock."""

    def __init__(self, number: int, server: ServerFound | None, gpus: Gpus, patience: Patience) -> None:
        self.number = number
        self.server = server
        self.patience = patience
        self.gpus = gpus
        """Shared between launches: a GPU's idle power is learned once."""
        self.began = server.at if server else 0.0
        self.attention = Attention()
        self.reading = Reading()
        self.told = Told()
        self.vitals = Vitals()
        self.growth = Growth()
        self.deaths = Deaths()
        self.health = HealthStrip()
        self.sample: Sample | None = None
        self.processes: tuple[Process, ...] = ()
        self.processes_seen = False
        self.stacks: Stacks | None = None
        self.collectives: Collectives | None = None
        self.reports: dict[str, Report] = {}
        """The latest of each action."""
        self.usual: UsualTimes | None = None
        self.findings: deque[Finding] = deque(maxlen=MAX_FINDINGS)
        self.episodes: list[Episode] = []
        self.log_trouble: str | None = None
        self.gone_at: float | None = None
        self.exit: int | None = None
        self.oom = False
        """Its container's engine tells that it ended for want of memory."""
        self.born_at: float | None = None
        self.idles_calmly = False
        """Seen idle, after ready, without a spinning GPU."""
        self._gauge_since: float | None = None
        self._said_pending: float | None = None
        self.unread_since: float | None = None
        """Since when some process of ours has had unread bytes in its sockets."""
        self._gauge: tuple[float, float] | None = None
        self._held: list[LogText] = []
        self._first_stat: tuple[int, float] | None = None
        self.reading.begin(server, self.began)

    # What comes in

    def take_sample(self, event: Sample) -> None:
        """One look at the machine."""
        before = self.sample
        self.attention.look(event.at)
        self.gpus.see(event, event.at)
        self.vitals.see(before, event, self.gpus, self._front())
        self.deaths.see(event, event.at)
        if event.processes is not None:
            self._take_processes(event)
        self._take_stat(event)
        self._read_held()
        self.growth.look(event.at, looked=True)
        self.sample = event

    def _front(self) -> int | None:
        """The process that answers at the port, where others are the ranks: a scrape costs it a megabyte of reading."""
        event = self.health.event
        if event is None or event.listener is None or not self.health.reached:
            return None
        ranks = {process.pid for process in self.processes if process.rank is not None}
        return event.listener if ranks and event.listener not in ranks else None

    def _take_processes(self, event: Sample) -> None:
        now = event.processes or ()
        known = {process.pid for process in self.processes}
        if self.processes and any(process.pid not in known for process in now):
            self.born_at = event.at
        if not now and self.processes and self.gone_at is None:
            self.gone_at = event.at
        if now:
            self.gone_at = None
        self.processes = now
        self.processes_seen = True
        unread = any(process.unread_bytes for process in now)
        self.unread_since = (event.at if self.unread_since is None else self.unread_since) if unread else None

    def _take_stat(self, event: Sample) -> None:
        stat = event.log
        if stat is None:
            return
        self.growth.size(stat.size, event.at)
        if self._first_stat is None:
            # The only place where the host's clock matters: both times are the host's, from the same sample.
            quiet = max(0.0, event.host_time - stat.mtime) if event.host_time is not None else 0.0
            self._first_stat = (stat.size, event.at - quiet)

    def take_text(self, event: LogText) -> None:
        """New bytes of the log."""
        self.log_trouble = None
        self.vitals.log.lost = self.vitals.log.lost_alone = False
        self.growth.text(event)
        if self._first_stat is None and self.sample is None:
            # How old text is that was there before us, only the first sample tells.
            self._held.append(event)
            return
        self._read(event)

    def _read(self, event: LogText) -> None:
        stat = self._first_stat
        old = stat is not None and event.offset + len(event.text) <= stat[0]
        if old and stat is not None:
            self.reading.feed(event.text, event.at, min(event.at, stat[1]))
        elif event.age is not None:
            self.reading.feed(event.text, event.at, event.at - max(0.0, event.age))
        else:
            self.reading.feed(event.text, event.at)

    def _read_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._read(event)

    def take_reset(self, event: LogReset) -> None:
        """The log began anew, or a part was skipped."""
        self.reading.reset(event)
        self.growth.reset(event)

    def take_unreadable(self, event: LogUnreadable) -> None:
        """The log cannot be followed."""
        self.log_trouble = event.reason
        log = self.vitals.log
        self.vitals.tell(self.reading.told(event.at), idle=idles(self))
        if log.readable and self.silence(event.at) < self.patience.quiet:
            others = self.vitals.last(but_log=True)
            log.lost_alone = others is None or event.at - others >= self.patience.quiet
            log.lost_at = event.at
        log.lose(event.reason)

    def take_health(self, event: Health) -> None:
        """One answer of the health endpoint."""
        self.health.see(event, frozenset(process.pid for process in self.processes))

    def take_metrics(self, event: Metrics) -> None:
        """Values of /metrics."""
        self.vitals.answers.count(event)
        gauges = [value for key, value in event.values.items() if any(name in key for name in RUNNING_GAUGES)]
        if gauges:
            self._gauge = (event.at, sum(gauges))
            since = event.at if self._gauge_since is None else self._gauge_since
            self._gauge_since = since if sum(gauges) else None

    def take_stacks(self, event: Stacks) -> None:
        """A look at the stacks."""
        self.stacks = event
        self.vitals.moved(event)

    def take_gone(self, event: ServerGone) -> None:
        """Every process has exited."""
        self.gone_at = event.at if self.gone_at is None else self.gone_at
        self.exit, self.oom = event.exit, event.oom
        self.processes = ()
        self._read_held()  # no sample comes any more

    def hear(self, now: float) -> Told:
        """What the log has told so far; also moves the log's own signs."""
        if self._held and now - self._held[0].at >= HELD_SECONDS:
            self._read_held()
        self.told = self.reading.told(now)
        self.vitals.tell(self.told, idle=idles(self))
        self._note_pending(now)
        self.idles_calmly = self.idles_calmly or (self.ready_at is not None and serving.idles_calmly(self, now))
        return self.told

    def _note_pending(self, now: float) -> None:
        """Requests that wait or run while no token comes, as a status line says that is written again and again."""
        said = self.told.serving
        if (
            said is None
            or said.at is None
            or now - said.at > serving.FRESH
            or said.tokens_per_second != 0
            or not (said.running or said.queued)
        ):
            self._said_pending = None
        elif self._said_pending is None:
            self._said_pending = said.at

    # What is asked

    @property
    def came_late(self) -> bool:
        """The log was already silent when we came."""
        first, last = self.attention.first, self.vitals.log.last
        return first is not None and last is not None and last < first

    @property
    def ready_at(self) -> float | None:
        """When the server was ready: the log's line or the first proving answer, whichever came first."""
        log_tells = self.vitals.log.readable and not self.told.milestones_hidden
        sources = (self.told.ready, self.health.ready_at, None if log_tells else self.health.http_at)
        return min((instant for instant in sources if instant is not None), default=None)

    @property
    def born_lately(self) -> bool:
        """A process of the tree began within the last seconds."""
        return self.born_at is not None and self.sample is not None and self.sample.at - self.born_at <= BORN_SECONDS

    def running(self, now: float) -> int | None:
        """Requests that run now, only from a fresh source: the last line of a batch stays in the log for ever."""
        if self._gauge is not None and now - self._gauge[0] <= serving.FRESH:
            return int(self._gauge[1])
        said = self.told.serving
        if self._said_pending is not None and said is not None:
            return (said.running or 0) + (said.queued or 0)
        return None

    @property
    def pending_since(self) -> float | None:
        """Since when requests are said to run or wait."""
        return self._gauge_since if self._gauge_since is not None else self._said_pending

    def silence_began(self) -> float:
        """The last sign of life, or when a stopped process went on, or when we began to look (or lost the log)."""
        began = (self.vitals.last(), self.deaths.resumed_at, self.vitals.log.lost_at)
        instants = [instant for instant in began if instant is not None]
        if instants:
            return max(instants)
        return self.attention.first if self.attention.first is not None else self.began

    def silence(self, now: float) -> float:
        """Seconds without any sign of life while somebody looked."""
        first = self.attention.first
        if first is None:
            # No sampler at all (no Python on the host): the log alone is followed, as long as the link is up.
            return max(0.0, now - max(self.began, self.silence_began())) if self.vitals.log.readable else 0.0
        return self.attention.looked(max(first, self.silence_began()), now)

    def view(self) -> ServerView | None:
        """Who is launched."""
        server, told = self.server, self.told
        if server is None:
            return None
        started = server.at - server.age if server.age is not None else None
        return ServerView(
            pid=server.pid, engine=told.engine or server.engine, version=told.version or server.version,
            model=told.model or server.model, log=server.log, log_note=self.log_trouble or server.log_note,
            address=server.address, port=server.port, started=started, shape=told.shape, ranks=told.ranks,
            launch=self.number, argv=server.argv,
        )  # fmt: skip
