"""The same events as a poorer eye would see them: what a judge must bear without a false alarm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from tuimon.launch.events import (
    AnyEvent,
    Linked,
    LogReset,
    LogText,
    LogUnreadable,
    Process,
    Sample,
    ServerFound,
    Stacks,
    Unlinked,
)

Stream = Iterable[AnyEvent]
LOST = 30.0
SLOW = 5.0
HOUR = 3600.0


def without_gpus(stream: Stream) -> Iterator[AnyEvent]:
    """NVML cannot be read."""
    for event in stream:
        yield structs.replace(event, gpus=None, gpu_note="NVML cannot be read") if isinstance(event, Sample) else event


def without_io(stream: Stream) -> Iterator[AnyEvent]:
    """No rights on /proc/PID/io (another user)."""
    return _processes(stream, lambda p: structs.replace(p, read_bytes=None, rchar=None, write_bytes=None))


def without_stacks(stream: Stream) -> Iterator[AnyEvent]:
    """Stacks cannot be read."""
    return (event for event in stream if not isinstance(event, Stacks))


def without_log(stream: Stream) -> Iterator[AnyEvent]:
    """Stdout leads nowhere readable."""
    for event in stream:
        if isinstance(event, Sample):
            yield structs.replace(event, log=None)
        elif not isinstance(event, LogText | LogReset):
            yield event


def log_taken(stream: Stream) -> Iterator[AnyEvent]:
    """The log is there until the middle, then its rights are lost."""
    known = list(stream)
    middle = (known[0].at + known[-1].at) / 2
    taken = False
    for event in known:
        if event.at >= middle and not taken:
            taken = True
            yield LogUnreadable(at=event.at, path="server.log", reason="permission denied")
        if event.at >= middle and isinstance(event, LogText | LogReset):
            continue
        yield structs.replace(event, log=None) if taken and isinstance(event, Sample) else event


def without_names(stream: Stream) -> Iterator[AnyEvent]:
    """Processes without names and titles."""
    return _processes(stream, lambda process: structs.replace(process, name=None, title=None, rank=None))


def stopped_as_sleeping(stream: Stream) -> Iterator[AnyEvent]:
    """A stopped process shown asleep in a futex: what a deadlock looks like."""

    def asleep(process: Process) -> Process:
        return (
            structs.replace(process, state="S", wchan="futex_do_wait", syscall=None)
            if process.state == "T"
            else process
        )

    return _processes(stream, asleep)


def slow_sampling(stream: Stream) -> Iterator[AnyEvent]:
    """One sample in 5 s."""
    last: float | None = None
    for event in stream:
        if isinstance(event, Sample):
            if last is not None and event.at - last < SLOW - 0.1:
                continue
            last = event.at
        yield event


def link_lost(stream: Stream) -> Iterator[AnyEvent]:
    """The link is down for 30 s in the middle; the log is read on from where it was."""
    known = list(stream)
    middle = (known[0].at + known[-1].at) / 2
    down, up = middle - LOST / 2, middle + LOST / 2
    held = b""
    offset = 0
    lost = back = False
    for event in known:
        if event.at >= up and lost and not back:
            back = True
            yield Linked(at=up, host="trial")
            if held:
                yield LogReset(at=up, why="reconnected", offset=offset)
                yield LogText(at=up, offset=offset, text=held)
        if down <= event.at < up:
            if not lost:
                lost = True
                yield Unlinked(at=down, reason="connection lost")
            if isinstance(event, LogText):
                offset = offset if held else event.offset
                held += event.text
            continue
        yield event


def came_late(stream: Stream, share: float = 0.5) -> Iterator[AnyEvent]:
    """Nobody looked before the middle; what the log held until then is read at once."""
    known = list(stream)
    middle = known[0].at + (known[-1].at - known[0].at) * share
    earlier = [event for event in known if event.at < middle]
    for event in earlier:
        if isinstance(event, Linked | ServerFound):
            age = middle - event.at if isinstance(event, ServerFound) and event.age is None else None
            moved = structs.replace(event, at=middle)
            yield structs.replace(moved, age=age) if age is not None and isinstance(moved, ServerFound) else moved
    held = b"".join(event.text for event in earlier if isinstance(event, LogText))
    if held:
        yield LogText(at=middle, offset=0, text=held)
    yield from known[len(earlier) :]


def clock_ahead(stream: Stream) -> Iterator[AnyEvent]:
    """The host's clock jumps one hour ahead in the middle."""
    return _clock(stream, HOUR)


def clock_back(stream: Stream) -> Iterator[AnyEvent]:
    """The host's clock jumps one hour back in the middle."""
    return _clock(stream, -HOUR)


def _clock(stream: Stream, jump: float) -> Iterator[AnyEvent]:
    known = list(stream)
    middle = (known[0].at + known[-1].at) / 2
    size = -1
    for event in known:
        if event.at < middle or event.host_time is None or isinstance(event, ServerFound):
            size = event.log.size if isinstance(event, Sample) and event.log else size
            yield event
            continue
        moved = structs.replace(event, host_time=event.host_time + jump)
        if isinstance(moved, Sample) and moved.log is not None and moved.log.size > size:
            moved = structs.replace(moved, log=structs.replace(moved.log, mtime=moved.log.mtime + jump))
        yield moved


def _processes(stream: Stream, change: Callable[[Process], Process]) -> Iterator[AnyEvent]:
    for event in stream:
        if isinstance(event, Sample) and event.processes is not None:
            yield structs.replace(event, processes=tuple(change(process) for process in event.processes))
        else:
            yield event


DEGRADATIONS: dict[str, Callable[[Stream], Iterator[AnyEvent]]] = {
    "no-gpus": without_gpus,
    "no-io": without_io,
    "no-stacks": without_stacks,
    "no-log": without_log,
    "log-taken": log_taken,
    "no-names": without_names,
    "stopped-as-sleeping": stopped_as_sleeping,
    "slow-sampling": slow_sampling,
    "link-lost": link_lost,
    "came-late": came_late,
    "clock-ahead": clock_ahead,
    "clock-back": clock_back,
}
