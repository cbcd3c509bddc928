"""The next step, one sentence with its key, for each kind of trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuimon.launch.run import Run

BY_KIND = {
    "collective spin": "Press c: the rank that launched fewer collectives is the one to look at; then s for its stack.",
    "communicator init wait": "Press s to see which rank never calls the communicator; rerun with NCCL_DEBUG=INFO if none is behind.",
    "rendezvous wait": "Press s to see which rank has not joined; check the master address and port, and that every node was started.",
    "waiting for a rank": "Press s: the rank that stands elsewhere than its peers is the one they wait for.",
    "host deadlock": "Press s to read where every rank waits; the odd one holds the others up.",
    "busy wait": "Press s twice: if the busy rank's stack does not move, it spins for ever.",
    "dead storage": "Press d for the kernel's view, then check the mount or file that the process reads; no restart helps while it hangs.",
    "driver": "Press d to look for Xid lines in dmesg; a driver that does not return needs a GPU reset or a reboot.",
    "rank stopped": "Send SIGCONT to the stopped process (kill -CONT); find out who stopped it.",
    "cgroup frozen": "Thaw the cgroup or unpause the container; nothing inside can run until then.",
    "rank killed": "Restart the launch; press d to find who killed the rank (dmesg, oom_kill, exit status).",
    "out of memory": "The kernel killed a process for want of memory: raise the container's limit or load with less, then restart.",
    "hang while serving": "Press s while it hangs: which rank is behind decides; then restart, clients wait in vain.",
    "port closed": "The process lives but does not listen: press s for its stack, then restart it.",
    "silent": "Press s to see where the ranks stand, d for a full report.",
    "gone": "Read the end of the log (e jumps to the first error) and restart.",
}  # fmt: skip


def advise(kind: str | None, run: Run) -> str | None:
    """One sentence for this kind; where a draft model's milestone is missing, look at its checkpoint first."""
    if run.told.fatal is not None and run.told.fatal.advice:
        return run.told.fatal.advice
    if kind == "error" and run.told.error is not None and run.told.error.advice:
        return run.told.error.advice
    if kind not in {"rank stopped", "rank killed", "cgroup frozen", "out of memory"} and _draft_missing(run):
        return "Press p: check the draft model's checkpoint; its milestone never came. Then s for the stacks."
    if kind == "error":
        return "Press e for the first error in the log."
    return BY_KIND.get(kind or "")


def _draft_missing(run: Run) -> bool:
    return any("draft" in missing.milestone.lower() for missing in run.told.missing)
