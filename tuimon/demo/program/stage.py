"""What the stand-in SGLang plays: when each phase begins, what is logged, what each GPU shows, and the troubles."""

import ctypes
import json
import mmap
import os
import signal
import threading
import time

import setproctitle

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
SHARDS = 64
BATCH_SIZES = [1, 2, 4, *range(8, 168, 8)]

_plan = json.loads(os.environ["TUIMON_DEMO"])
SCENARIO: str = _plan["scenario"]
FOLDER: str = _plan["folder"]
PHASES: dict[str, tuple[float, float]] = _plan["phases"]
"""Name → begin and length, seconds since the start."""
SPEED: float = _plan["speed"]
"""Factor on everything that has no phase of its own."""
START: float = _plan["start"]
_growth = [0.0, 0.0, 0.0, 0.0]
"""GiB held by this rank's GPU: from, to, since, till."""
_prctl = ctypes.CDLL(None).prctl


def begin(title: str | None = None, parent: int | None = None) -> None:
    """Set up a process of the launch: may be traced by any user's py-spy, and dies with its parent."""
    _prctl(PR_SET_PTRACER, ctypes.c_ulong(PR_SET_PTRACER_ANY), 0, 0, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    if title is not None:
        setproctitle.setproctitle(title)


def call_itself(name: str) -> None:
    """Set the kernel's name of this process (`comm`), at most 15 bytes."""
    _prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def until(phase: str, part: float = 0.0) -> None:
    """Sleep until a phase has got this far, 0-1; returns at once where that is past."""
    start, length = PHASES[phase]
    left = START + start + part * length - time.monotonic()
    if left > 0:
        time.sleep(left)


def work_until(phase: str, part: float = 0.0) -> None:
    """The same with page faults all the way, as importing torch has: real durations are longer than patience."""
    start, length = PHASES[phase]
    while (left := START + start + part * length - time.monotonic()) > 0:
        touch(1)
        time.sleep(min(0.5, left))


def seconds(phase: str) -> float:
    """How long a phase takes."""
    return PHASES[phase][1]


def say(message: str, rank: int | None = None) -> None:
    """One line of SGLang's logger: local time without a zone, and the rank's tag."""
    tag = "" if rank is None else f" TP{rank}"
    write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{tag}] {message}\n")


def write(text: str) -> None:
    """Text to stderr in one piece, so that lines of several ranks do not mix."""
    os.write(2, text.encode())


def gpu(rank: int, scene: str, used: float, before: float | None = None, over: float = 0.0) -> None:
    """What this rank's GPU shows from now on: a scene of the readings, and GiB held (growing from `before`)."""
    now = time.monotonic()
    _growth[:] = used if before is None else before, used, now, now + over
    told = {"scene": scene, "pid": os.getpid(), **dict(zip(("from", "to", "since", "till"), _growth, strict=True))}
    path = os.path.join(FOLDER, f"gpu{rank}.json")
    with open(f"{path}.new", "w") as file:
        json.dump(told, file)
    os.replace(f"{path}.new", path)


def gpu_waits(rank: int) -> None:
    """The GPU of a rank that is held up in the middle of loading: idle, with what it has got so far."""
    before, used, since, till = _growth
    part = min(1.0, (time.monotonic() - since) / (till - since)) if till > since else 1.0
    gpu(rank, "idle", before + (used - before) * part)


def bar(text: str, done: int, total: int, since: float, blocks: bool = True) -> str:
    """One update of a tqdm bar as it is written to a file, without the `\\r`."""
    spent = time.monotonic() - since
    rate = done / spent if done and spent > 0 else 0.0
    left = clock((total - done) / rate) if rate else "?"
    pace = "?it/s" if not rate else f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
    percent = 100 * done // total
    if not blocks:
        return f"{text}: {percent:3d}% Completed | {done}/{total} [{clock(spent)}<{left}, {pace}]"
    full = int(10 * done / total)
    part = " ▏▎▍▌▋▊▉"[int(80 * done / total) % 8] if full < 10 else ""
    return f"{text}{percent:3d}%|{('█' * full + part).ljust(10)}| {done}/{total} [{clock(spent)}<{left}, {pace}]"


def clock(spent: float) -> str:
    """tqdm's `MM:SS`."""
    return f"{int(spent) // 60:02d}:{int(spent) % 60:02d}"


def touch(megabytes: int) -> None:
    """Real page faults, as a loader that maps files makes them."""
    with mmap.mmap(-1, megabytes << 20) as memory:
        for place in range(0, len(memory), mmap.PAGESIZE):
            memory[place] = 1


def hopeless_lock() -> threading.Lock:
    """A lock that nobody will release."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def be_idle_class() -> None:
    """Yield the CPU to everybody else: what burns it here must not slow the machine that shows it."""
    os.nice(19)
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError):
        pass
