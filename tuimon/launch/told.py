"""What the log has told so far: the only thing that judging needs to know of it.

Instants are on tuimon's clock. Made by `launch/reading.py` from the log's bytes, read by `launch/verdict.py`.
"""

from __future__ import annotations

from msgspec import Struct

from tuimon.launch.view import Missing, PhaseView, ServingView, Suspect


class LogError(Struct, frozen=True):
    """An error line of the log that matters: the first of its kind, with its cause line where one was found."""

    line: int
    """Line number in the logbook."""
    text: str
    kind: str
    """out_of_memory, port_in_use, draft_shape_mismatch, nccl_timeout, rank_killed, traceback …"""
    at: float
    fatal: bool
    """True where the server cannot go on after it."""
    advice: str | None = None
    rank: str | None = None
    pid: int | None = None


class Timer(Struct, frozen=True):
    """A timer of the server's own that will act by itself."""

    name: str
    """`load barrier`, `watchdog`, `NCCL`, `execute_model` …"""
    started: float
    seconds: float
    consequence: str
    """What it will do: "kills the waiting ranks"."""


class Told(Struct, frozen=True):
    """What is known from the log (and the argument list) at one instant."""

    engine: str | None = None
    version: str | None = None
    model: str | None = None
    shape: str | None = None
    """`tp 8 · EAGLE3`"""
    ranks: tuple[str, ...] = ()
    """Ranks that spoke, in natural order."""
    ranks_expected: int | None = None
    """Ranks on this node, from the arguments."""
    lines: int = 0
    last_life: float | None = None
    """Last new text that counts as a sign of life (not our own probes, heartbeats, or a bar with the same counter)."""
    last_life_text: str | None = None
    last_news: float | None = None
    """The same without lines that come again and again; they count only where something may work unseen."""
    last_text: float | None = None
    """Last new text of any kind."""
    last_heartbeat: float | None = None
    """Last "still waiting" line: says that somebody waits, counts for nothing."""
    heartbeat_text: str | None = None
    phase: str | None = None
    """Name of the running phase; between phases the last one done."""
    phase_running: bool = False
    phase_since: float | None = None
    phases: tuple[PhaseView, ...] = ()
    missing: tuple[Missing, ...] = ()
    """Expected milestones that later ones have overtaken."""
    next_expected: Missing | None = None
    """The milestone that must come next, while no phase runs: in a stall it is the one that did not come."""
    laggards: tuple[Suspect, ...] = ()
    """Ranks that lack a milestone which their peers have had for some seconds."""
    ready: float | None = None
    """When the ready line came."""
    ready_line: int | None = None
    last_tokens: float | None = None
    """When the log last said that tokens were generated for somebody other than us."""
    serving: ServingView | None = None
    useless_draft: bool = False
    """Acceptance length ≤ 1.05 over several batches with speculation on."""
    error: LogError | None = None
    """The first error."""
    fatal: LogError | None = None
    """The first error after which the server cannot go on."""
    ended: float | None = None
    """When the log said that the server (or training) ended as asked."""
    allowed_wait: str | None = None
    """A wait that the server itself calls legal, in words: gated launch, DeepGEMM pre-compile."""
    waits_outside: bool = False
    """That wait is for somebody outside this host, and nothing moves in it: no silence is too long for it."""
    timers: tuple[Timer, ...] = ()
    milestones_hidden: bool = False
    """The log level hides milestones: their absence proves nothing."""
    serves: bool = True
    """False for training: it ends instead of becoming ready."""
