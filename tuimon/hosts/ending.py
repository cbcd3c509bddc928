"""How a container ended, as its engine tells: then the launch in it is over, and no link is lost."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Struct

_SIGNALS = 128
"""A shell's and an engine's way to say that a signal ended it: 137 = 128 + SIGKILL."""


class Ending(Struct, frozen=True):
    """The first process of a place has ended, and with it everything there."""

    exit: int | None
    """Exit status; negative = signal."""
    oom: bool = False
    """The kernel ended it for want of memory."""


@runtime_checkable
class Ends(Protocol):
    """A host that is only there as long as its first process is."""

    @property
    def ending(self) -> Ending | None:
        """How it ended, once `lost` has returned; None where it is the link that was lost."""


class _Docker(Struct):
    status: str = msgspec.field(name="Status", default="")
    code: int = msgspec.field(name="ExitCode", default=0)
    oom: bool = msgspec.field(name="OOMKilled", default=False)


class _Death(Struct, frozen=True):
    exitCode: str  # noqa: N815  Docker's name


class _Terminated(Struct, frozen=True):
    exitCode: int = 0  # noqa: N815  Kubernetes' names
    reason: str = ""


class _States(Struct, frozen=True):
    terminated: _Terminated | None = None
    running: dict[str, str] | None = None


class _Status(Struct):
    name: str = ""
    state: _States = _States()
    lastState: _States = _States()  # noqa: N815


def of_container(state: bytes) -> Ending | None:
    """From `docker inspect`'s State; None while it runs, or where that is not what this is."""
    try:
        told = msgspec.json.decode(state, type=_Docker)
    except msgspec.MsgspecError:
        return None
    if told.status not in {"exited", "dead", "restarting"}:
        return None
    return Ending(_status(told.code), told.oom)


def of_deaths(events: bytes) -> Ending | None:
    """From what `docker events` tells of the deaths of a container, a line each: the last one is what cut our link."""
    last = (events.splitlines() or [b""])[-1]
    try:
        return Ending(_status(int(msgspec.json.decode(last, type=_Death).exitCode)))
    except (msgspec.MsgspecError, ValueError):
        return None


def of_pod(statuses: bytes, container: str | None) -> Ending | None:
    """From the `containerStatuses` of a pod; None while it runs (again: then nobody knows which end was ours)."""
    try:
        told = msgspec.json.decode(statuses, type=list[_Status])
    except msgspec.MsgspecError:
        return None
    ours = next((each for each in told if container in {None, each.name}), None)
    if ours is None or ours.state.running is not None:
        return None
    end = ours.state.terminated or ours.lastState.terminated
    return None if end is None else Ending(_status(end.exitCode), end.reason == "OOMKilled")


def words(place: str, ending: Ending) -> str:
    """`The container vllm ended with 1`."""
    how = "without telling how" if ending.exit is None else f"with {ending.exit}"
    if ending.exit is not None and ending.exit < 0:
        how = f"by signal {-ending.exit}"
    return f"{place[:1].upper()}{place[1:]} ended {how}{', for want of memory (OOM)' if ending.oom else ''}"


def _status(code: int) -> int:
    return _SIGNALS - code if _SIGNALS < code <= _SIGNALS + 64 else code
