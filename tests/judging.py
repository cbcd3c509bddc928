"""A launch told second by second, for tests of the judge: who does what, and what is said then. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from tuimon.config import Patience
from tuimon.launch.events import (
    AnyEvent,
    Frame,
    Gpu,
    Health,
    HostLoad,
    Linked,
    LogReset,
    LogStat,
    Process,
    RankStack,
    Sample,
    ServerFound,
    Stacks,
    ThreadStack,
)
from tuimon.launch.state import Launch
from tuimon.launch.told import Told
from tuimon.launch.view import LogLine, Verdict

MIB = 1024 * 1024
START = 1_000_000.0

DOES: dict[str, dict[str, Any]] = {
    "sleeps": {"state": "S", "wchan": "futex_do_wait"},
    "imports": {
        "state": "R",
        "wchan": "0",
        "cpu": 1.0,
        "minor": 5000,
        "rchar": 5_000_000,
        "rss": 30 * MIB,
        "switches": 20,
    },
    "loads": {
        "state": "D",
        "wchan": "folio_wait_bit_common",
        "cpu": 0.2,
        "minor": 300,
        "major": 50,
        "read": 250_000_000,
        "switches": 30,
    },
    "spins": {"state": "R", "wchan": "0", "cpu": 1.0},
    "polls": {"state": "S", "wchan": "hrtimer_nanosleep", "cpu": 0.02, "switches": 290, "rchar": 3500},
    "dies on storage": {"state": "D", "wchan": "folio_wait_bit_common"},
    "stops": {"state": "T", "wchan": "do_signal_stop"},
    "zombie": {"state": "Z"},
}
GPU_DOES: dict[str, dict[str, Any]] = {
    "parked": {"util": 0.0, "mem_util": 0.0, "power": 78.0, "sm_clock": 345},
    "idle": {"util": 0.0, "mem_util": 0.0, "power": 118.0, "sm_clock": 1980},
    "spins": {"util": 100.0, "mem_util": 0.0, "power": 120.0, "sm_clock": 1980},
    "works": {"util": 60.0, "mem_util": 20.0, "power": 300.0, "sm_clock": 1980},
}


@dataclass
class Rank:
    """One process and what it does each second."""

    pid: int
    rank: str | None
    ppid: int = 100
    name: str = "python3"
    title: str | None = None
    does: str = "imports"
    more: dict[str, Any] = field(default_factory=dict)
    """Overrides of what it does, e.g. `minor=50`."""
    process: Process = field(default_factory=lambda: Process(pid=0, ppid=0, state="S"))

    def __post_init__(self) -> None:
        self.process = Process(
            pid=self.pid, ppid=self.ppid, state="S", name=self.name, title=self.title, rank=self.rank,
            started=float(self.pid),
            cpu=1.0, system=0.1, children_cpu=0.0, minor_faults=1000, major_faults=0, rss=2000 * MIB, threads=20,
            voluntary=100, involuntary=1, read_bytes=0, rchar=1000, write_bytes=0,
        )  # fmt: skip

    def step(self, seconds: float) -> Process:
        """Let time pass."""
        what = DOES[self.does] | self.more
        counters = {
            "cpu": "cpu", "system": "system", "children_cpu": "children", "minor_faults": "minor",
            "major_faults": "major", "rss": "rss",
            "voluntary": "switches", "read_bytes": "read", "rchar": "rchar", "write_bytes": "written",
        }  # fmt: skip
        changed: dict[str, Any] = {"state": what["state"], "wchan": what.get("wchan")}
        for counter, rate in counters.items():
            now = getattr(self.process, counter)
            if now is not None:
                grown = now + what.get(rate, 0) * seconds
                changed[counter] = grown if counter in {"cpu", "system", "children_cpu"} else int(grown)
        changed |= {
            key: what[key] for key in ("unread_bytes", "frozen", "busy_threads", "thread_states") if key in what
        }
        self.process = structs.replace(self.process, **changed)
        return self.process


class FakeReading:
    """Tells what the test says."""

    def __init__(self) -> None:
        self.now = Told()
        self.resets: list[LogReset] = []

    def begin(self, server: ServerFound | None, at: float) -> None:
        """Nothing to begin."""

    def feed(self, text: bytes, at: float, written: float | None = None) -> None:
        """Any text is life, at the time at which it was written."""
        at = at if written is None else written
        self.now = structs.replace(
            self.now, lines=self.now.lines + 1, last_life=at, last_news=at, last_text=at, last_life_text=text.decode()
        )

    def reset(self, event: LogReset) -> None:
        """Remember it."""
        self.resets.append(event)

    def told(self, now: float) -> Told:
        """What the test says."""
        return self.now

    def lines(self) -> NoLines:
        """None."""
        return NoLines()


class NoLines:
    """An empty log."""

    first = 0
    end = 0

    def __getitem__(self, number: int) -> LogLine:
        raise IndexError(number)

    def slice(self, start: int, stop: int) -> list[LogLine]:
        """Nothing."""
        return []


class Story:
    """A host with a launch of some ranks, told second by second."""

    def __init__(
        self,
        ranks: int = 2,
        *,
        gpus: bool = True,
        log: bool = True,
        host: bool = True,
        patience: Patience | None = None,
        real_log: bool = False,
        argv: tuple[str, ...] = ("python3", "-m", "sglang.launch_server"),
        engine: str = "sglang",
    ) -> None:
        self.launch = Launch("gpu-17", patience)
        self.real_log = real_log
        self.argv, self.engine = argv, engine
        self.now = START
        self.mono = 500.0
        self.interval = 1.0
        self.root = Rank(100, None, ppid=1, title="python3 -m sglang.launch_server", does="sleeps")
        self.ranks = [Rank(101 + i, f"TP{i}", title=f"sglang::scheduler_TP{i}") for i in range(ranks)]
        self.others: list[Rank] = []
        self.gpus: list[str] | None = ["parked"] * ranks if gpus else None
        self.gpu_more: dict[int, dict[str, Any]] = {}
        self.gpu_memory = [1000 * MIB] * ranks
        self.host = host
        self.log = log
        self.log_stat: LogStat | None = None
        self.host_load = HostLoad(oom_kills=0)
        self.strangers: dict[int, str] | None = None
        self.reading = FakeReading()
        self.verdicts: list[tuple[float, Verdict]] = []
        self.apply(Linked(at=self.now, host="gpu-17"))
        self.found(self.root.pid)

    def found(self, pid: int) -> None:
        """A server is found."""
        self.apply(
            ServerFound(
                at=self.now,
                pid=pid,
                argv=self.argv,
                engine=self.engine,
                started=float(pid),
            )
        )
        if self.real_log:
            return
        self.reading = FakeReading()
        self.launch.run.reading = self.reading  # type: ignore[assignment]  # a stand-in with the same four methods
        if self.log:
            self.says("server_args=")

    def apply(self, event: AnyEvent) -> None:
        """Hand one event over."""
        self.launch.apply(event)

    @property
    def told(self) -> Told:
        """What the log has told."""
        return self.reading.now

    def tells(self, **facts: object) -> None:
        """The log has told this."""
        self.reading.now = structs.replace(self.reading.now, **facts)

    def says(self, line: str) -> None:
        """A new line of the log that counts as life."""
        self.reading.feed(line.encode(), self.now)

    def everybody(self, does: str, gpus: str | None = None) -> None:
        """All ranks, and perhaps all GPUs, do the same."""
        for rank in self.ranks:
            rank.does = does
        if gpus is not None and self.gpus is not None:
            self.gpus = [gpus] * len(self.gpus)

    def asks(
        self, status: int | None = 200, error: str | None = None, path: str = "/health", listener: int | None = None
    ) -> None:
        """A health question is answered."""
        self.apply(
            Health(
                at=self.now,
                address="127.0.0.1",
                path=path,
                status=None if error else status,
                error=error,
                listener=listener,
            )
        )

    def sample(self) -> Sample:
        """What the probe sees now."""
        processes = (
            tuple(rank.step(self.interval) for rank in [self.root, *self.ranks, *self.others]) if self.host else None
        )
        gpus = None
        if self.gpus is not None:
            gpus = tuple(
                Gpu(
                    index=i,
                    mem_used=self.gpu_memory[i],
                    **({"procs": {rank.pid: self.gpu_memory[i]}} | GPU_DOES[does] | self.gpu_more.get(i, {})),
                )
                for i, (does, rank) in enumerate(zip(self.gpus, self.ranks, strict=False))
            )
        return Sample(
            at=self.now, host_time=self.now, mono=self.mono, gpus=gpus, processes=processes, log=self.log_stat,
            host=self.host_load, strangers=self.strangers,
        )  # fmt: skip

    def runs(self, seconds: float) -> Verdict:
        """Let time pass under the probe's eyes; the last verdict."""
        steps = round(seconds / self.interval)
        for _ in range(steps):
            self.now += self.interval
            self.mono += self.interval
            self.apply(self.sample())
            self.verdicts.append((self.now, self.launch.settle(self.now)))
        return self.launch.verdict

    def unseen(self, seconds: float) -> Verdict:
        """Let time pass while nobody looks."""
        for _ in range(round(seconds)):
            self.now += 1
            self.mono += 1
            for rank in [self.root, *self.ranks, *self.others]:
                rank.step(1.0)
            self.verdicts.append((self.now, self.launch.settle(self.now)))
        return self.launch.verdict

    def looks(self, *frames: list[tuple[str, int]], rank_names: bool = True) -> None:
        """A look at the stacks: for each rank its frames, innermost first, as (function, line)."""
        stacks = tuple(
            RankStack(
                pid=rank.pid,
                rank=rank.rank if rank_names else None,
                threads=(
                    ThreadStack(
                        name="MainThread",
                        frames=tuple(Frame(name=name, file=f"{name}.py", line=line) for name, line in stack),
                    ),
                ),
            )
            for rank, stack in zip(self.ranks, frames, strict=False)
        )
        self.apply(Stacks(at=self.now, ranks=stacks))

    def states(self) -> list[str]:
        """States in order, without repeats."""
        states: list[str] = []
        for _, verdict in self.verdicts:
            if not states or states[-1] != verdict.state:
                states.append(verdict.state)
        return states


def hung(ranks: int = 2, does: str = "sleeps", gpus: str = "idle") -> Story:
    """A launch that was alive for 10 s and then hangs."""
    story = Story(ranks)
    story.runs(5)
    story.everybody("imports", "idle")
    story.runs(5)
    story.says("the last line")
    story.everybody(does, gpus)
    return story
