"""The last resort: SIGABRT to one rank. What it would do is read before it is asked for; it is never sent unasked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tuimon.diagnose import sent
from tuimon.diagnose.pyspy import clean
from tuimon.diagnose.targets import RANK, Target
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host

TIMEOUT = 10.0
FAULTHANDLER = 0x4E8
"""SIGSEGV, FPE, ABRT, BUS and ILL caught together: faulthandler.enable() was called (measured: SigCgt …04ea)."""
SIGABRT_BIT = 1 << 5


class Aim(Struct, frozen=True):
    """A process that can be aborted, and what that would do."""

    target: Target
    consequence: str
    """In words, for the question."""
    can: bool
    """False where the signal cannot be sent, or would do nothing."""


def choose(targets: Sequence[Target], suspects: Collection[int]) -> Target | None:
    """The suspect, else the first rank: its stack is the one that is missing."""
    ranks = [target for target in targets if target.rank and RANK.search(target.rank)] or list(targets)
    return next((target for target in ranks if target.pid in suspects), ranks[0] if ranks else None)


async def aim(host: Host, target: Target) -> Aim:
    """Read what SIGABRT would do to this process; nothing is sent. Raises HostUnreachable."""
    answer = await ask(host, target, fire=False)
    if answer is None:
        return Aim(target, "the host did not say what the signal would do", can=False)
    if answer.get("gone"):
        return Aim(target, "the process is gone", can=False)
    began = answer.get("started")
    exact = Target(target.pid, target.rank, float(began) if isinstance(began, int) else target.started)
    seen = answer.get("seen")
    words, can = consequence(seen if isinstance(seen, dict) else {}, target.pid)
    return Aim(exact, words, can)


async def fire(host: Host, aimed: Aim) -> str:
    """Send it to exactly that process; what came of it, in words. Raises HostUnreachable."""
    answer = await ask(host, aimed.target, fire=True)
    name = f"{aimed.target.rank or 'process'} (pid {aimed.target.pid})"
    if answer is None:
        return f"the host did not say whether SIGABRT reached {name}"
    if answer.get("gone"):
        return f"{name} was gone before: nothing was sent"
    if "error" in answer:
        return f"SIGABRT could not be sent to {name}: {clean(str(answer['error']))}"
    if answer.get("ended"):
        return f"SIGABRT ended {name}; its stacks are in the server's log where faulthandler is on"
    return f"SIGABRT was sent to {name}, which has not ended yet"


async def ask(host: Host, target: Target, *, fire: bool) -> dict[str, Any] | None:
    """One round trip; None where there was no answer."""
    started = None if target.started is None else int(target.started)
    options = {"pid": target.pid, "started": started, "fire": fire}
    try:
        done = await sent.run(host, "abort", options, timeout=TIMEOUT, limit=1 << 20)
    except CommandTimedOut:
        return None
    return sent.json_object(done.stdout)


def consequence(seen: Mapping[str, Any], pid: int) -> tuple[str, bool]:
    """What would happen, in words; whether there is any sense in it."""
    caught, ignored, blocked = (mask(seen.get(name)) for name in ("SigCgt", "SigIgn", "SigBlk"))
    state = str(seen.get("State") or "")[:1]
    if caught is None:
        return "its signal masks cannot be read", False
    if ignored and ignored & SIGABRT_BIT:
        return "it ignores SIGABRT: nothing would happen", False
    inner = str(seen.get("NSpid") or "").split()[-1:]
    if inner == ["1"] and not caught & SIGABRT_BIT:
        return f"it is process 1 of a container and has no handler: the kernel would not deliver it (pid {pid})", False
    if caught & FAULTHANDLER == FAULTHANDLER:
        words = ["faulthandler is on: it prints all its Python threads into its stderr and dies"]
    elif caught & SIGABRT_BIT:
        words = ["it has a handler of its own for SIGABRT: what that does is unknown; it most likely dies"]
    else:
        words = ["faulthandler is off: it dies WITHOUT printing a stack"]
    words.append("the server goes down with it: its peers wait for it, or its parent ends them")
    if state in {"T", "t"}:
        words.append("it is stopped: the signal waits until it goes on")
    if state == "D" or (blocked and blocked & SIGABRT_BIT):
        words.append("it cannot take the signal now (D state, or it blocks it): it acts when that ends")
    words += core(seen)
    return "; ".join(words), True


def core(seen: Mapping[str, Any]) -> list[str]:
    """Whether a core file of many gigabytes is to be expected."""
    limit, pattern = str(seen.get("core_limit") or ""), str(seen.get("core_pattern") or "")
    if pattern.startswith("|") or (pattern and limit not in {"", "0"}):
        size = clean(str(seen.get("VmRSS") or "its memory"))
        return [f"a core file may be written (up to {size}; core_pattern {clean(pattern)[:60]})"]
    return []


def mask(text: object) -> int | None:
    """A signal mask of /proc/PID/status."""
    try:
        return int(str(text), 16)
    except ValueError:
        return None
