"""What a single look found, as Markdown for its screen. Foreign words are cleaned, secrets replaced."""

from __future__ import annotations

from tuimon.diagnose import preflight
from tuimon.diagnose.abort import Aim
from tuimon.diagnose.conclusion import behind, disagreements
from tuimon.diagnose.debug_server import ADVICE
from tuimon.diagnose.preflight import Preflight
from tuimon.diagnose.pyspy import clean
from tuimon.diagnose.recorder import Recorded
from tuimon.launch.events import Collectives
from tuimon.launch.redact import redact


def collectives(event: Collectives) -> str:
    """Who is behind, then all counts."""
    return page(*counted(event))


def recorded(found: Recorded) -> str:
    """Who is behind by the flight recorders, then all ranks, then what could not be read."""
    lines = counted(found.collectives) if found.collectives else ["# No flight-recorder dump", ""]
    return page(*lines, *([""] if found.unread else []), *(f"- {note}" for note in found.unread))


def counted(event: Collectives) -> list[str]:
    """One event."""
    named = list(behind(event))
    torn = disagreements([event])
    if named:
        title = "# " + ", ".join(f"{each.rank} {each.reason}" for each in named[:4])
    elif event.moving:
        title = "# The ranks work: their counts are rising"
    elif torn:
        title = "# The ranks disagree: different collectives, no single culprit"
    elif event.counts:
        title = "# All ranks have launched equally many collectives"
    else:
        title = "# Nothing was counted"
    lines = (event.text or "").splitlines()
    return [title, f"asked: {event.source}", "", *(f"- **{line}**" for line in torn), "", *lines]


def checkpoint(found: Preflight) -> str:
    """The verdict and each flaw with what to change."""
    words = preflight.WORDS[found.verdict].format(engine=found.engine, version=found.engine_version)
    lines = [f"# {words}", f"draft  {found.path} ({found.format})", f"target {found.target or 'not known'}"]
    if not found.version_known:
        lines.append(f"the server's version is not known: checked against {found.engine} {found.engine_version}")
    for flaw in found.findings:
        lines += [
            "", f"## {flaw.severity}: {flaw.key}", f"- expected {flaw.expected}", f"- found {flaw.found}",
            f"- **{flaw.fix}**",
        ]  # fmt: skip
    return page(*lines)


def unreadable(sentence: str) -> str:
    """Why a draft could not be checked."""
    return page("# The draft model could not be checked", sentence)


def debug_server(lines: tuple[str, ...], why: str) -> str:
    """The stacks it printed, or why there are none."""
    if not lines:
        return page("# No debug server", why or ADVICE)
    return page("# What torch's debug server says", "", *lines)


def aim(aimed: Aim) -> str:
    """The question's first half."""
    name = f"{aimed.target.rank or 'process'} (pid {aimed.target.pid})"
    title = f"# SIGABRT to {name}" if aimed.can else f"# SIGABRT to {name} is of no use"
    return page(title, "", *(f"- {part}" for part in aimed.consequence.split("; ")))


def page(*lines: str) -> str:
    """The text."""
    return redact("\n".join(clean(line) for line in lines)) + "\n"
