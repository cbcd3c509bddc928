"""A report of the host on the screen: a diagnosis, what NCCL counted, the check of a draft model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from textwrap import wrap

from tuimon.diagnose.rungs import RUNGS
from tuimon.launch.events import Report
from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView
from tuimon.ui.rows import Row, clean, fit
from tuimon.ui.sheet import SheetScreen
from tuimon.ui.words import clock

MOST_LINES = 5_000
TITLES = {
    "diagnose": ("Diagnosis", "looking at everything harmless…"),
    "collectives": ("Collectives", "asking NCCL…"),
    "checkpoint": ("Draft model", "reading the draft model's headers…"),
    "flight_recorder": ("Flight recorders", "waiting for their dumps, 5 s…"),
    "debug_server": ("torch's debug server", "asking it…"),
    "abort": ("SIGABRT", "sending it…"),
}


class ReportScreen(SheetScreen):
    """The latest report of one action."""

    IMPATIENT = True

    def __init__(self, of: str, busy: Callable[[], str | None], key: Callable[[str], str]) -> None:
        super().__init__()
        self.of = of
        self._busy = busy
        self._key = key

    @property
    def heading(self) -> str:
        """What stands in the frame."""
        return TITLES[self.of][0]

    def slice(self, view: LaunchView) -> object:
        report = view.report(self.of)
        return report, int(view.now - report.at) if report else None, self._busy(), view.findings[-1:]

    def rows(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  scrolled by the sheet
        report = view.report(self.of)
        working = self._busy() == self.of
        if report is None:
            words = TITLES[self.of][1] if working else "no answer yet"
            rows: list[Row] = [(), ((words, "accent" if working else "dim"),), ()]
            return rows + [fit(((f"▸ {clean(text)}", "dim"),), width) for text in view.findings[-1:] if not working]
        rows = [self._head(view, report, width, working=working)]
        rows += [fit((("saved: ", "dim"), (clean(path), "text")), width) for path in report.saved[:1]]
        rows += [(), *body(report.text, width)]
        return [*rows, (), *self._more(width)] if self.of == "diagnose" else rows

    def _head(self, view: LaunchView, report: Report, width: int, *, working: bool) -> Row:
        took = "" if report.seconds is None else f" · took {report.seconds:.1f} s"
        who = "" if report.asked else " · by itself, because of the verdict"
        again = (("looking again… · ", "accent"),) if working else ()
        return fit((*again, (f"{clock(report.at)}, {age(view.now - report.at)} ago{took}{who}", "dim")), width)

    def _more(self, width: int) -> Iterator[Row]:
        """What could be looked at besides, with cost and risk."""
        yield (("More, which asks first", "title"),)
        for rung in RUNGS:
            if rung.asks and rung.action:
                words = f"{rung.name}: takes {rung.cost}; {rung.risk}"
                yield fit(((f"  {self._key(rung.action)}  ", "accent"), (words, "text")), width)


def body(text: str, width: int) -> list[Row]:
    """Markdown as rows: headings stand out, code keeps its columns, everything is wrapped."""
    rows: list[Row] = []
    fenced = False
    for line in text.splitlines()[:MOST_LINES]:
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            rows += [((piece, "text"),) for piece in pieces(line, width, "      ")]
        elif line.startswith("#"):
            ink = "strong" if line.startswith("# ") else "title"
            rows += [((piece, ink),) for piece in pieces(plain(line.lstrip("# ")), width, "  ")]
        else:
            ink = "warn" if "**" in line else "text"
            rows += [((piece, ink),) for piece in pieces(plain(line), width, "    ")]
    return rows


def plain(line: str) -> str:
    """Without Markdown's own marks."""
    line = line.replace("**", "")
    for mark in "\\`*_{}[]<>#|":
        line = line.replace(f"\\{mark}", mark)
    return f"▸ {line[2:]}" if line.startswith("- ") else line


def pieces(line: str, width: int, indent: str) -> list[str]:
    """A line in pieces that fit, indentation kept; an empty line stays one."""
    line = clean(line)
    if len(line) <= width:
        return [line]
    return wrap(line, max(20, width), subsequent_indent=indent, drop_whitespace=False, break_long_words=True) or [""]
