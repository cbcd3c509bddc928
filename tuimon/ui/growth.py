"""How the log grew: bytes per bucket on a scale that stays, gaps apart from zeros."""

from __future__ import annotations

from tuimon.launch.view import GrowthView, LaunchView
from tuimon.ui.bars import chart, nice, spark
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, fit, plain
from tuimon.ui.words import ago, size


class Growth(Pane):
    """The log's growth sparkline."""

    TITLE = "Log growth"

    def slice(self, view: LaunchView) -> object:
        return view.growth, int(view.now)

    def aside(self, view: LaunchView) -> str:
        return f"top {size(top(view.growth, self.size.width - 4) / view.growth.bucket)}/s"

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        lines = chart(view.growth.buckets, width, max(1, height - 1), top(view.growth, width))
        return lines if height < 2 else [*lines, fit(((words(view), "dim"),), width)]


def top(growth: GrowthView, width: int) -> float:
    """The scale: the nice number above the highest bucket shown."""
    return nice(max((value for value in growth.buckets[-width:] if value is not None), default=1.0))


def words(view: LaunchView) -> str:
    """`0 B/s · 1.2 MB in all · last line 4 m 12 s ago`."""
    growth = view.growth
    rate = "rate unknown" if growth.rate is None else f"{size(growth.rate)}/s"
    return f"{rate} · {size(growth.total)} in all · last line {ago(view.now, growth.last_line)}"


def mini(view: LaunchView, width: int) -> str:
    """The sparkline as text, for the log's title where the pane has no room."""
    line = plain([spark(view.growth.buckets, width, top(view.growth, width))])
    rate = "" if view.growth.rate is None else f" {size(view.growth.rate)}/s"
    return f"{line}{rate}"
