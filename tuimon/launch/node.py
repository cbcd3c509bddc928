"""One node of a launch that is spread over several: what its host's view tells about it beside the others."""

from __future__ import annotations

from msgspec import Struct

from tuimon.launch import facts
from tuimon.launch.view import RED, LaunchView, LogLine, State

AT_WORK = 0.05
"""Share of work from which a GPU does some."""
STALE = 10.0
"""Seconds without a sample from which a host's data count as old."""
LOOK_BACK = 40
"""Lines of the log that are looked through for one that is not an answer to us."""
_FROM_VERDICT = frozenset({"stalled", "spinning", "frozen", "crashed"})


class NodeView(Struct, frozen=True):
    """A row of the overview."""

    place: int
    """Where the user named it, from 0: it stays the same whatever the order of the rows."""
    view: LaunchView
    """As its own host tells it; only its verdict may be milder, where the other nodes explain its silence."""
    silent: float | None = None
    """Seconds since its last sign of life; None = unknown, or nothing is expected of it."""
    waits: str | None = None
    """Silent, and bearable, because of this: `node1 still works`, and it is not further on."""
    absent: bool = False
    """No server here, while other nodes have one."""
    suspect: bool = False
    note: str | None = None
    """What is to be said of it, in one line."""

    @property
    def host(self) -> str:
        """Its name."""
        return self.view.host

    @property
    def state(self) -> State:
        """The verdict's state; of an unseen node there is none."""
        return "unreachable" if self.unseen else self.view.verdict.state

    @property
    def unseen(self) -> bool:
        """Nothing is known of it now: not dead, not alive."""
        return unseen(self.view)

    @property
    def red(self) -> bool:
        """Something is wrong here."""
        return self.state in RED

    @property
    def suspicious(self) -> bool:
        """Without any sign of life for longer than a node that works."""
        return self.waits is not None or (self.state == "quiet" and self.view.verdict.wants_stacks)

    @property
    def phase(self) -> str | None:
        """Where its launch is, with the share of a running bar: `weights 64 %`."""
        running = [phase for phase in self.view.phases if phase.state == "running"]
        if not running:
            return self.view.verdict.phase
        last = running[-1]
        share = f" {(last.count or 0) / last.total * 100:.0f} %" if last.total else ""
        return f"{last.name}{share}"

    @property
    def ranks(self) -> tuple[str, ...]:
        """Its ranks."""
        return self.view.server.ranks if self.view.server else ()

    @property
    def gpus(self) -> tuple[int, int] | None:
        """How many GPUs work, and how many there are; None where that cannot be told."""
        known = [gpu.work for gpu in self.view.gpus or () if gpu.work is not None]
        return (sum(work > AT_WORK for work in known), len(self.view.gpus or ())) if known else None

    @property
    def last_line(self) -> LogLine | None:
        """The newest line of its log that is not an answer to us."""
        lines = self.view.lines
        for number in range(lines.end - 1, max(lines.first, lines.end - LOOK_BACK) - 1, -1):
            line = lines[number]  # one at a time: each is cleaned and redacted when it is taken
            if not line.ours and not line.gap:
                return line
        return None


def unseen(view: LaunchView) -> bool:
    """No link, or tuimon itself fails there."""
    return view.link.state != "up" or view.broken is not None


def silence(view: LaunchView, now: float) -> float | None:
    """Seconds since this host's last sign of life; None where none is expected, or none can be seen."""
    verdict = view.verdict
    if unseen(view) or verdict.state in {"waiting", "ready", "serving", "finished", "failing"}:
        return None
    if verdict.state in _FROM_VERDICT or (verdict.state == "quiet" and verdict.wants_stacks):
        return max(0.0, now - verdict.since)
    if not looked_at(view, now, STALE):
        return None
    seen = [sign.last for sign in view.signs if sign.visible and sign.last is not None]
    return max(0.0, now - max(seen)) if seen else None


def works(view: LaunchView, now: float, bearable: float) -> bool:
    """It launches, and showed life lately: others may wait for it."""
    verdict = view.verdict
    if verdict.state not in {"starting", "quiet"} or verdict.wants_stacks or unseen(view):
        return False
    if not looked_at(view, now, bearable):
        return False
    silent = silence(view, now)
    # Where no sample ever came its signs are all there is: who has none of either is believed to start for ever.
    sampled = view.data_age is not None
    return (verdict.state == "starting" and sampled) or (silent is not None and silent < bearable)


def looked_at(view: LaunchView, now: float, within: float) -> bool:
    """Whether what is believed of it is so new; a machine that hangs may keep its link and tell nothing."""
    return (view.data_age or 0.0) + now - view.now < within


def further(one: LaunchView, other: LaunchView) -> bool:
    """Whether `one` is further in its launch than `other`, as far as their timelines tell."""
    done, its = _done(one), _done(other)
    return its <= done and (its < done or _share(one) > _share(other))


def _done(view: LaunchView) -> frozenset[str]:
    return frozenset(phase.name for phase in view.phases if phase.state == "done")


def _share(view: LaunchView) -> float:
    running = next((phase for phase in reversed(view.phases) if phase.state == "running"), None)
    if running is None:
        return 0.0
    return (running.count or 0) / running.total if running.total else 0.0


def alone(view: LaunchView) -> bool:
    """Told to run on this host only, so no other host's work explains its silence: one of several replicas, say."""
    server = view.server
    if server is None or (server.engine or "").lower() != "sglang":  # the one that must be told of its nodes
        return False
    told = facts.from_argv(server.argv)
    return told is not None and told.size("nnodes") == 1 and not told.get("config")
