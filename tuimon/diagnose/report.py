"""One Markdown report of a stall, ready for a bug tracker: what is believed, why, and what could not be read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tuimon import __version__
from tuimon.diagnose.conclusion import disagreements, named
from tuimon.diagnose.groups import group, moved, summary
from tuimon.diagnose.ladder import Diagnosis
from tuimon.diagnose.pyspy import clean, printable
from tuimon.diagnose.written import group_lines, tree_lines
from tuimon.launch.events import Collectives
from tuimon.launch.lasting import age
from tuimon.launch.redact import redact
from tuimon.launch.view import GpuView, LaunchView, LogLine, PhaseView, ProcessView

LAST_LINES = 40


def markdown(view: LaunchView, found: Diagnosis) -> str:
    """The report; secrets are replaced by ***. `view` is from before the looks: its stacks are the older ones."""
    sections = [
        ("", list(head(view, found))),
        ("Why", list(reasons(view))),
        ("Stacks", [*moved_line(view, found), *fenced(stack_lines(found))]),
        *((f"Collectives ({event.source})", fenced(counted_lines(event))) for event in found.counted),
        (
            "Kernel log and driver",
            [f"- {one_line(item.text)} – {item.fix}" for item in found.findings] or ["nothing that matters"],
        ),
        ("GPUs", fenced([gpu_line(gpu) for gpu in view.gpus or ()]) or [one_line(view.gpu_note or "none seen")]),
        ("Processes", fenced([process_line(process) for process in view.processes or ()])),
        ("Timeline", fenced([phase_line(phase) for phase in view.phases])),
        ("Last lines of the log", fenced(last_lines(view))),
        ("Could not be read", [f"- {one_line(note)}" for note in found.unread] or ["nothing: every look succeeded"]),
        ("Launch", fenced(launch_lines(view))),
    ]
    parts = [f"## {title}\n\n" * bool(title) + "\n".join(lines) for title, lines in sections if lines]
    return printable(redact("\n\n".join(parts))) + "\n"


def head(view: LaunchView, found: Diagnosis) -> Iterator[str]:
    """Title and verdict."""
    verdict, server = view.verdict, view.server
    name = " ".join(filter(None, [server.engine, server.version] if server else [])) or "server"
    yield f"# {name} on {one_line(view.host)}: {verdict.state}"
    yield ""
    kind = f" ({verdict.kind})" if verdict.kind else ""
    yield f"**{one_line(verdict.headline)}**{kind}, for {age(view.now - verdict.since)}"
    yield f"at {datetime.fromtimestamp(view.now, UTC):%Y-%m-%d %H:%M:%S} UTC, written by tuimon {__version__}"
    yield ""
    for suspect in verdict.suspects:
        yield f"- suspect: **{one_line(str(suspect.rank or suspect.pid))}** – {one_line(suspect.reason)}"
    for each in named(found.stacks, found.counted):
        who = f"{each.rank} (pid {each.pid})" if each.pid else each.rank
        yield f"- {each.source} names **{one_line(who)}**: {one_line(each.reason)}"
    for words in disagreements(found.counted):
        yield f"- {one_line(words)}"
    if view.error:
        yield f"- first error of the log: {one_line(view.error)}"


def reasons(view: LaunchView) -> Iterator[str]:
    """Signs of life with their ages, milestones that never came."""
    for item in view.verdict.evidence:
        seen = "never" if item.age is None else f"{age(item.age)} ago"
        yield f"- {one_line(item.sign)}: {seen} – {one_line(item.text)}"
    for never in view.verdict.missing:
        yield f"- missing: {one_line(never.milestone)} – {one_line(never.because)}"
    if view.verdict.unseen:
        yield f"- cannot be seen here: {', '.join(view.verdict.unseen)}"


def moved_line(view: LaunchView, found: Diagnosis) -> list[str]:
    """Whether the stacks moved since the look before; nothing where there was none."""
    before = view.stacks
    if before is None or (have_moved := moved(before, found.stacks)) is None:
        return []
    return [f"{'moved' if have_moved else 'did not move'} in the {age(view.now - before.at)} before", ""]


def counted_lines(event: Collectives) -> list[str]:
    """What one counter says."""
    return [clean(line) for line in (event.text or "nothing").splitlines()[:400]]


def gpu_line(gpu: GpuView) -> str:
    """One GPU: what it is said to do, and what it does."""
    known = (
        ("busy", gpu.util, "%"), ("work", None if gpu.work is None else 100 * gpu.work, "%"), ("power", gpu.power, "W"),
        ("memory", None if gpu.mem_used is None else gpu.mem_used / 1e9, "GB"), ("clock", gpu.sm_clock, "MHz"),
    )  # fmt: skip
    parts = [f"{name} {value:.0f} {unit}" for name, value, unit in known if value is not None]
    return clean(" ".join([f"GPU {gpu.index}", gpu.rank or "", ", ".join(parts), gpu.word or ""]).strip())


def process_line(process: ProcessView) -> str:
    """Processes that read the same."""
    cpu = "" if process.cpu is None else f" {process.cpu:.0f} % CPU"
    waits = f" waits in {process.waits_in}" if process.waits_in else ""
    return clean(f"{'  ' * min(process.depth, 8)}{process.label}: state {process.states}{cpu}{waits}")


def stack_lines(found: Diagnosis) -> list[str]:
    """Groups and merged tree."""
    groups = group(found.stacks)
    lines = [summary(groups, len(found.stacks.unread))]
    for item in groups:
        lines += ["", *group_lines(item)]
    return [*lines, "", *tree_lines(groups)] if len(groups) > 1 else lines


def phase_line(phase: PhaseView) -> str:
    """One phase."""
    took = "" if phase.seconds is None else f"{phase.seconds:8.1f} s"
    return f"{phase.state:9} {clean(phase.name):30} {took} {clean(phase.note or '')}".rstrip()


def last_lines(view: LaunchView) -> list[str]:
    """The end of the log, each line with its own clock and rank."""
    lines = view.lines.slice(max(view.lines.first, view.lines.end - LAST_LINES), view.lines.end)
    return [log_line(line) for line in lines]


def log_line(line: LogLine) -> str:
    """One line of the log."""
    return clean(" ".join(filter(None, [line.clock, line.rank, line.text])))


def launch_lines(view: LaunchView) -> list[str]:
    """Command line, log, shape."""
    server = view.server
    if server is None:
        return []
    facts = {"command": shlex.join(server.argv), "model": server.model, "shape": server.shape, "log": server.log}
    return [f"{name}: {clean_long(value)}" for name, value in facts.items() if value]


def clean_long(text: str) -> str:
    """Printable, with room for a long command line."""
    return "".join(clean(text[at : at + 200]) for at in range(0, min(len(text), 8000), 200))


_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")


def one_line(text: str) -> str:
    """Foreign text inside Markdown: one line, nothing in it is markup."""
    return _MARKUP.sub(r"\\\1", clean(text))


def fenced(lines: Sequence[str]) -> list[str]:
    """A code block whose fence is longer than any inside it."""
    if not lines:
        return []
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]
