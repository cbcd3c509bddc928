"""The tools of `tuimon mcp`: what an assistant that debugs a launch may ask. Read-only, short answers.

Every tool states how long it may take; what is asked about often is watched on between the questions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio

from tuimon.errors import TuimonError
from tuimon.headless import check, diagnose, stacks, wait
from tuimon.headless.mcp_answers import bounded, live_timeline
from tuimon.headless.progress import Silent
from tuimon.headless.ways import tools
from tuimon.hosts.aside import aside

if TYPE_CHECKING:
    from tuimon.headless.mcp_watches import Watches
    from tuimon.launch.view import LaunchView

CHECK_LIMIT = 25.0
WAIT_LIMIT = 45.0
"""Seconds; clients give up on a tool after 60."""
SAVING = 10.0
STACKS_LIMIT = 45.0
TIMELINE_LIMIT = 30.0
LONGEST_LOG = 500_000_000
"""Bytes; 19 MB/s were measured (vLLM), and a reading that was given up would go on for nobody."""
GRACE = 5.0
"""Seconds beyond its limit after which a tool is given up: nothing of ours should need them."""
HOST_WORDS = (
    "[user@]name[:sshport], an alias of ~/.ssh/config, localhost, docker:NAME, HOST/docker:NAME, k8s:NAMESPACE/POD, or "
    "demo:SCENARIO"
)


class Answers:
    """The tools: their names, signatures and docstrings are what the assistant is shown."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self.tools = (self.check, self.wait, self.timeline, self.stacks, self.diagnose, self.checkpoint)

    async def check(
        self,
        host: Annotated[str, HOST_WORDS],
        seconds: Annotated[float, "how long to look at most, 1-25"] = 12.0,
    ) -> str:
        """Judge the launch on a host now: state, since when, evidence, suspects, missing milestones, advice.

        Answers within `seconds` (at most 25), earlier when the verdict is certain or a sign of life was seen.
        """
        seconds = min(max(seconds, 1.0), CHECK_LIMIT)

        def ask() -> dict[str, Any]:
            watching = self._watches.of(host)
            began = watching.view.now
            view = watching.wait_for(lambda view: check.settled(view, began), seconds)
            return check.report(view, began, tools)

        return await answer(ask, seconds)

    async def wait(
        self,
        host: Annotated[str, HOST_WORDS],
        until: Annotated[Literal["ready", "serving", "exit"], "what to wait for"] = "ready",
        seconds: Annotated[float, "how long to wait at most, 1-45"] = 45.0,
    ) -> str:
        """Wait until the launch is ready, serves or has ended; returns at once when it stalls or crashes.

        Answers within `seconds` (at most 45; 10 more where stacks are saved at a stall). Outcome timed_out only means
        that nothing was decided yet: call again.
        """
        seconds = min(max(seconds, 1.0), WAIT_LIMIT)

        def ask() -> dict[str, Any]:
            watching = self._watches.of(host)
            began = watching.view.now
            answer = wait.wait(watching, wait.Wish(until, seconds, saving=SAVING), Silent())
            return wait.document(answer, began, tools)

        return await answer(ask, seconds + SAVING)

    async def timeline(
        self,
        source: Annotated[str, f"a host ({HOST_WORDS}), or the path of a log file on this machine"],
    ) -> str:
        """Phases with durations, what they usually take, missing milestones, the first error; for a host also the last
        log lines. Answers within 30 seconds.
        """

        def ask() -> dict[str, Any]:
            if is_path(source):
                return _file_timeline(source)
            view = self._watches.of(source).wait_for(_heard, TIMELINE_LIMIT / 2)
            return live_timeline(view)

        return await answer(ask, TIMELINE_LIMIT)

    async def stacks(self, host: Annotated[str, HOST_WORDS]) -> str:
        """Look at the Python stacks of all ranks without stopping them, grouped; `odd` marks the rank that differs.

        Answers within 45 seconds.
        """

        def ask() -> dict[str, Any]:
            return stacks.report(self._watches.look(host, STACKS_LIMIT))

        return await answer(ask, STACKS_LIMIT)

    async def diagnose(self, host: Annotated[str, HOST_WORDS]) -> str:
        """Everything harmless at once: stacks of all ranks, NCCL's own counts, the kernel's log (Xid, OOM). Names the
        ranks that are behind and why; the whole report is saved. Answers within 45 seconds.
        """

        def ask() -> dict[str, Any]:
            watching = self._watches.of(host)
            began = watching.view.now
            return diagnose.document(diagnose.look(watching, STACKS_LIMIT), self._watches.heard(host), began)

        return await answer(ask, STACKS_LIMIT)

    async def checkpoint(
        self,
        host: Annotated[str, HOST_WORDS],
    ) -> str:
        """Would the draft model of the launch on this host do anything? Compares its config and tensor names with what
        the server's version loads; reads no weights. Answers within 45 seconds.
        """

        def ask() -> dict[str, Any]:
            report, view = self._watches.report(host, "checkpoint", STACKS_LIMIT)
            return {"host": host, "text": report.text if report else None, "error": None if report else _unread(view)}

        return await answer(ask, STACKS_LIMIT)


async def answer(ask: Callable[[], dict[str, Any]], limit: float) -> str:
    """Run within the limit, on a thread that nobody waits for once the client has left: anyio's would hold the process.

    Raises what `ask` raises, and NoAnswer.
    """
    with anyio.move_on_after(limit + GRACE):
        return bounded(await aside(ask, "tuimon-asked"))
    raise NoAnswer(f"There was no answer within {limit:.0f} s", "Try again, or check first")


def is_path(source: str) -> bool:
    """Whether a log file is meant: `/` and `./` force it; else a slash is a host's only beside a scheme."""
    if source.startswith(("/", "./", "../", "~")):
        return True
    schemes = ("demo:", "docker:", "k8s:")
    return "/" in source and not source.startswith(schemes) and not any(f"/{scheme}" in source for scheme in schemes)


def _unread(view: LaunchView) -> str:
    """Why there is no report of the draft model."""
    if view.link.state != "up":
        return view.link.reason or "the host has not answered yet"
    return view.findings[-1] if view.findings else "no server was found there"


def _heard(view: LaunchView) -> bool:
    return check.settled(view, view.now - check.SETTLING) or bool(view.phases)


def _file_timeline(path: str) -> dict[str, Any]:
    from tuimon.headless import timeline  # noqa: PLC0415  grammars, only where a file is read

    found = os.path.expanduser(path)  # pathlib's raises for a user whom nobody knows
    status = Path(found).stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotALog(f"{path} is not a file", "Name a log file")
    if status.st_size > LONGEST_LOG:
        size = f"{path} has {status.st_size / 1e9:.1f} GB"
        raise NotALog(f"{size}, more than can be read in {TIMELINE_LIMIT:.0f} s", "Name its last part, or a host")
    return {"schema": timeline.SCHEMA, "files": [timeline.read(found).report(lens=False)]}


class NoAnswer(TuimonError):
    """A tool did not keep its own limit."""


class NotALog(TuimonError):
    """What should be read as a log is a folder, a pipe or a device."""

    exit_code = 2
