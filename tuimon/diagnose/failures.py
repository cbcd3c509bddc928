"""Why a stack could not be read, in words: what happened and what to do, then what /proc still shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tuimon.diagnose.pyspy import clean

STATES = {
    "R": "running", "S": "asleep", "D": "in uninterruptible sleep", "Z": "zombie", "T": "stopped",
    "t": "held by a debugger", "I": "idle", "X": "dead",
}  # fmt: skip
SYSCALLS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 23: "select", 24: "sched_yield", 35: "nanosleep",
        45: "recvfrom", 47: "recvmsg", 58: "vfork", 61: "wait4", 72: "fcntl", 73: "flock", 202: "futex",
        219: "restart_syscall", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat",
        262: "newfstatat", 271: "ppoll", 281: "epoll_pwait",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write", 67: "pread64",
        72: "pselect6", 73: "ppoll", 79: "newfstatat", 95: "waitid", 98: "futex", 101: "nanosleep",
        115: "clock_nanosleep", 124: "sched_yield", 128: "restart_syscall", 207: "recvfrom", 212: "recvmsg",
        260: "wait4",
    },
}  # fmt: skip
"""Only those that a hung process is ever found in."""


class About(Struct, frozen=True):
    """What the host said of itself and of us on it."""

    machine: str = ""
    uid: int | None = None
    yama: str | None = None
    """kernel.yama.ptrace_scope; None where the kernel has no yama."""
    capabilities: int | None = None
    binaries: tuple[str, ...] = ()
    refused: str = ""
    """Why the py-spy that was sent cannot be used there."""


def reason(error: str, exit_status: int | None, seen: Mapping[str, Any], about: About) -> str:
    """One line for `Unread.reason`."""
    shown = shows(seen, about.machine)
    return why(error, exit_status, seen, about) + (f"; {shown}" if shown else "")


def why(error: str, exit_status: int | None, seen: Mapping[str, Any], about: About) -> str:
    """What happened, and what to do about it."""
    low = error.lower()
    if error == "zombie" or seen.get("state") == "Z":
        return "a zombie: it has exited and its parent has not collected it"
    if error == "gone" or not seen:
        return "the process is gone"
    if error == "no py-spy":
        return about.refused or "no py-spy on the host and none could be sent"
    if any(word in low for word in ("os error 13", "permission denied: try", "os error 1)", "eperm")):
        return no_right(seen, about)
    words = next((words for part, words in SENTENCES if part in low), None)
    first = next((line.strip() for line in error.splitlines() if line.strip()), "")
    return words or clean(first) or f"py-spy ended with {exit_status} and said nothing"


SENTENCES = (
    ("permission denied", "py-spy may not be executed there (noexec): install py-spy in the server's environment"),
    ("python version", "not a Python process, or a Python that this py-spy does not know (free-threaded, or too new)"),
    ("version of python", "a Python that this py-spy does not know (free-threaded, or too new)"),
    ("did not end within", "py-spy did not end in time: its memory cannot be read"),
)
"""Parts of what py-spy (or exec) says → what it means."""
CAP_SYS_PTRACE = 1 << 19


def no_right(seen: Mapping[str, Any], about: About) -> str:
    """No ptrace right: which one is missing, and the setting that gives it."""
    owner = seen.get("uid")
    if about.uid == 0 and about.capabilities is not None and not about.capabilities & CAP_SYS_PTRACE:
        return (
            "no right to read it: we are root without CAP_SYS_PTRACE, as in a container (docker run"
            " --cap-add=SYS_PTRACE; Kubernetes: securityContext.capabilities.add SYS_PTRACE; or look from the host)"
        )
    if about.uid != 0 and owner is not None and owner != about.uid:
        return (
            f"no right to read it: it belongs to uid {owner}, we are uid {about.uid}"
            " (log in as root or as that user, or allow sudo -n for py-spy)"
        )
    if about.yama not in (None, "0"):
        return (
            f"no right to read it: kernel.yama.ptrace_scope is {about.yama} (as root:"
            " sysctl kernel.yama.ptrace_scope=0; or allow sudo -n for py-spy, or log in as root)"
        )
    return (
        "no right to read it: it has more capabilities than we do, or is not dumpable"
        " (log in as root with CAP_SYS_PTRACE, or allow sudo -n for py-spy)"
    )


def shows(seen: Mapping[str, Any], machine: str) -> str:
    """What /proc still shows: state, wchan, system call; empty where nothing."""
    state, wchan, syscall = seen.get("state"), seen.get("wchan"), seen.get("syscall")
    parts = []
    if isinstance(state, str) and state:
        parts.append(f"state {state} ({STATES.get(state, '?')})")
    if isinstance(wchan, str) and wchan not in ("", "0"):
        parts.append(f"sleeps in {clean(wchan)}")
    if isinstance(syscall, str) and syscall.isdigit() and len(syscall) < 6:
        parts.append(f"system call {SYSCALLS.get(machine, {}).get(int(syscall), syscall)}")
    tracer = seen.get("tracer")
    if tracer:
        parts.append(f"traced by pid {tracer}")
    return "/proc shows: " + ", ".join(parts) if parts else ""
