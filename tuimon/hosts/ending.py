"""How a container ended, as its engine tells: then the launch in it is over, and no link is lost."""

from __future__ import annotations

from datetime import UTC, datetime
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
    began: float | None = None
    """When that process was started, by the engine's wall clock."""
    ended: float | None = None
    """When it ended, by the same clock."""
    argv: tuple[str, ...] = ()
    """What it was started with, as the engine tells: secrets and all."""


@runtime_checkable
class Ends(Protocol):
    """A host that is only there as long as its first process is."""

    @property
    def ending(self) -> Ending | None:
        """How it ended: once `lost` has returned, or where `connect` found the place gone; None = that is not known."""


class _State(Struct, rename="pascal"):
    status: str = ""
    exit_code: int = 0
    oom: bool = msgspec.field(name="OOMKilled", default=False)
    started_at: str = ""
    finished_at: str = ""


class _Docker(Struct, array_like=True):
    state: _State
    path: str = ""
    args: tuple[str, ...] | None = None


class _Death(Struct, frozen=True):
    exitCode: str  # noqa: N815  Docker's name


class _Terminated(Struct, frozen=True):
    exitCode: int = 0  # noqa: N815  Kubernetes' names
    reason: str = ""
    startedAt: str = ""  # noqa: N815
    finishedAt: str = ""  # noqa: N815


class _States(Struct, frozen=True):
    terminated: _Terminated | None = None
    running: dict[str, str] | None = None


class _Status(Struct):
    name: str = ""
    state: _States = _States()
    lastState: _States = _States()  # noqa: N815


INSPECT = "[{{json .State}},{{json .Path}},{{json .Args}}]"
"""What `docker inspect -f` is asked for."""


def of_container(state: bytes) -> Ending | None:
    """From what INSPECT prints; None while it runs, or where that is not what this is."""
    try:
        told = msgspec.json.decode(state, type=_Docker)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    how = told.state
    if how.status not in {"exited", "dead", "restarting"}:
        return None
    argv = (told.path, *(told.args or ())) if told.path else ()
    began, ended = _instant(how.started_at), _instant(how.finished_at)
    if began is not None and ended is not None:
        began = min(began, ended)  # Docker notes the start after the fact: of `sh -c 'exit 1'` later than its end
    return Ending(_status(how.exit_code), how.oom, began, ended, argv)


def of_deaths(events: bytes) -> Ending | None:
    """From what `docker events` tells of the deaths of a container, a line each: the last one is what cut our link."""
    last = (events.splitlines() or [b""])[-1]
    try:
        return Ending(_status(int(msgspec.json.decode(last, type=_Death).exitCode)))
    except (msgspec.MsgspecError, ValueError):  # a UnicodeDecodeError is one of these
        return None


def of_pod(statuses: bytes, container: str | None) -> Ending | None:
    """From the `containerStatuses` of a pod; None while it runs (again: then nobody knows which end was ours)."""
    try:
        told = msgspec.json.decode(statuses, type=list[_Status])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    ours = next((each for each in told if container in {None, each.name}), None)
    if ours is None or ours.state.running is not None:
        return None
    end = ours.state.terminated or ours.lastState.terminated
    if end is None:
        return None
    return Ending(_status(end.exitCode), end.reason == "OOMKilled", _instant(end.startedAt), _instant(end.finishedAt))


def words(place: str, ending: Ending) -> str:
    """`The container vllm ended with 1 on 2026-11-30 at 09:26:13 UTC`."""
    how = "without telling how" if ending.exit is None else f"with {ending.exit}"
    if ending.exit is not None and ending.exit < 0:
        how = f"by signal {-ending.exit}"
    why = ", for want of memory (OOM)" if ending.oom else ""
    when = "" if ending.ended is None else f"{datetime.fromtimestamp(ending.ended, UTC): on %Y-%m-%d at %H:%M:%S UTC}"
    return f"{place[:1].upper()}{place[1:]} ended {how}{why}{when}"


def _instant(text: str) -> float | None:
    """Seconds since the epoch; None where it is none, or the year 1, which is Docker's word for never."""
    try:
        seconds = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds > 0 else None


def _status(code: int) -> int:
    return _SIGNALS - code if _SIGNALS < code <= _SIGNALS + 64 else code
