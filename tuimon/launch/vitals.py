"""All signs of life of one launch. Silence is the time, while somebody looked, since the last of them."""

from __future__ import annotations

from collections.abc import Mapping

from tuimon.launch.attention import Attention
from tuimon.launch.events import Metrics, Sample, Stacks
from tuimon.launch.gpu_signs import GpuMemory, GpuWork, LinkTraffic
from tuimon.launch.gpus import Gpus
from tuimon.launch.host_signs import Compilers, DiskReads, HostWork, Network
from tuimon.launch.lasting import age
from tuimon.launch.motion import StacksMoved
from tuimon.launch.ranks import is_bystander
from tuimon.launch.rates import Rates, Sustained, between
from tuimon.launch.signs import Look, Sign
from tuimon.launch.told import Told
from tuimon.launch.view import Evidence, SignView

SAME_TIME = 2.5
"""Seconds."""
TOKEN_COUNTERS = ("generation_tokens_total", "gen_throughput_tokens_total", "prompt_tokens_total")


class LogLife(Sign):
    """New text that is not an answer to our probes, no heartbeat, and no bar redrawn at the same count."""

    name = "log"

    def __init__(self) -> None:
        super().__init__()
        self.readable = False
        self.lost = False
        """It cannot be read, whatever was read before."""
        self.lost_at: float | None = None
        """When that happened while the launch was alive: patience begins anew."""
        self.lost_alone = False
        """It was the only sign of life then."""

    def tell(self, told: Told, *, idle: bool = False) -> None:
        """Take what the log told. `idle`: all that could work is seen and does not, so a refrain proves nothing."""
        if self.lost:
            return
        life = told.last_news if idle else told.last_life
        if told.last_text is not None or told.lines:
            self.visible = self.readable = True
        if life is not None:
            self.seen(life)
        if told.last_life is not None:
            said = (told.last_life_text or "").strip()
            again = self.last is None or told.last_life > self.last
            self.text = f"only a line that comes again and again: {_start(said, 60)}" if again else _start(said, 80)
        if told.last_heartbeat is not None and (self.last is None or told.last_heartbeat > self.last):
            self.text = f"only “still waiting” lines: {_start((told.heartbeat_text or '').strip(), 60)}"

    def lose(self, reason: str) -> None:
        """It cannot be read (any more): from now on its silence says nothing."""
        was_read = self.readable or self.last is not None
        self.lost, self.readable = True, False
        self.hidden(f"cannot be read any more: {reason}" if was_read else reason)


def _start(line: str, most: int) -> str:
    """The beginning of a line, with a mark where it goes on."""
    return (line if len(line) <= most else f"{line[: most - 1].rstrip()}…") or "it grew"


class Answers(Sign):
    """The server generated tokens for somebody. A 200 of the health endpoint is none: hung servers give it."""

    name = "answers"

    def __init__(self) -> None:
        super().__init__()
        self.text = "none yet"
        self._counters: dict[str, float] = {}

    def tell(self, told: Told) -> None:
        """Take what the log told."""
        if told.last_tokens is not None:
            self.visible = True
            self.seen(told.last_tokens)
            self.text = "tokens, as the log says"
        elif told.ready is not None:
            self.visible = True

    def count(self, event: Metrics) -> None:
        """Counters of /metrics that grew."""
        for key, value in event.values.items():
            if not any(name in key for name in TOKEN_COUNTERS):
                continue
            self.visible = True
            if value > self._counters.get(key, value):
                self.seen(event.at)
                self.text = "tokens, as /metrics says"
            self._counters[key] = value


class Vitals:
    """The signs in the order in which they are shown."""

    def __init__(self) -> None:
        self.log = LogLife()
        self.gpu_work = GpuWork()
        self.gpu_memory = GpuMemory()
        self.link = LinkTraffic()
        self.disk = DiskReads()
        self.host = HostWork()
        self.compilers = Compilers()
        self.network = Network()
        self.answers = Answers()
        self.stacks = StacksMoved()
        self.rates: Mapping[int, Rates] = {}
        self._sustained = Sustained()
        self._sampled = (
            self.gpu_work, self.gpu_memory, self.link, self.disk, self.host, self.compilers, self.network,
        )  # fmt: skip

    @property
    def all(self) -> tuple[Sign, ...]:
        """Every sign."""
        return (self.log, *self._sampled, self.answers, self.stacks)

    def see(self, before: Sample | None, sample: Sample, gpus: Gpus, front: int | None = None) -> None:
        """Read one sample beside the one before it. `front`: the pid whose work is answering questions, ours too."""
        self.rates = between(before, sample) if before is not None else {}
        seconds = sample.mono - before.mono if before is not None and sample.mono > before.mono else None
        bystanders = {process.pid for process in sample.processes or () if is_bystander(process)} | {front}
        lasting = self._sustained.take(self.rates, seconds)
        rates = {pid: rate for pid, rate in lasting.items() if pid not in bystanders}
        look = Look(at=sample.at, before=before, sample=sample, rates=rates, seconds=seconds, gpus=gpus)
        for sign in self._sampled:
            sign.see(look)

    def tell(self, told: Told, *, idle: bool = False) -> None:
        """Take what the log told, of a launch that is seen to be idle or is not."""
        self.log.tell(told, idle=idle)
        self.answers.tell(told)

    def moved(self, event: Stacks) -> None:
        """Take one look at the stacks."""
        self.stacks.take(event)

    def last(self, *, but_log: bool = False) -> float | None:
        """The latest sign of life."""
        instants = [sign.last for sign in self.all if sign.last is not None and not (but_log and sign is self.log)]
        return max(instants) if instants else None

    def freshest(self) -> Sign | None:
        """Which sign was seen last, the log aside: what keeps a quiet launch alive.

        Of those seen at about the same time the one that says most: compilers rather than the faults that they cause.
        """
        telling = (
            self.compilers, self.gpu_work, self.answers, self.disk, self.network, self.gpu_memory, self.link, self.host,
            self.stacks,
        )  # fmt: skip
        last = self.last(but_log=True)
        if last is None:
            return None
        return next((sign for sign in telling if sign.last is not None and last - sign.last <= SAME_TIME), None)

    def unseen(self) -> tuple[str, ...]:
        """Signs that this machine has but that cannot be seen."""
        return tuple(
            sign.name for sign in self.all if not sign.visible and not sign.absent and sign is not self.answers
        )

    def evidence(self, attention: Attention, now: float) -> tuple[Evidence, ...]:
        """Each visible sign with its age; what cannot be seen says why."""
        first = attention.first
        return tuple(self._evidence(sign, first, now) for sign in self.all if sign.visible or not sign.absent)

    def _evidence(self, sign: Sign, first: float | None, now: float) -> Evidence:
        if not sign.visible:
            return Evidence(sign=sign.name, age=None, text=sign.text)
        if sign.last is None:
            since = f" (not in the {age(now - first)} since we look)" if first is not None and now - first >= 1 else ""
            return Evidence(sign=sign.name, age=None, text=f"{sign.text}{since}")
        return Evidence(sign=sign.name, age=max(0.0, now - sign.last), text=sign.text)

    def views(self, now: float) -> tuple[SignView, ...]:
        """For the screen."""
        return tuple(sign.view(now) for sign in self.all)
