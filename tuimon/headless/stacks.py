"""`tuimon stacks`: one look at the stacks of all ranks, grouped, saved and printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.diagnose.groups import group, summary, tree
from tuimon.diagnose.pyspy import printable
from tuimon.diagnose.written import as_document, group_lines, tree_lines, unread_line
from tuimon.headless import exit_codes
from tuimon.headless.plain import say, say_json
from tuimon.launch.events import Stacks
from tuimon.launch.view import LaunchView
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tuimon.config import Settings

FINDING = 10.0
"""Seconds until the server must have been found: the probe scans every 2 s."""
LOOKING = 150.0
"""Seconds for the look itself; only an upload of py-spy over a slow link takes longer than one."""


def run(spec: str, settings: Settings, *, as_json: bool) -> int:
    """Look once, print, return the exit code: 0, 1 where nothing could be read, 6 where the host cannot be reached."""
    watching = LiveWatch(spec, settings)
    watching.start()
    try:
        view = watching.wait_for(found, timeout=FINDING)
        if view.server is not None and view.processes:
            watching.ask("stacks")
            view = watching.wait_for(looked, timeout=LOOKING)
    finally:
        watching.stop()
    if as_json:
        say_json(report(view))
    else:
        say(printable(words(view)))
    return exit_code(view)


def found(view: LaunchView) -> bool:
    """Whether there is a server with processes, or never will be."""
    return bool(view.broken) or view.link.state == "refused" or (view.server is not None and bool(view.processes))


def looked(view: LaunchView) -> bool:
    """Whether the look we asked for has come, or cannot come."""
    if view.broken or view.link.state in {"lost", "refused"}:
        return True
    return view.stacks is not None and view.stacks.asked


def exit_code(view: LaunchView) -> int:
    """What INTERFACES says."""
    if view.stacks is not None and view.stacks.ranks:
        return exit_codes.FINE
    return exit_codes.PROBLEM if view.link.state == "up" or view.broken else exit_codes.UNREACHABLE


def problem(view: LaunchView) -> str | None:
    """Why there is nothing to show, in words; None where there is."""
    if view.stacks is not None:
        return None if view.stacks.ranks else "no stack could be read"
    if view.broken:
        return f"tuimon's own error: {view.broken}"
    if view.link.state != "up":
        return view.link.reason or "the host cannot be reached"
    return view.error or "no server was found there" if view.server is None else "the look did not come back in time"


def report(view: LaunchView) -> dict[str, object]:
    """The document of docs/schema/stacks.json."""
    stacks = view.stacks or Stacks()
    document = as_document(stacks, stacks.saved)
    return {**document, "host": view.host, "error": problem(view)}


def words(view: LaunchView) -> str:
    """Groups and merged tree for a reader."""
    if view.stacks is None:
        return f"{view.host}: {problem(view)}"
    groups = group(view.stacks)
    lines = [f"{view.host}: {summary(groups, len(view.stacks.unread))}"]
    for item in groups:
        lines += ["", *group_lines(item)]
    if len(tree(groups)) > 1 and len(groups) > 1:
        lines += ["", "merged call tree:", *tree_lines(groups)]
    if view.stacks.unread:
        lines += ["", "could not be read:", *map(unread_line, view.stacks.unread)]
    lines += ["", f"saved: {view.stacks.saved}"] if view.stacks.saved else []
    return "\n".join(lines)
