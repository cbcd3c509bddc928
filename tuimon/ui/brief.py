"""The evidence of a red verdict in a few words each: what a reader at 3 a.m. checks first."""

from __future__ import annotations

from collections import Counter

from tuimon.launch.view import LaunchView, SignView
from tuimon.ui.rows import clean

IDLE = 5.0
"""GPU utilisation in % up to which "idle" is said."""
WORK = 0.05
"""Share of work up to which a GPU does none."""
WORDS = {"R": "running", "D": "in disk wait", "T": "stopped", "t": "traced", "Z": "dead", "X": "dead"}


def reasons(view: LaunchView) -> tuple[str, ...]:
    """Short reasons: log, GPUs, processes, stacks, health; what cannot be seen says so."""
    signs = {sign.name: sign for sign in view.signs}
    said = (_log(signs.get("log")), _gpus(view), _processes(view), _stacks(signs.get("stacks")), _health(view))
    return tuple(reason for reason in said if reason)


def _log(sign: SignView | None) -> str:
    if sign is None:
        return ""
    return "log silent" if sign.visible else "log cannot be seen"


def _gpus(view: LaunchView) -> str:
    if not view.gpus:
        return ""
    known = [gpu for gpu in view.gpus if gpu.util is not None]
    idle = [gpu for gpu in known if gpu.util is not None and gpu.util <= IDLE]
    lying = [gpu for gpu in known if gpu not in idle and gpu.work is not None and gpu.work <= WORK]
    total = len(view.gpus)
    if lying:
        return f"{_of(len(lying), total)} GPUs busy without work"
    if idle and len(idle) == total:
        watts = [gpu.power for gpu in idle if gpu.power is not None]
        return f"{total} GPU{'s' if total > 1 else ''} idle" + (f", {max(watts):.0f} W at most" if watts else "")
    return f"{_of(len(idle), total)} GPUs idle" if idle else ""


def _processes(view: LaunchView) -> str:
    if not view.processes:
        return ""
    count: Counter[str] = Counter()
    for process in view.processes:
        count[process.states[:1] or "?"] += len(process.pids)
    total = count.total()
    awake = [f"{count[letter]} {word}" for letter, word in WORDS.items() if count[letter]]
    asleep = count["S"] + count["I"]
    return ", ".join([*([f"{_of(asleep, total)} processes asleep"] if asleep else []), *awake])


def _stacks(sign: SignView | None) -> str:
    if sign is None:
        return ""
    return f"stacks {clean(sign.text)}" if sign.visible else "stacks not read"


def _health(view: LaunchView) -> str:
    health = view.health
    if health.last is None:
        return ""
    path = health.path or "port"
    return f"{clean(path)} {health.status if health.status is not None else clean(health.error or 'open')}"


def _of(some: int, total: int) -> str:
    return f"all {total}" if some == total else f"{some} of {total}"
