"""What one look at a machine shows: its GPUs, the server's processes, its log's file. Unknown is None."""

from __future__ import annotations

from msgspec import Struct


class Gpu(Struct, frozen=True):
    """One GPU as NVML saw it; a field that this GPU or driver cannot tell is None."""

    index: int
    name: str | None = None
    uuid: str | None = None
    util: float | None = None
    """Share of the last period in which some kernel ran, %; no sign of work (a spinning collective shows 100)."""
    mem_util: float | None = None
    """Share of the last period in which memory was read or written, %."""
    mem_used: int | None = None
    """Bytes."""
    mem_total: int | None = None
    """Bytes."""
    power: float | None = None
    """W."""
    power_limit: float | None = None
    """W."""
    energy: float | None = None
    """J since the driver was loaded; costs 4 ms of CPU a call, so only in every 40th sample."""
    sm_clock: int | None = None
    """MHz."""
    temperature: int | None = None
    """°C."""
    pcie_tx: float | None = None
    """KB/s; costs 20 ms a call, so only read when a launch has gone quiet."""
    pcie_rx: float | None = None
    """KB/s."""
    dram_active: float | None = None
    """GPM DRAM bandwidth, % of peak; Hopper and later."""
    sm_active: float | None = None
    """GPM SM activity, %."""
    reasons: int | None = None
    """NVML clock event reasons, bitmask."""
    xid: int | None = None
    """The last Xid event seen on this GPU since the probe began."""
    recovery: int | None = None
    """What the driver asks to be done to it (NVML field 230): 0 nothing, 1 reset, 2 reboot …"""
    procs: dict[int, int] | None = None
    """Memory by pid, bytes."""
    error: str | None = None
    """Why this GPU could not be read, in words."""


class Thread(Struct, frozen=True):
    """A thread that is not asleep (D or R); the main thread's state is the process's."""

    tid: int
    state: str
    name: str | None = None
    wchan: str | None = None


class Process(Struct, frozen=True):
    """One process of the server's tree; counters are the kernel's cumulative ones."""

    pid: int
    ppid: int
    state: str
    """The main thread's state letter: R S D Z T t I X."""
    name: str | None = None
    """`comm`, cut to 15 bytes by the kernel: ranks cannot be told by it."""
    title: str | None = None
    """Command line or process title, cut to 300 characters."""
    rank: str | None = None
    """`TP0`, `DP1 TP3`, `EngineCore` …; None where the title names none."""
    started: float | None = None
    """Clock ticks since boot: tells a reused pid."""
    cpu: float | None = None
    """utime + stime, s."""
    system: float | None = None
    """stime, s."""
    children_cpu: float | None = None
    """cutime + cstime of waited-for children, s: the only trace of compilers that live for less than a sample."""
    minor_faults: int | None = None
    major_faults: int | None = None
    rss: int | None = None
    """Bytes."""
    threads: int | None = None
    thread_states: dict[str, int] | None = None
    """How many threads are in each state, all threads; None where this sample did not look (large trees take turns)."""
    busy_threads: tuple[Thread, ...] = ()
    """Threads in D or R other than the main one, at most 16."""
    wchan: str | None = None
    """Kernel function that the main thread sleeps in; None where unreadable, "0" where running."""
    syscall: str | None = None
    """Number of the system call that the main thread is in; only read when a launch has gone quiet."""
    voluntary: int | None = None
    """Voluntary context switches."""
    involuntary: int | None = None
    read_bytes: int | None = None
    """Bytes really fetched from storage; None without rights on /proc/PID/io."""
    rchar: int | None = None
    """Bytes asked for by read(); blind to mmap loading."""
    write_bytes: int | None = None
    unread_bytes: int | None = None
    """Bytes waiting unread in this process's TCP sockets."""
    frozen: bool | None = None
    """Its cgroup (or one above) is frozen."""
    sigcgt: int | None = None
    """Caught signals, bitmask: says beforehand what SIGABRT would do."""


class LogStat(Struct, frozen=True):
    """The log file as `stat` sees it."""

    path: str
    size: int
    mtime: float
    """Host wall clock."""
    inode: int


class HostLoad(Struct, frozen=True):
    """The machine itself."""

    cpus: int | None = None
    load: float | None = None
    """1-minute load average."""
    mem_available: int | None = None
    """Bytes."""
    mem_total: int | None = None
    """Bytes."""
    oom_kills: int | None = None
    """Since boot, /proc/vmstat."""
    net_rx: int | None = None
    """Bytes received by the server's network namespace without loopback, cumulative."""
    boot_id: str | None = None


class ProbeCost(Struct, frozen=True):
    """What watching costs the host."""

    cpu: float
    """CPU seconds of the probe and its NVML child since it began."""
    pss: int | None = None
    """Bytes, both processes, without the driver's library."""
    sample: float | None = None
    """Wall seconds that this sample took."""
