"""Signs of life on the host: disk, work of the kernel for us, compilers, network. CPU time alone is none of them.

Thresholds lie between what was measured in hangs and in healthy launches, far from both; the figures stand beside them.
Each holds for one process: a tree may have 64 ranks, each with threads that tick. What is done must last, too: rates
come dampened (rates.py), so that a thread which exports metrics now and then is none that works.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from tuimon.launch.events import Process, Sample
from tuimon.launch.ranks import COMPILERS, is_bystander, is_compiler
from tuimon.launch.rates import Rates, most, total
from tuimon.launch.signs import Look, Sign, size

READ = 64_000.0
"""Bytes/s really fetched from storage. Hangs: 0. A slow disk gives 20 MB/s."""
GROWTH = 400_000.0
"""Bytes/s of resident memory. Hangs: ≤ 40 KB/s. Healthy launches: 1 MB/s and more."""
MAJOR_FAULTS = 2.0
"""Per second. Hangs: 0."""
MINOR_FAULTS = 100.0
"""Per second. Hangs: ≤ 10. Healthy: 1,700 and more, but 0 in graph capture and GPU syncs, where the GPU decides."""
ASKED = 100_000.0
"""Bytes/s asked for by read(). Hangs: ≤ 4 KB/s (a rendezvous polls its store). Healthy: 1 MB/s and more."""
SWITCHES = 5.0
"""Voluntary context switches per second that make I/O an activity; alone they are nothing (a gloo wait makes 700)."""
KERNEL = 0.02
"""Cores of kernel time that make I/O an activity; alone it is nothing (a sched_yield spin is all kernel)."""
COMPILING = 0.02
"""Cores."""
CHILDREN = 0.1
"""CPU seconds of waited-for children within the window: compilers that lived for less than a sample. A shell that asks
for something now and then uses 0.01 s each time."""
CHILDREN_WINDOW = 10.0
"""Seconds. With a compiler cache a child's own share is small, and its end seldom."""
RECEIVED = 1_000_000.0
"""Bytes/s. Our own link brings a few KB/s; others on a busy host bring more, hence the tree's own I/O too."""
TAKEN = 100_000_000.0
"""Bytes/s of host memory that vanish. Pinning gives 1-4 GB/s; the driver's pages are in nobody's resident size."""
PINNING = 0.2
"""Cores of kernel time in the tree without which a neighbour may have taken that memory."""
BUSY = 0.05
"""Cores. Hung trees: ≤ 0.03 unless they spin."""


class DiskReads(Sign):
    """Bytes from storage, major faults, resident memory that grows. `rchar` is blind to mmap loading."""

    name = "disk reads"

    def see(self, look: Look) -> None:
        """Read one sample."""
        read, major, growth = (total(look.rates, field) for field in ("read", "major", "rss"))
        if not look.rates:
            _unread(self, look)
            return
        self.visible = any(value is not None for value in (read, major, growth))
        if most(look.rates, "read") >= READ:
            self.seen(look.at, f"reads {size(read or 0)}/s from storage")
        elif most(look.rates, "rss") >= GROWTH:
            grew = sum(max(0.0, rate.rss or 0.0) for rate in look.rates.values())
            self.seen(look.at, f"memory grows by {size(grew)}/s")
        elif most(look.rates, "major") >= MAJOR_FAULTS:
            self.seen(look.at, f"{major or 0:.0f} major faults/s")
        if not self.visible:
            self.hidden("no rights on the processes' counters")
            return
        parts = [f"read {size(read)}/s" if read is not None else "read bytes unknown"]
        if growth is not None and abs(growth) >= 1000:
            parts.append(f"memory {growth / 1e6:+.1f} MB/s")
        self.text = ", ".join(parts)


class HostWork(Sign):
    """Minor faults; kernel time or context switches together with I/O."""

    name = "host work"

    def see(self, look: Look) -> None:
        """Read one sample."""
        if not look.rates:
            _unread(self, look)
            return
        minor = total(look.rates, "minor")
        asked = _io(look.rates.values())
        if minor is None and asked is None:
            self.hidden("neither faults nor I/O can be read")
        else:
            self.visible = True
            taken = _taken(look)
            if most(look.rates, "minor") >= MINOR_FAULTS or any(_active_io(rate) for rate in look.rates.values()):
                self.seen(look.at)
            elif taken >= TAKEN and (total(look.rates, "system") or 0.0) >= PINNING:
                self.seen(look.at, f"the kernel takes {size(taken)}/s of host memory for it")
        cpu = total(look.rates, "cpu")
        told = [] if cpu is None else [f"{100 * cpu:.1f} % CPU" if cpu < 0.1 else f"{100 * cpu:.0f} % CPU"]
        told += [] if minor is None else [f"{minor:.0f} faults/s"]
        told += [] if asked is None else [f"I/O {size(asked)}/s"]
        if self.visible:
            self.text = ", ".join(told + _waits(look.sample))


class Compilers(Sign):
    """Compilers anywhere in the tree that use CPU, start or end; also those that lived for less than a sample."""

    name = "compilers"

    def __init__(self) -> None:
        super().__init__()
        self.wait = False
        """There are compilers, none of them works, and one asks: a daemon elsewhere may do it for them."""
        self._ended: deque[tuple[float, float]] = deque(maxlen=64)
        self._pollers: set[int] = set()
        """Who starts bystanders now and then (`nvidia-smi` for its figures): what its children used proves nothing."""

    def see(self, look: Look) -> None:
        """Read one sample."""
        processes = look.sample.processes
        if processes is None:
            self.hidden("processes cannot be seen")
            return
        self.visible = True
        compilers = [process for process in processes if is_compiler(process) and process.state not in "ZX"]
        known = {process.pid for process in (look.before.processes if look.before else None) or ()}
        busy = [process for process in compilers if _busy(process, look, known)]
        self.wait = not busy and _asks_elsewhere(processes)
        self._pollers &= {process.pid for process in processes}
        self._pollers |= {process.ppid for process in processes if is_bystander(process)}
        parents = {pid: rate for pid, rate in look.rates.items() if pid not in self._pollers}
        ended = (total(parents, "children") or 0.0) * (look.seconds or 0.0)
        children = self._within(ended, look.at)
        if busy or children >= CHILDREN:
            self.seen(look.at)
        if busy:
            names = sorted({process.name or "compile worker" for process in busy})
            self.text = f"{', '.join(names[:3])} at work"
        elif compilers:
            self.text = f"{len(compilers)} there, idle"
        elif children >= CHILDREN:
            # Not a rate: what a child used in all its life counts when it is waited for (5857 % of a core seen).
            self.text = f"children ended, {ended:.1f} s of CPU used"
        else:
            self.text = "none"

    def _within(self, ended: float, now: float) -> float:
        """CPU seconds of children that ended within the window; 0 where none ended just now."""
        if ended <= 0:
            return 0.0
        self._ended.append((now, ended))
        return sum(used for at, used in self._ended if now - at <= CHILDREN_WINDOW)


class Network(Sign):
    """Bytes received in the tree's network namespace: a download.

    The namespace is mostly the host's, and others receive too. So it counts only together with I/O of the tree itself,
    or, where I/O cannot be read, together with CPU time.
    """

    name = "network"

    def see(self, look: Look) -> None:
        """Read one sample."""
        now = look.sample.host.net_rx if look.sample.host else None
        then = look.before.host.net_rx if look.before and look.before.host else None
        if now is None:
            self.hidden("received bytes cannot be read")
            return
        self.visible = True
        if then is None or not look.seconds or now < then:
            return
        rate = (now - then) / look.seconds
        self.text = f"{size(rate)}/s received on this host"
        if rate >= RECEIVED and any(_takes(one) for one in look.rates.values()):
            self.seen(look.at)


def _takes(rate: Rates) -> bool:
    """Whether this process may be the one that receives. It sleeps for each piece: a spin, however busy, never does."""
    asked = _io([rate])
    if asked is not None:
        return asked >= ASKED
    return (rate.cpu or 0.0) >= BUSY and (rate.switches is None or rate.switches >= SWITCHES)


def _unread(sign: Sign, look: Look) -> None:
    """No rates: the first sample, or processes that cannot be looked at."""
    if look.sample.processes is None:
        sign.hidden("processes cannot be seen")


def _io(rates: Iterable[Rates]) -> float | None:
    told = [value for rate in rates for value in (rate.rchar, rate.written) if value is not None]
    return sum(told) if told else None


def _taken(look: Look) -> float:
    """Bytes/s by which the host's available memory falls; 0 where that is not told."""
    now = look.sample.host.mem_available if look.sample.host else None
    then = look.before.host.mem_available if look.before and look.before.host else None
    if now is None or then is None or not look.seconds:
        return 0.0
    return max(0.0, (then - now) / look.seconds)


def _active_io(rate: Rates) -> bool:
    """This process moved data and, where that can be told, the kernel worked or slept for it."""
    if (_io([rate]) or 0.0) < ASKED:
        return False
    if rate.system is None and rate.switches is None:
        return True
    return (rate.system or 0.0) >= KERNEL or (rate.switches or 0.0) >= SWITCHES


def _asks_elsewhere(processes: Iterable[Process]) -> bool:
    """Whether a compiler (or what it called) waits for an answer, as the client of a cache or of a compile farm does.

    The compiler itself waits for nobody: in a lock, for storage or stopped it hangs.
    """
    known = {process.pid: process for process in processes if process.state not in "ZX"}
    parents = {process.ppid for process in known.values()}
    return any(
        process.state == "S"
        and (not process.wchan or waits_in(process.wchan) in ANSWERS)
        and _is_below_compiler(process, known)
        for process in known.values() if process.pid not in parents
    )  # fmt: skip


def _is_below_compiler(process: Process | None, known: Mapping[int, Process]) -> bool:
    for _ in range(8):  # nvcc, sh, nvcc, sccache …
        if process is None:
            return False
        if process.name in COMPILERS:
            return True
        process = known.get(process.ppid)
    return False


def _busy(process: Process, look: Look, known: set[int]) -> bool:
    if process.pid not in known:
        # It began since the last look: an act of its parent, even if this sample shows no CPU yet.
        return look.before is not None and process.name is not None and "compile_worker" not in (process.title or "")
    rate = look.rates.get(process.pid)
    return rate is not None and (rate.cpu or 0.0) >= COMPILING


def _waits(sample: Sample) -> list[str]:
    """What most sleepers sleep in: `futex`."""
    return [waits] if (waits := commonest_wait(sample.processes or ())) else []


def commonest_wait(processes: Iterable[Process]) -> str | None:
    """The kernel function that most main threads sleep in, in a word; None where none tells."""
    counts: dict[str, int] = {}
    for process in processes:
        if process.state in "SD" and process.wchan and process.wchan != "0":
            word = waits_in(process.wchan)
            counts[word] = counts.get(word, 0) + 1
    return max(counts, key=lambda word: counts[word]) if counts else None


ANSWERS = frozenset({"poll", "pipe", "socket"})
"""Kernel waits for somebody's word."""
WAITS = (
    ("futex", "futex"), ("poll", "poll"), ("pipe", "pipe"), ("do_wait", "child"), ("nanosleep", "sleep"),
    ("wait_woken", "socket"), ("sk_wait", "socket"), ("inet_", "socket"), ("unix_stream", "socket"), ("tcp_", "socket"),
    ("folio_wait", "page from storage"), ("wait_for_partner", "FIFO without a writer"), ("do_signal_stop", "stopped"),
    ("request_wait_answer", "FUSE"), ("nfs", "NFS"), ("rpc_wait", "NFS"), ("percpu_rwsem", "frozen file system"),
    ("uvm_", "NVIDIA driver"), ("os_acquire", "NVIDIA driver"), ("nv_", "NVIDIA driver"), ("lock", "file lock"),
    ("kernel_clone", "a child that does not start"),
)  # fmt: skip


def waits_in(wchan: str) -> str:
    """A kernel wait in a word that a person knows."""
    return next((word for part, word in WAITS if part in wchan), wchan)
