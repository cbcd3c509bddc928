"""The next step, one sentence, for each kind of trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.launch.signs import ALIVE_SECONDS
from tuimon.launch.steps import Advice, Do
from tuimon.launch.waits import NOT_REACHABLE, PORT_TAKEN, USELESS_DRAFT

if TYPE_CHECKING:
    from tuimon.launch.run import Run
    from tuimon.launch.view import Verdict

STACKS, DIAGNOSE, COLLECTIVES = Do("stacks"), Do("diagnose"), Do("collectives")
CHECKPOINT, FIRST_ERROR = Do("checkpoint"), Do("next_error")
Parts = tuple[str | Do, ...]

BY_KIND: dict[str, Parts] = {
    "collective spin": (
        COLLECTIVES, ": the rank that launched fewer collectives is the one to look at; then ",
        STACKS, " for its stack",
    ),
    "communicator init wait": (STACKS, " to see which rank never calls the communicator"),
    "rendezvous wait": (
        STACKS, " to see which rank has not joined; check the init address and that every node runs",
    ),
    "waiting for a rank": (STACKS, ": the rank that stands elsewhere than its peers is the one they wait for"),
    "host deadlock": (STACKS, " to read where every rank waits; the odd one, or a lock's holder, holds the others up"),
    "busy wait": (STACKS, " twice: if the busy rank's stack does not move, it spins for ever"),
    "dead storage": (
        DIAGNOSE, " for the kernel's view, then check the mount or file: no restart helps while it hangs",
    ),
    "driver": (
        DIAGNOSE, " to look for Xid lines in dmesg; a driver that does not return needs a GPU reset or a reboot",
    ),
    "GPU lost": (
        "Drain the host and reset or power-cycle it; ", DIAGNOSE, " for the kernel's lines (dmesg) for the report",
    ),
    "rank stopped": ("Send SIGCONT to the stopped process (kill -CONT), and find out who stopped it",),
    "cgroup frozen": ("Thaw the cgroup or unpause the container: nothing inside can run until then",),
    "rank killed": (DIAGNOSE, " to find who killed the rank (exit code, dmesg, OOM record), then restart"),
    "out of memory": ("Memory ran out: raise the container's limit or load with less, then restart",),
    "hang while serving": (
        STACKS, " while it hangs, to dump all ranks and find the one behind; then restart",
    ),
    "port closed": ("The process lives but does not listen: ", STACKS, " for its stack, then restart it"),
    "silent": (STACKS, " to see where the ranks stand, ", DIAGNOSE, " for a full report"),
    "gone": (FIRST_ERROR, " for the first error, then restart"),
    "error": (FIRST_ERROR, " for the first error: it names the cause, later lines are its aftermath"),
}  # fmt: skip
BY_PHASE = (
    (("graph",), "if they wait in the capture, restart once with CUDA graphs disabled to tell it from communication"),
    (("init", "nccl", "distributed"), "rerun with NCCL_DEBUG=INFO, and once with NCCL_P2P_DISABLE=1"),
    (("compil", "jit"), "no compiler runs: look for a stale lock file in the JIT cache"),
    (("download",), "look for a stale lock file in the hub's cache, and who holds it"),
)
"""What else helps where a launch hangs in such a phase, by parts of its name."""
BY_ALARM: dict[str, Parts] = {
    USELESS_DRAFT: (
        CHECKPOINT, ": compare the draft model's tensor names, vocabulary and release with the target's",
        "; turn speculation off meanwhile",
    ),
    NOT_REACHABLE: (
        "Give the monitor a key with --api-key-env if the server asks for one",
        "; else check the address it bound and no_proxy",
    ),
    PORT_TAKEN: ("End the process that holds the port, or choose another port",),
}  # fmt: skip
BY_DRAFT: Parts = (
    CHECKPOINT, " to check the draft model's checkpoint, whose milestone never came; then ", STACKS, " for the stacks",
)  # fmt: skip
PLACED = frozenset(
    {"silent", "host deadlock", "waiting for a rank", "communicator init wait", "rendezvous wait", "busy wait"}
)
ENDING = "ending"
"""Kind of a state in which ranks end and nothing tells whether they were asked to."""
WAITING_KINDS = {
    ENDING: "Wait some seconds: they show whether all of it ends",
    "compiling": "Wait: it compiles; a cache that is kept makes the next launch faster",
}
WAITING = frozenset({"starting", "quiet"})


def advise(verdict: Verdict, run: Run) -> Advice | None:
    """One sentence for this verdict; None where there is nothing to do."""
    parts = _while_waiting(verdict, run) if verdict.state in WAITING else _parts(verdict, run)
    return Advice(parts).ended() if parts else None


def _parts(verdict: Verdict, run: Run) -> Parts | None:
    told, kind = run.told, verdict.kind
    error = told.fatal or told.error
    if error is not None and error.advice and (verdict.state == "crashed" or kind == "error"):
        return (error.advice,)
    if kind is None:
        return _for_alarm(verdict)
    if kind in PLACED and any("draft" in missing.milestone.lower() for missing in verdict.missing):
        return BY_DRAFT
    base = BY_KIND.get(kind)
    if base is None:
        # The server's own words for a hang: its watchdog, a collective's timeout.
        said = told.fatal.advice if told.fatal is not None else None
        return (said,) if said else BY_KIND["hang while serving"]
    phase = (told.phase or "").lower() if told.phase_running else ""
    more = next((text for parts, text in BY_PHASE if any(part in phase for part in parts)), None)
    return (*base, f"; {more}") if more and kind in PLACED else base


def _while_waiting(verdict: Verdict, run: Run) -> Parts | None:
    """Nothing is wrong yet; an alarm may still want something."""
    wanted = _for_alarm(verdict)
    if wanted is not None:
        return wanted
    if run.told.waits_outside and verdict.state == "quiet":
        return ("Wait, or look at what it waits for: nothing moves on this host until that comes",)
    if verdict.kind in WAITING_KINDS:
        return (WAITING_KINDS[verdict.kind],)
    if verdict.wants_stacks:
        return ("Wait some seconds: the stacks are looked at",)
    words = _how_alive(verdict, run)
    return (words,) if words else None


def _how_alive(verdict: Verdict, run: Run) -> str | None:
    last, first = run.vitals.last(), run.attention.first
    if last is None:
        return None
    ages = [one.age for one in verdict.evidence if one.age is not None]
    if verdict.state == "quiet" and ages and min(ages) >= ALIVE_SECONDS:
        return "Wait some seconds: if nothing comes, it is called a stall"
    # What happened before we came proves nothing about now.
    return "Wait: it works" if first is None or last >= first else "Wait some seconds: tuimon has only begun to look"


def _for_alarm(verdict: Verdict) -> Parts | None:
    return next((BY_ALARM[alarm] for alarm in verdict.alarms if alarm in BY_ALARM), None)
