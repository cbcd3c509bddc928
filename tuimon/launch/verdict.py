"""judge(launch, now): is this launch slow, or is it dead? If dead: since when, where, which rank, what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from tuimon.launch import advice, serving
from tuimon.launch.deaths import Death, Halt
from tuimon.launch.kinds import kind_of
from tuimon.launch.patience import Limits, last_words, limits
from tuimon.launch.ranks import in_short
from tuimon.launch.signs import ALIVE_SECONDS
from tuimon.launch.suspects import suspects_of
from tuimon.launch.view import Missing, State, Suspect, Verdict
from tuimon.launch.waits import alarms, countdown

if TYPE_CHECKING:
    from tuimon.launch.run import Run
    from tuimon.launch.state import Launch

UNCERTAIN_DEATH = 1.5
"""Seconds of silence after which an untitled child that vanished is what everybody waits for."""
HANGS = frozenset({"watchdog", "nccl_timeout", "rpc_timeout", "hang_detected", "peer_lost", "rendezvous"})
"""Fatal lines by which the server itself reports a hang: until its processes are gone it hangs, it has not crashed."""
LOST_XIDS = {
    79: "has fallen off the bus",
    95: "has an uncontained memory error",
    119: "does not answer its driver",
    120: "GSP failed",
}
"""Xid errors after which a GPU does nothing more until it is reset."""
STILL_OPEN = 5.0
"""Seconds after a fatal line for which an open port means nothing: the front process takes a moment to notice."""
OUTLIVED = 20.0
"""Seconds of further log life after a last word that, with another sign of life, prove that it was not."""
OTHER_SIGN = 5.0
LEAVING = 10.0
"""Seconds within which a server that was asked to end is gone: without a log only that tells it from a death."""


class Reason(Struct, frozen=True):
    """A state with its cause, before the evidence is added."""

    state: State
    since: float
    headline: str
    kind: str | None = None
    certain: bool = False
    suspects: tuple[Suspect, ...] = ()
    wants_stacks: bool = False


def judge(launch: Launch, now: float) -> Verdict:
    """The judgement at `now`. The same events give the same verdict, live or replayed."""
    run = launch.run
    run.hear(now)
    if launch.link.state != "up":
        words = launch.link.reason or "not connected yet"
        return Verdict(state="unreachable", since=launch.link.since, headline=f"no link: {words}")
    if run.server is None:
        return Verdict(state="waiting", since=launch.link.since, headline="waiting for a launch")
    reason = _reason(run, now)
    verdict = Verdict(
        state=reason.state,
        since=reason.since,
        headline=reason.headline,
        kind=reason.kind,
        phase=run.told.phase,
        certain=reason.certain,
        suspects=reason.suspects,
        evidence=run.vitals.evidence(run.attention, now),
        missing=_missing(run, reason.state),
        unseen=run.vitals.unseen(),
        alarms=alarms(run, now),
        countdown=countdown(run, now),
        wants_stacks=reason.wants_stacks,
    )
    return structs.replace(verdict, advice=advice.advise(verdict, run))


def _reason(run: Run, now: float) -> Reason:
    """The first rule that applies: certain things before silence."""
    return (
        _ended(run, now)
        or _fatal(run, now)
        or _closing(run)
        or _gpu_lost(run, now)
        or _dead(run, now)
        or _halted(run, now)
        or (_after_ready(run, now) if run.ready_at is not None else _before_ready(run, now))
    )


def _ended(run: Run, now: float) -> Reason | None:
    """Nothing of the server is left."""
    if run.gone_at is None:
        return None
    told = run.told
    if _is_fatal(run, now):
        return _crash(run, run.gone_at)
    if told.ended is not None or run.exit == 0 or (not told.serves and run.exit is None and not _killed(run)):
        return Reason("finished", run.gone_at, "it ended as asked", certain=True)
    known = run.vitals.log.readable or run.exit is not None or told.error is not None or _died_before(run)
    words = "without a word" if run.exit is None else f"exit {run.exit}" if run.exit >= 0 else f"signal {-run.exit}"
    if told.error is not None:
        words = told.error.text
    elif not known:
        words = "how is not known, its log cannot be read"
    when = f"in “{told.phase}”" if told.phase else "before it was ready"
    when = "after ready" if run.ready_at is not None else when
    starved = run.oom or any(death.oom for death in run.deaths.first_dead())
    kind = "out of memory" if starved else "error" if told.error else "gone"
    return Reason("crashed", run.gone_at, f"ended {when}: {words}", kind, certain=known, suspects=_culprits(run))


def _died_before(run: Run) -> bool:
    """A rank was killed for want of memory, or dead for so long before the end that this was no shutdown."""
    dead = run.deaths.first_dead()
    return any(death.oom or (run.gone_at or death.at) - death.at > LEAVING for death in dead)


def _killed(run: Run) -> bool:
    return bool(run.deaths.first_dead()) and run.deaths.first_dead()[0].how == "zombie"


def _is_fatal(run: Run, now: float) -> bool:
    """A fatal line, unless the server became ready or went on for long after it."""
    fatal = run.told.fatal
    if fatal is None or (run.ready_at is not None and run.ready_at > fatal.at):
        return False
    last = run.told.last_life
    alive = run.gone_at is None and not run.deaths.deaths(now)
    other = run.vitals.last(but_log=True)
    works = other is not None and now - other <= OTHER_SIGN
    return not (alive and works and last is not None and last - fatal.at > OUTLIVED)


def _fatal(run: Run, now: float) -> Reason | None:
    """The log's own death sentence."""
    fatal = run.told.fatal
    if fatal is None or not _is_fatal(run, now):
        return None
    answered = run.health.last_2xx
    if answered is not None and answered > fatal.at + STILL_OPEN:
        return Reason(
            "failing",
            fatal.at,
            f"its port answers, but: {fatal.text[:140]}",
            "error",
            certain=True,
            suspects=_culprits(run),
        )
    if fatal.kind not in HANGS:
        return _crash(run, fatal.at)
    state: State = "failing" if run.ready_at is not None else "stalled"
    suspects = _culprits(run) or suspects_of(run)
    return Reason(state, fatal.at, fatal.text[:160], fatal.kind.replace("_", " "), certain=True, suspects=suspects)


def _crash(run: Run, since: float) -> Reason:
    error = run.told.error or run.told.fatal
    if error is None:
        return Reason("crashed", since, "it crashed", "error", certain=True, suspects=_culprits(run))
    kind = "out of memory" if "memory" in error.kind else "error"
    return Reason("crashed", since, error.text[:160], kind, certain=True, suspects=_culprits(run))


def _culprits(run: Run) -> tuple[Suspect, ...]:
    """Who died first; else whom the first error names."""
    dead = run.deaths.first_dead()
    if dead:
        return tuple(_dead_suspect(death) for death in dead)
    error = run.told.fatal or run.told.error
    if error is None or (error.rank is None and error.pid is None):
        return ()
    pid = error.pid or next((process.pid for process in run.processes if process.rank == error.rank), None)
    return (Suspect(error.rank, pid, "the first error is its"),)


def _closing(run: Run) -> Reason | None:
    """It was asked to end, and is on its way; a training that said it was done may have another part to do."""
    ended = run.told.ended
    if ended is None or (not run.told.serves and _went_on(run, ended)):
        return None
    return Reason("finished", ended, "ending, as asked", certain=True)


def _went_on(run: Run, since: float) -> bool:
    """New lines, and other signs of life, came for long after that."""
    lines, others = run.told.last_news, run.vitals.last(but_log=True)
    return lines is not None and others is not None and min(lines, others) - since > OUTLIVED


def _gpu_lost(run: Run, now: float) -> Reason | None:
    """A GPU of ours is gone, as its driver says."""
    words = [
        f"GPU {card.index} {LOST_XIDS[card.now.xid]} (Xid {card.now.xid})"
        for card in run.gpus.ours
        if card.now.xid in LOST_XIDS
    ]
    if run.silence(now) >= run.patience.quiet:
        # The kernel's word may be about a GPU of others: it counts for one that does nothing.
        words += [finding.text for finding in run.findings if finding.kind == "xid" and finding.severity == "fatal"]
    if not words:
        return None
    ranks = {process.pid: process.rank for process in run.processes}
    lost = [card for card in run.gpus.ours if card.now.xid in LOST_XIDS]
    suspects = tuple(Suspect(ranks.get(pid), pid, "its GPU is lost") for card in lost for pid in card.pids)
    return Reason("crashed", now, words[0], "GPU lost", certain=True, suspects=suspects)


def _dead(run: Run, now: float) -> Reason | None:
    """A rank is a zombie or has vanished: the others wait for it for ever."""
    dead = [death for death in run.deaths.deaths(now) if _sure(run, death) or _unmourned(run, death, now)]
    if not dead:
        return None
    first = min(dead, key=lambda death: death.at)
    kind = "out of memory" if any(death.oom for death in dead) else "rank killed"
    names = in_short(death.rank or f"pid {death.pid}" for death in dead)
    how = "was killed for want of memory" if first.oom else "is dead" if len(dead) == 1 else "are dead"
    suspects = tuple(_dead_suspect(death) for death in dead)
    if _may_be_leaving(run, first, now):
        verb = "has" if len(dead) == 1 else "have"
        words = f"{names} {verb} ended: asked to or not, the log that would tell cannot be read"
        return Reason("quiet", first.at, words, advice.ENDING)
    if run.deaths.all_dead:
        return Reason(
            "crashed",
            first.at,
            f"{names} {how}, no rank is left",
            kind,
            certain=True,
            suspects=_culprits(run) or suspects,
        )
    # A port that still answers hides the death from its clients: that is failing.
    answers = run.health.answered_at is not None and run.health.answered_at > first.at
    state: State = "failing" if run.ready_at is not None and answers else "stalled"
    return Reason(state, first.at, f"{names} {how}, the others wait for it", kind, certain=True, suspects=suspects)


def _sure(run: Run, death: Death) -> bool:
    """In a training a process without a rank's title may have done its part, and wait as a zombie for the others."""
    return death.certain and (run.told.serves or death.rank is not None or death.stopped or death.oom)


def _may_be_leaving(run: Run, first: Death, now: float) -> bool:
    """Ready, without a log, and a rank has just ended: a shutdown begins like that, and only a log would name it."""
    if run.ready_at is None or run.vitals.log.readable or first.oom or first.stopped:
        return False
    # That its port still answers proves nothing: SGLang's front process outlives its ranks by some seconds.
    return now - first.at < LEAVING + run.attention.bearable


def _unmourned(run: Run, death: Death, now: float) -> bool:
    """A child without a rank's title vanished, and nothing was alive since."""
    return run.silence(now) >= UNCERTAIN_DEATH and run.silence_began() <= death.at + UNCERTAIN_DEATH


def _dead_suspect(death: Death) -> Suspect:
    reason = (
        "killed by the kernel for want of memory"
        if death.oom
        else "dead (zombie)"
        if death.how == "zombie"
        else "its process is gone"
    )
    return Suspect(death.rank, death.pid, reason)


def _halted(run: Run, now: float) -> Reason | None:
    """Stopped by a signal, or frozen with its cgroup."""
    halts = run.deaths.halts(now)
    if not halts:
        return None
    frozen = [halt for halt in halts if halt.frozen]
    chosen = frozen or list(halts)
    names = in_short(_name(halt) for halt in chosen[:8])
    words = "frozen with its cgroup" if frozen else "stopped (state T)"
    since = min(halt.since for halt in chosen)
    suspects = tuple(Suspect(halt.rank, halt.pid, f"is {words}") for halt in chosen[:8])
    verb = "is" if len(chosen) == 1 else "are"
    return Reason(
        "frozen",
        since,
        f"{names} {verb} {words}",
        "cgroup frozen" if frozen else "rank stopped",
        certain=True,
        suspects=suspects,
    )


def _name(halt: Halt) -> str:
    return halt.rank or f"{halt.name or 'pid'} {halt.pid}"


def _after_ready(run: Run, now: float) -> Reason:
    trouble = serving.trouble(run, now)
    ready = run.ready_at or now
    if trouble is not None:
        return Reason(
            "failing", trouble.since, trouble.headline, trouble.kind, suspects=suspects_of(run), wants_stacks=True
        )
    if serving.is_serving(run, now):
        running = run.running(now)
        return Reason("serving", ready, f"serving, {running} running" if running else "serving")
    suspicious = run.health.bad >= 1 or run.unread_since is not None
    return Reason("ready", ready, "ready", wants_stacks=suspicious and run.silence(now) >= run.patience.quiet)


def _before_ready(run: Run, now: float) -> Reason:
    """Silence, weighed against what this launch may bear."""
    bears = limits(run)
    silence = run.silence(now)
    if run.told.waits_outside and silence >= bears.quiet and not any(card.spins for card in run.gpus.ours):
        return Reason("quiet", run.silence_began(), f"waits as it may: {run.told.allowed_wait}")
    if silence >= bears.stalled:
        return _stalled(run, bears)
    began = run.silence_began()
    if silence >= bears.quiet:
        return Reason("quiet", began, f"no sign of life{_where(run)}", wants_stacks=True)
    log = run.vitals.log
    freshest = run.vitals.freshest()
    if run.came_late and freshest is None and now - (log.last or now) >= bears.quiet:
        return Reason("quiet", log.last or now, "looking: the log was already silent when we came")
    if log.readable and freshest is not None and run.attention.looked(log.last or run.began, now) >= bears.quiet:
        fresh = now - (freshest.last or 0.0) <= ALIVE_SECONDS
        proof = freshest.proof or f"{freshest.name}, {freshest.text}"
        words = f"alive: {proof}" if fresh else f"last alive: {freshest.name}"
        words = f"the log is silent, {words}"
        if run.told.allowed_wait:
            words = f"waits as it may: {run.told.allowed_wait}"
        return Reason("quiet", log.last or run.began, words, "compiling" if freshest is run.vitals.compilers else None)
    phase = run.told.phase
    words = "starting" if phase is None else phase if run.told.phase_running else f"after “{phase}”"
    return Reason("starting", run.told.phase_since or run.began, words)


def _stalled(run: Run, bears: Limits) -> Reason:
    error = last_words(run)
    if error is not None:
        return Reason(
            "crashed",
            error.at,
            f"nothing alive after: {error.text[:140]}",
            "error",
            suspects=_culprits(run) or suspects_of(run),
            wants_stacks=True,
        )
    kind = kind_of(run)
    words = "" if kind.words == "nothing alive" else f", {kind.words}"
    headline = f"{_where(run).strip() or 'before any milestone'}: nothing alive{words}"
    if run.vitals.stacks.unreadable:
        headline += " (stacks cannot be read)"
    if bears.why:
        headline += f" ({bears.why})"
    return Reason(
        kind.state, run.silence_began(), headline, kind.name, suspects=suspects_of(run), wants_stacks=True
    )  # fmt: skip


def _where(run: Run) -> str:
    phase = run.told.phase
    if not phase:
        return ""
    return f" in “{phase}”" if run.told.phase_running else f" after “{phase}”"


def _missing(run: Run, state: State) -> tuple[Missing, ...]:
    """Overtaken milestones; in a stall also the one that comes next."""
    missing = run.told.missing
    if state not in {"stalled", "spinning", "frozen"} or run.ready_at is not None:
        return missing
    if run.told.phase_running and not _bar_is_full(run):
        return missing  # the phase itself has not ended: what comes after it is not late
    named = {entry.milestone for entry in missing}
    coming = run.told.next_expected or next(
        (Missing(phase.name, "comes next, not seen") for phase in run.told.phases if phase.state == "expected"),
        None,
    )
    return missing if coming is None or coming.milestone in named else (*missing, coming)


def _bar_is_full(run: Run) -> bool:
    """The running phase's bar is at its end: all but the line that would close the phase is there."""
    phase = next((phase for phase in run.told.phases if phase.name == run.told.phase), None)
    return phase is not None and phase.count is not None and phase.total is not None and phase.count >= phase.total
