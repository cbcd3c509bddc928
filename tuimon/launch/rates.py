"""What each process did between two samples. Counters become rates over the host's monotonic clock, nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from msgspec import Struct, structs

from tuimon.launch.events import Process, Sample


class Rates(Struct, frozen=True):
    """One process between two samples, per second; None = cannot be told. CPU in cores, the rest in counts or bytes."""

    pid: int
    seconds: float
    """Between the two samples."""
    cpu: float | None = None
    system: float | None = None
    children: float | None = None
    minor: float | None = None
    major: float | None = None
    rss: float | None = None
    read: float | None = None
    rchar: float | None = None
    written: float | None = None
    switches: float | None = None
    """Voluntary context switches."""


def between(before: Sample, after: Sample) -> dict[int, Rates]:
    """Rates by pid, for processes that both samples hold. Empty where the clock went back (a reboot)."""
    seconds = after.mono - before.mono
    if seconds <= 0 or not after.processes:
        return {}
    old = {process.pid: process for process in before.processes or ()}
    rates = {}
    for process in after.processes:
        earlier = old.get(process.pid)
        if earlier is not None and same(earlier, process):
            rates[process.pid] = _rates(earlier, process, seconds)
    return rates


def same(earlier: Process, later: Process) -> bool:
    """Whether a pid still names the same process: its start time decides, else CPU time that went back betrays it."""
    if earlier.started is not None and later.started is not None:
        return earlier.started == later.started
    return earlier.cpu is None or later.cpu is None or later.cpu >= earlier.cpu


def total(rates: Mapping[int, Rates], field: str) -> float | None:
    """Sum of one rate over the tree; None where no process tells it."""
    values = [value for rate in rates.values() if (value := getattr(rate, field)) is not None]
    return sum(values) if values else None


SUSTAINED = 10.0
"""Seconds. A thread that exports metrics works for a moment each 5-15 s, work that brings a launch on goes on."""
DEEDS = ("minor", "major", "rss", "read", "rchar", "written")
"""What a process does for the launch, or does beside it."""


class Sustained:
    """Each process's deeds as far as they last: never more than it did on average over the last seconds."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, dict[int, tuple[int, ...]]]] = deque(maxlen=64)
        """The last intervals, each with its seconds and what each process that did anything did in it."""

    def take(self, rates: Mapping[int, Rates], seconds: float | None) -> dict[int, Rates]:
        """The rates of one more interval, dampened."""
        if seconds is None:
            self._past.clear()
            return {}
        self._past.append((seconds, {pid: done for pid, rate in rates.items() if any(done := _done(rate, seconds))}))
        covered = sum(length for length, _ in self._past)
        while len(self._past) > 1 and max(covered - self._past[0][0], self._past[0][0]) >= SUSTAINED:
            covered -= self._past.popleft()[0]  # also what one long interval held, a gap: its mean tells of no second
        return {pid: self._dampened(pid, rate, covered) for pid, rate in rates.items()}

    def _dampened(self, pid: int, rate: Rates, covered: float) -> Rates:
        if pid not in self._past[-1][1]:
            return rate
        means = map(sum, zip(*(done[pid] for _, done in self._past if pid in done), strict=True))
        now = ((field, getattr(rate, field), mean / covered) for field, mean in zip(DEEDS, means, strict=True))
        return structs.replace(rate, **{field: min(value, mean) for field, value, mean in now if (value or 0.0) > 0})


def _done(rate: Rates, seconds: float) -> tuple[int, ...]:
    """What a process did in this interval, in faults and bytes. What was given back was not done."""
    return tuple([round(max(0.0, getattr(rate, field) or 0.0) * seconds) for field in DEEDS])


def most(rates: Mapping[int, Rates], field: str) -> float:
    """The rate of the process that does most: of many that do next to nothing the sum proves nothing."""
    return max((getattr(rate, field) or 0.0 for rate in rates.values()), default=0.0)


def _rates(old: Process, new: Process, seconds: float) -> Rates:
    return Rates(
        pid=new.pid,
        seconds=seconds,
        cpu=_rate(old.cpu, new.cpu, seconds),
        system=_rate(old.system, new.system, seconds),
        children=_rate(old.children_cpu, new.children_cpu, seconds),
        minor=_rate(old.minor_faults, new.minor_faults, seconds),
        major=_rate(old.major_faults, new.major_faults, seconds),
        rss=None if old.rss is None or new.rss is None else (new.rss - old.rss) / seconds,
        read=_rate(old.read_bytes, new.read_bytes, seconds),
        rchar=_rate(old.rchar, new.rchar, seconds),
        written=_rate(old.write_bytes, new.write_bytes, seconds),
        switches=_rate(old.voluntary, new.voluntary, seconds),
    )


def _rate(old: float | None, new: float | None, seconds: float) -> float | None:
    """A counter that went backwards tells nothing."""
    if old is None or new is None or new < old:
        return None
    return (new - old) / seconds
