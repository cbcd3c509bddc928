"""`tuimon diagnose`: everything harmless at once, one report. `on_stall` does it for a watch that goes on."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tuimon.diagnose.conclusion import disagreements, named
from tuimon.diagnose.written import as_document
from tuimon.headless import check, exit_codes
from tuimon.headless.plain import say, say_json
from tuimon.headless.stacks import FINDING, found, problem
from tuimon.launch.events import AnyEvent, Collectives, Finding, Report, Stacks
from tuimon.launch.view import LaunchView
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tuimon.config import Settings
    from tuimon.watch.watching import Action

SCHEMA = "tuimon.diagnose/1"
LOOKING = 150.0
"""Seconds for all looks; only an upload of py-spy over a slow link takes longer than 20."""
ON_STALL = 45.0
"""Seconds that a stall's diagnosis may take; RAS alone gives up after 14."""
Kind = TypeVar("Kind", bound=AnyEvent)


class Diagnosable(Protocol):
    """A watch that can be asked, and waited for."""

    @property
    def view(self) -> LaunchView:
        """The latest snapshot."""

    def ask(self, action: Action) -> None:
        """Ask for an action."""

    def wait_for(self, predicate: Callable[[LaunchView], bool], timeout: float) -> LaunchView:
        """Block until a view satisfies `predicate`."""


class Heard:
    """The last events that a diagnosis is made of."""

    def __init__(self) -> None:
        self._events: deque[AnyEvent] = deque(maxlen=200)

    def take(self, event: AnyEvent) -> None:
        """Keep it, if it belongs to one."""
        if isinstance(event, Stacks | Collectives | Finding | Report):
            self._events.append(event)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """All of a kind, oldest first."""
        return [event for event in self._events if isinstance(event, kind)]

    @property
    def report(self) -> Report | None:
        """The diagnosis that was asked for."""
        return next((each for each in reversed(self.all(Report)) if each.of == "diagnose" and each.asked), None)

    @property
    def counted(self) -> tuple[Collectives, ...]:
        """The last count of each source."""
        return tuple({event.source: event for event in self.all(Collectives)}.values())


def run(spec: str, settings: Settings, *, as_json: bool, recorders: bool = False) -> int:
    """Diagnose once, print, return the exit code: 0, 1 where nothing could be read, 6 where the host is unreachable.

    `recorders`: ask the flight recorders for new dumps first.
    """
    heard = Heard()
    watching = LiveWatch(spec, settings)
    watching.on_event(heard.take)
    watching.start()
    try:
        began = watching.view.now
        view = look(watching, LOOKING, recorders=recorders)
    finally:
        watching.stop()
    if as_json:
        say_json(document(view, heard, began))
    else:
        say_all(view, heard)
    return exit_code(view, heard)


def look(watching: Diagnosable, limit: float, *, recorders: bool = False) -> LaunchView:
    """Diagnose the launch that is found there; the view that has the report, or says why not."""
    view = watching.wait_for(found, min(FINDING, limit))
    if view.server is None or not view.processes:
        return view
    before = view.report("diagnose")
    actions: tuple[Action, ...] = ("flight_recorder", "diagnose") if recorders else ("diagnose",)
    for action in actions:
        watching.ask(action)
    return watching.wait_for(lambda view: diagnosed(view, before), limit)


def diagnosed(view: LaunchView, before: Report | None) -> bool:
    """Whether the report that was asked for has come, or cannot come."""
    report = view.report("diagnose")
    came = report is not None and report is not before and report.asked
    return came or view.broken is not None or view.link.state in {"lost", "refused"}


def on_stall(watching: Diagnosable, within: float = ON_STALL) -> tuple[str, ...]:
    """The paths of this stall's diagnosis, the report first; makes one unless that has been done by itself already.

    Empty where nothing could be looked at or written.
    """
    view = watching.view
    before = view.report("diagnose")
    if before is not None and before.at >= view.verdict.since and before.saved:
        return before.saved
    watching.ask("diagnose")

    def done(view: LaunchView) -> bool:
        return view.report("diagnose") is not before or view.broken is not None or view.link.state != "up"

    after = watching.wait_for(done, within).report("diagnose")
    return after.saved if after is not None and after is not before else ()


def exit_code(view: LaunchView, heard: Heard) -> int:
    """What INTERFACES says."""
    report = heard.report
    if report is not None:
        read = any(each.ranks for each in heard.all(Stacks)) or any(each.counts for each in heard.counted)
        return exit_codes.FINE if read else exit_codes.PROBLEM
    return exit_codes.PROBLEM if view.link.state == "up" or view.broken else exit_codes.UNREACHABLE


def document(view: LaunchView, heard: Heard, began: float) -> dict[str, Any]:
    """The document of docs/schema/diagnose.json."""
    judged = check.report(view, began)
    stacks = next(reversed(heard.all(Stacks)), Stacks())
    report = heard.report
    grouped = as_document(stacks)
    return {
        "schema": SCHEMA,
        **{name: judged[name] for name in ("host", "at", "launch", "verdict")},
        "suspects": [
            {"rank": each.rank, "pid": each.pid, "source": each.source, "reason": each.reason}
            for each in named(stacks, heard.counted)
        ],
        "disagreements": list(disagreements(heard.counted)),
        "stacks": {"groups": grouped["groups"], "unread": grouped["unread"]},
        "collectives": [counts(event) for event in heard.counted],
        "findings": [
            {"source": each.source, "kind": each.kind, "severity": each.severity, "text": each.text, "fix": each.fix}
            for each in heard.all(Finding)
        ],
        "unread": list(dict.fromkeys(note for each in heard.all(Report) for note in each.unread)) if report else [],
        "seconds": report.seconds if report else None,
        "saved": list(report.saved) if report else [],
        "error": None if report else problem(view),
    }


def counts(event: Collectives) -> dict[str, Any]:
    """What one source counted."""
    return {
        "source": event.source,
        "text": event.text,
        "counts": [
            {"rank": each.rank, "pid": each.pid, "communicator": each.communicator, "launched": each.launched,
             "missing": each.missing}
            for each in event.counts
        ],
    }  # fmt: skip


def say_all(view: LaunchView, heard: Heard) -> None:
    """The report for a reader."""
    report = heard.report
    if report is None:
        say(f"{view.host}: {problem(view)}")
        return
    for line in report.text.splitlines():
        say(line, sys.stdout)
    for path in report.saved:
        say(f"saved: {path}", sys.stderr)
