"""Advice without a screen: an act is a command for a script, a tool for an assistant."""

from __future__ import annotations

import shlex

from tuimon.launch.steps import Act, Way
from tuimon.launch.view import LaunchView


def commands(view: LaunchView) -> Way:
    """The commands that do it on this view's host; what cannot be named is described."""
    host = shlex.quote(view.host)
    log = view.server.log if view.server is not None else None

    def order(act: Act) -> str:
        match act:
            case "stacks":
                return f"run `tuimon stacks {host}`"
            case "diagnose" | "collectives":
                return f"run `tuimon diagnose {host}`"
            case "checkpoint":
                return f"run `tuimon checkpoint {_draft(view)}`"
            case "next_error":
                return f"look into {log or 'its log'}"

    return order


def tools(act: Act) -> str:
    """The tool of `tuimon mcp` that does it."""
    name = {"collectives": "diagnose", "next_error": "timeline"}.get(act, act)
    return f"call {name}"


def _draft(view: LaunchView) -> str:
    """[HOST:]PATH of the draft model that the command line names, with its target."""
    from tuimon.diagnose.preflight import launched  # noqa: PLC0415  only where there is a draft

    named = launched(view.server.argv) if view.server is not None else None
    where = "" if view.host == "localhost" else f"{view.host}:"
    if named is None:
        return f"{shlex.quote(where)}PATH"
    target = f" --target {shlex.quote(where + named.target)}" if named.target else ""
    return shlex.quote(where + named.draft) + target
