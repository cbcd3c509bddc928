"""How the log grew: bytes per bucket on a scale that stays, gaps apart from zeros."""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.launch.view import LaunchView
from tuimon.ui.bars import chart, nice, spark, squeezed
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, fit, plain
from tuimon.ui.words import ago, size


class Growth(Pane):
    """The log's growth sparkline."""

    TITLE = "Log growth"

    def slice(self, view: LaunchView) -> object:
        return view.growth, int(view.now)

    def aside(self, view: LaunchView, room: int) -> str:
        values = values_of(view, self.size.width - 4)
        words = f"top {size(top(values) / view.growth.bucket)}/s"
        return words if room >= len(words) and view.growth.buckets else ""

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        values = values_of(view, width)
        lines = chart(values, width, max(1, height - 1), top(values))
        return lines if height < 2 else [*lines, fit(((words(view, width), "dim"),), width)]


def values_of(view: LaunchView, width: int) -> list[float | None]:
    """The growth in at most `width` buckets."""
    return squeezed(view.growth.buckets, width, int(view.now // view.growth.bucket))


def top(values: Sequence[float | None]) -> float:
    """The scale: the nice number above the highest bucket shown."""
    return nice(max((value for value in values if value is not None), default=1.0))


def words(view: LaunchView, width: int) -> str:
    """`0 B/s · 1.2 MB in all · last line 4 m 12 s ago`; without a log, that there is none."""
    growth = view.growth
    if growth.total is None:
        return "no log yet"
    rate = "rate unknown" if growth.rate is None else f"{size(growth.rate)}/s"
    last = f"last line {ago(view.now, growth.last_line)}"
    full = f"{rate} · {size(growth.total)} in all · {last}"
    return full if len(full) <= width else f"{rate} · {last}"


def mini(view: LaunchView, width: int) -> str:
    """The sparkline as text, for the log's title where the pane has no room."""
    values = values_of(view, width)
    line = plain([spark(values, width, top(values))])
    rate = "" if view.growth.rate is None else f" {size(view.growth.rate)}/s"
    return f"{line}{rate}"
