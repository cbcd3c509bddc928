"""`tuimon wait`: blocks until a launch is ready, serves, ends or is dead; an exit code for each outcome."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from tuimon.headless import check, exit_codes
from tuimon.headless.beside import Beside
from tuimon.headless.diagnose import on_stall
from tuimon.headless.plain import say, say_json
from tuimon.headless.progress import Progress
from tuimon.launch.events import AnyEvent, Finding
from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView
from tuimon.watch.live import LiveWatch
from tuimon.watch.recorded import record

if TYPE_CHECKING:
    from tuimon.config import Settings
    from tuimon.launch.steps import Way

SCHEMA = "tuimon.wait/1"
SAVING = 30.0
"""Seconds for a look at the stacks at a stall: eight ranks take 0.3 s, an upload of py-spy over a slow link longer."""
SETTLES = 2.0
"""Seconds that an end must have lasted: processes are seen to be gone before the last lines of the log are read."""
RAN = 10.0
"""Seconds after which a launch was no prelude (a wrapper, a trial) of the one that follows its end at once."""
OVER = frozenset({"crashed", "exited"})
STALLS = frozenset({"stalled", "spinning", "frozen", "failing"})

Until = Literal["ready", "serving", "exit"]
OnStall = Literal["exit", "report"]
Outcome = Literal["ready", "serving", "exited", "stalled", "crashed", "timed_out", "unreachable"]


class Wish(Struct, frozen=True):
    """What is waited for."""

    until: Until = "ready"
    timeout: float = 1800.0
    """Seconds."""
    on_stall: OnStall = "exit"
    saving: float = SAVING
    """Seconds that may be spent on saving the stacks."""


class Answer(Struct, frozen=True):
    """How the waiting ended."""

    outcome: Outcome
    view: LaunchView
    waited: float
    saved: tuple[str, ...]


def run(spec: str, settings: Settings, wish: Wish, *, as_json: bool) -> int:
    """Wait, print the answer, return the exit code. Progress goes to stderr."""
    watching = LiveWatch(spec, settings)
    progress = Progress(sys.stderr)
    beside = Beside(watching, spec, settings, progress.alert if sys.stderr.isatty() else None, progress.tell)
    recorder = record(watching, spec, settings)
    watching.on_event(lambda event: _own_trouble(event, progress))
    watching.start()
    beside.start()
    began = watching.view.now
    answer = None
    try:
        answer = wait(watching, wish, progress)
    finally:
        progress.close()
        beside.stop(answer.view if answer is not None else None)
        watching.stop()
        if recorder is not None:
            recorder.stop()
    if as_json:
        say_json(document(answer, began))
    else:
        say(words(answer))
    return exit_code(answer, wish.until)


def _own_trouble(event: AnyEvent, progress: Progress) -> None:
    """What is wrong with the recording or the history is no answer, and said: it will be missed later."""
    if isinstance(event, Finding) and event.kind in {"recording", "history"} and event.severity != "info":
        progress.tell(". ".join(filter(None, (event.text, event.fix))))


def wait(watching: LiveWatch, wish: Wish, progress: Progress) -> Answer:
    """Look at each view until it answers the wish, or time is up."""
    began = time.monotonic()
    saved: list[str] = []
    stalled = False
    over: Answer | None = None
    view = watching.view
    while True:
        waited = time.monotonic() - began
        progress.show(view, waited)
        found = outcome(view, wish.until)
        if found == "stalled" and not stalled:
            if wish.on_stall == "report":
                progress.tell(check.words(view))
            patience = time.monotonic() + wish.saving
            saved += save_stacks(watching, view, progress, wish.saving)
            if view.processes:
                on_stall(watching, max(2.0, patience - time.monotonic()))
            view = _newest(watching, view, wish)
        if over is not None and _followed(over.view, view):
            return over
        over = (over or Answer(found, view, waited, _all(saved, view))) if found in OVER else None
        settled = over is None or waited - over.waited >= SETTLES or waited >= wish.timeout
        if found is not None and settled and (found != "stalled" or wish.on_stall == "exit"):
            return Answer(found, view, waited, _all(saved, view))
        if view.link.state == "up":  # while it is down nobody knows whether the stall goes on
            stalled = found == "stalled"
        if waited >= wish.timeout:
            return Answer("timed_out" if view.link.state == "up" else "unreachable", view, waited, _all(saved, view))
        view = _next(watching, view, min(1.0, wish.timeout - waited))


def _followed(ended: LaunchView, view: LaunchView) -> bool:
    """Whether another launch came at once (a restart policy, systemd): the end is as true, and soon out of sight."""
    old, new = ended.server, view.server
    if old is None or new is None or new.launch == old.launch or old.started is None:
        return False
    return (ended.verdict.since or ended.now) - old.started >= RAN


def _next(watching: LiveWatch, seen: LaunchView, timeout: float) -> LaunchView:
    return watching.wait_for(lambda view: view is not seen, timeout)


def _all(saved: list[str], view: LaunchView) -> tuple[str, ...]:
    """The stacks that were saved here, and the stall's diagnosis, its report first."""
    report = view.report("diagnose")
    return (*saved, *(report.saved if report is not None else ()))


def _newest(watching: LiveWatch, view: LaunchView, wish: Wish) -> LaunchView:
    """The view after the look, where it says the same: it may name the suspect now."""
    new = watching.view
    return new if outcome(new, wish.until) == "stalled" else view


def outcome(view: LaunchView, until: Until) -> Outcome | None:
    """What this view answers; None = wait on. A lost link is no answer, a refusal is."""
    if view.broken or view.link.state != "up":
        return "unreachable" if view.link.state == "refused" else None
    state = view.verdict.state
    if state in STALLS:
        return "stalled"
    if state == "finished":
        # On its way out it is not gone; where processes cannot be seen the log has the last word.
        return None if until == "exit" and view.processes else "exited"
    if state in {"ready", "serving"}:
        return until if until == "ready" or (until == "serving" and tokens_flowed(view)) else None
    return "crashed" if state == "crashed" else None


def tokens_flowed(view: LaunchView) -> bool:
    """Whether the server has made tokens for somebody: a gauge of running requests alone does not tell."""
    if any(sign.name == "answers" and sign.last is not None for sign in view.signs):
        return True
    serving = view.serving
    return serving is not None and bool(serving.tokens_per_second or serving.accept_length)


def save_stacks(watching: LiveWatch, view: LaunchView, progress: Progress, within: float = SAVING) -> list[str]:
    """Look at the stacks of all ranks and save them; the paths, text first."""
    if not view.processes:
        progress.tell("no stacks: no process of the server can be seen")
        return []
    before = view.stacks

    def answered(new: LaunchView) -> bool:
        came = new.stacks is not before and new.stacks is not None and new.stacks.asked
        return came or new.link.state != "up"

    watching.ask("stacks")
    stacks = watching.wait_for(answered, within).stacks
    if stacks is before or stacks is None or stacks.saved is None:
        progress.tell("no stacks were saved: they could not be looked at, or not be written; see tuimon doctor")
        return []
    progress.tell(f"stacks of {len(stacks.ranks)} processes saved: {stacks.saved}")
    document = Path(stacks.saved).with_suffix(".json")
    return [stacks.saved, *([str(document)] if document.exists() else [])]


def exit_code(answer: Answer, until: Until) -> int:
    """What INTERFACES says. A launch that ended, as asked, before it was ready is no success of waiting for ready."""
    if answer.view.broken and answer.outcome in {"timed_out", "unreachable"}:
        return exit_codes.PROBLEM
    return {
        "ready": exit_codes.FINE,
        "serving": exit_codes.FINE,
        "exited": exit_codes.FINE if until == "exit" else exit_codes.CRASHED,
        "stalled": exit_codes.STALLED,
        "crashed": exit_codes.CRASHED,
        "timed_out": exit_codes.TIMED_OUT,
        "unreachable": exit_codes.UNREACHABLE,
    }[answer.outcome]


def document(answer: Answer, began: float, way: Way | None = None) -> dict[str, Any]:
    """The document of docs/schema/wait.json: check's, and how the waiting ended."""
    return {
        **check.report(answer.view, began, way),
        "schema": SCHEMA,
        "outcome": answer.outcome,
        "waited_s": round(answer.waited, 3),
        "saved": list(answer.saved),
    }


def words(answer: Answer) -> str:
    """The answer for a reader."""
    lines = [check.words(answer.view), f"  {answer.outcome.replace('_', ' ')} after {age(answer.waited)}"]
    return "\n".join([*lines, *(f"  saved: {path}" for path in answer.saved)])
