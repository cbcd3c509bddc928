"""GPUs: true work instead of utilisation, with each card's own idle power learned while it does nothing."""

from __future__ import annotations

from collections import deque
from math import isnan

from msgspec import Struct, structs

from tuimon.launch.attention import Attention
from tuimon.launch.events import Gpu, Process, Sample
from tuimon.launch.view import GpuView

PARKED_CLOCK = 500
"""MHz. Data-centre GPUs park at 210-345 MHz and never run a kernel there; a CUDA context holds the full clock."""
SETTLED_SECONDS = 2.0
SETTLED_SHARE = 0.02
"""Power that stays within 2 % for 2 s is a level; while clocks rise it climbs (measured 78 → 118 W in 1.5 s)."""
OVER_IDLE = 1.09
"""Measured: spinning collectives idle + 2 W (≤ 1.03 of idle), graph capture ≥ 1.15 of idle."""
OVER_IDLE_SPINNING = 1.25
"""At 100 % utilisation the spin itself costs power, on some GPUs a third of idle and more. So this counts only where
memory traffic cannot be read; where it is read as none, a busy GPU works only if it is loud (690 W of 118)."""
LOUD_SHARE = 0.5
"""Over half of the power limit is work even where idle was never seen."""
LOUD_WATTS = 300.0
"""Where the limit is not told. No GPU of 700 W idles or spins at this."""
DRAM_WORK = 0.1
"""% of peak bandwidth. Measured: 0.00-0.03 idle and spinning, 0.8 and more at the lightest work."""
BUSY_UTIL = 90.0
BUCKET = 2.0
HISTORY = 60
MEMORY_STEP = 2 * 1024 * 1024
"""Bytes; drivers breathe by 2 MiB by themselves."""


class _Level(Struct, frozen=True):
    at: float
    power: float
    parked: bool


def _is_loud(gpu: Gpu) -> bool:
    """Power that no idle GPU draws."""
    if gpu.power is None:
        return False
    return gpu.power > (LOUD_SHARE * gpu.power_limit if gpu.power_limit else LOUD_WATTS)


class Card:
    """One GPU of the machine."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.now: Gpu = Gpu(index)
        self.idle: float | None = None
        """W at full clock while nothing ran."""
        self.ours = True
        self.work: float | None = None
        self.working = False
        self.spins = False
        """Busy by utilisation, without any work."""
        self.spins_since: float | None = None
        self.memory: int | None = None
        self.memory_moved = False
        self.pids: tuple[int, ...] = ()
        self._window: deque[_Level] = deque(maxlen=16)
        self._history: deque[float | None] = deque(maxlen=HISTORY)
        self._bucket: int | None = None

    def see(self, gpu: Gpu, tree: frozenset[int], at: float) -> None:
        """Take a reading."""
        if gpu.dram_active is not None and isnan(gpu.dram_active):
            gpu = structs.replace(gpu, dram_active=None)  # GPM's first sample has nothing to compare with
        self.now = gpu
        self.pids = tuple(sorted(pid for pid in gpu.procs or {} if pid in tree))
        if gpu.util is None and len(self.pids) < len(gpu.procs or {}):
            gpu = structs.replace(gpu, power=None)  # a slice of a card (MIG): its power is the neighbours' too
        self._learn(gpu, at)
        self.working = self._works(gpu)
        self.work = self._share(gpu)
        spins = not self.working and gpu.util is not None and gpu.util >= BUSY_UTIL and self._can_tell(gpu)
        self.spins_since = (self.spins_since if self.spins else at) if spins else None
        self.spins = spins
        self._see_memory(gpu)
        self._remember(at)

    @property
    def parks(self) -> bool:
        """At its parking clock: no kernel runs there."""
        return self.now.sm_clock is not None and self.now.sm_clock < PARKED_CLOCK

    def _can_tell(self, gpu: Gpu) -> bool:
        return (
            gpu.mem_util is not None or gpu.dram_active is not None or (gpu.power is not None and self.idle is not None)
        )

    def _moves_memory(self, gpu: Gpu) -> bool:
        return (gpu.mem_util or 0) >= 1 or (gpu.dram_active or 0) >= DRAM_WORK

    def _works(self, gpu: Gpu) -> bool:
        if self._moves_memory(gpu):
            return True
        # 0 % utilisation does not lie: no kernel ran, whatever the power still says.
        if gpu.power is None or self.parks or gpu.util == 0:
            return False
        if _is_loud(gpu):
            return True
        spins = (gpu.util or 0) >= BUSY_UTIL
        if spins and (gpu.mem_util is not None or gpu.dram_active is not None):
            return False
        margin = OVER_IDLE_SPINNING if spins else OVER_IDLE
        return self.idle is not None and gpu.power > margin * self.idle

    def _learn(self, gpu: Gpu, at: float) -> None:
        """A level is learned only from settled power at one clock level, without memory traffic.

        Otherwise the climb to full clock would be taken for idle, and idle for work from then on. At 0 % utilisation
        the level is certain and replaces what was learned; under a spin it can only lower it.
        """
        if gpu.power is None or self._moves_memory(gpu) or _is_loud(gpu):
            self._window.clear()
            return
        if self._window and (self._window[-1].parked != self.parks or not self._settles(gpu.power)):
            self._window.clear()
        self._window.append(_Level(at, gpu.power, parked=self.parks))
        if at - self._window[0].at < SETTLED_SECONDS or self.parks:
            return
        self.idle = gpu.power if self.idle is None or gpu.util == 0 else min(self.idle, gpu.power)

    def _settles(self, power: float) -> bool:
        return all(abs(power - level.power) <= SETTLED_SHARE * power for level in self._window)

    def _share(self, gpu: Gpu) -> float | None:
        if gpu.error or not self._can_tell(gpu):
            return None
        if not self.working:
            return 0.0
        shares = [(gpu.mem_util or 0) / 100, (gpu.dram_active or 0) / 100]
        if gpu.power is not None and gpu.power_limit and self.idle is not None and gpu.power_limit > self.idle:
            shares.append((gpu.power - self.idle) / (gpu.power_limit - self.idle))
        return min(1.0, max(0.01, *shares))

    def _see_memory(self, gpu: Gpu) -> None:
        ours = sum(gpu.procs[pid] for pid in self.pids) if gpu.procs and self.pids else gpu.mem_used
        self.memory_moved = self.memory is not None and ours is not None and abs(ours - self.memory) > MEMORY_STEP
        if ours is not None:
            self.memory = ours

    def _remember(self, at: float) -> None:
        bucket = int(at // BUCKET)
        if self._bucket is None:
            self._bucket = bucket - 1
        if bucket <= self._bucket:
            last = self._history[-1] if self._history else None
            if self._history and self.work is not None:
                self._history[-1] = max(last or 0.0, self.work)
            return
        for _ in range(min(bucket - self._bucket - 1, HISTORY)):
            self._history.append(None)
        self._history.append(self.work)
        self._bucket = bucket

    def fill_gap(self, now: float) -> None:
        """Buckets that passed unseen are gaps, not zeros."""
        while self._bucket is not None and self._bucket < int(now // BUCKET) - 2:
            self._bucket += 1
            self._history.append(None)
            if int(now // BUCKET) - self._bucket > HISTORY:
                self._bucket = int(now // BUCKET) - HISTORY

    def view(self, rank: str | None, *, suspect: bool) -> GpuView:
        """The row for the screen."""
        gpu = self.now
        return GpuView(
            index=self.index, rank=rank, work=self.work, util=gpu.util, mem_used=gpu.mem_used, mem_total=gpu.mem_total,
            power=gpu.power, power_limit=gpu.power_limit, temperature=gpu.temperature, history=tuple(self._history),
            word=self.word(), suspect=suspect, name=gpu.name, sm_clock=gpu.sm_clock, pids=self.pids,
        )  # fmt: skip

    def word(self) -> str | None:
        """Said when utilisation lies or something is wrong."""
        if self.now.error:
            return self.now.error
        if self.now.xid:
            return f"Xid {self.now.xid}"
        if self.spins:
            return f"{self.now.util:.0f} % busy, no work"
        return slowed(self.now.reasons)


SLOWED = ((0x40 | 0x20, "heat"), (0x80, "power brake"), (0x8, "hardware"))
"""Bits of NVML's clocks event reasons that say that something is wrong; its own power cap (4) is normal under load."""


def slowed(reasons: int | None) -> str | None:
    """`slowed: heat`; None where the clock is held down by nothing unusual, or nobody knows."""
    causes = [cause for bits, cause in SLOWED if (reasons or 0) & bits]
    # A hardware slowdown is reported beside its cause.
    return f"slowed: {causes[0]}" if causes else None


class Gpus:
    """All GPUs, and which of them are ours."""

    def __init__(self) -> None:
        self.cards: dict[int, Card] = {}
        self.seen: bool | None = None
        """None = not looked yet, False = cannot be seen."""
        self.note: str | None = None

    def see(self, sample: Sample, at: float) -> None:
        """Take all readings of one sample."""
        self.note = sample.gpu_note
        self.seen = sample.gpus is not None
        tree = frozenset(process.pid for process in sample.processes or ())
        for gpu in sample.gpus or ():
            card = self.cards.get(gpu.index) or self.cards.setdefault(gpu.index, Card(gpu.index))
            card.see(gpu, tree, at)
        if sample.gpus is not None:
            there = {gpu.index for gpu in sample.gpus}
            self.cards = {index: card for index, card in self.cards.items() if index in there}
        anybody = any(card.pids for card in self.cards.values())
        for card in self.cards.values():
            strangers_only = bool(card.now.procs) and not card.pids and sample.processes is not None
            card.ours = bool(card.pids) if anybody else not strangers_only

    @property
    def none_here(self) -> bool:
        """The machine has no GPU."""
        return self.seen is True and not self.cards

    @property
    def ours(self) -> list[Card]:
        """GPUs that this launch uses, as far as can be told."""
        return [card for card in self.cards.values() if card.ours]

    def rows(self, processes: tuple[Process, ...], suspects: frozenset[int], now: float) -> tuple[GpuView, ...] | None:
        """Rows for the screen; None where GPUs cannot be seen."""
        if not self.seen:
            return None
        ranks = {process.pid: process.rank for process in processes}
        rows = []
        for card in sorted(self.cards.values(), key=lambda card: card.index):
            card.fill_gap(now)
            rank = next((ranks[pid] for pid in card.pids if ranks.get(pid)), None)
            rows.append(card.view(rank, suspect=any(pid in suspects for pid in card.pids)))
        return tuple(rows)


def spinning(gpus: Gpus, attention: Attention, now: float, seconds: float) -> list[Card]:
    """Our GPUs that have been busy without work for at least `seconds`."""
    return [
        card for card in gpus.ours
        if card.spins_since is not None and attention.looked(card.spins_since, now) >= seconds
    ]  # fmt: skip
