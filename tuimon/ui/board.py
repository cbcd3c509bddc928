"""Where each part goes: a pure plan from the size of the screen and what there is to show."""

from __future__ import annotations

from msgspec import Struct
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from tuimon.launch.view import LaunchView
from tuimon.ui import banner, phases
from tuimon.ui.gpus import columns

PANES = ("launch", "gpus", "growth", "signs", "processes", "health", "log")
"""In the order of the number keys."""
Plan = dict[str, Region]
NO_MARGIN = Spacing()


class Needs(Struct, frozen=True):
    """How many lines each part would like, frames not counted."""

    banner: int = 1
    launch: int = 6
    gpus: int = 1
    signs: int = 9
    processes: int = 2


def needs(view: LaunchView, width: int, height: int) -> Needs:
    """What this view would like on a screen of this size."""
    return Needs(
        banner=banner.wanted(view, width, height),
        launch=max(3, phases.wanted(phases.told(view))),
        gpus=len(view.gpus or ()) or 1,
        signs=len(view.signs) or 1,
        processes=len(view.processes or ()) or 1,
    )


def plan(width: int, height: int, need: Needs, zoom: str | None = None) -> Plan:
    """A region for each part that is shown; what is not in it is not shown."""
    header = 1 if height >= 4 else 0
    footer = 1 if height >= 6 else 0
    says = max(1, min(need.banner, height - header - footer - 3))
    places: Plan = {"banner": Region(0, header, width, says)}
    if header:
        places["header"] = Region(0, 0, width, 1)
    if footer:
        places["footer"] = Region(0, height - 1, width, 1)
    top = header + says
    room = height - top - footer
    if room < 1:
        return places
    if zoom is not None:
        places[zoom] = Region(0, top, width, room)
        return places
    shape = _wide if width >= 150 else _middle if width >= 100 else _narrow if width >= 72 else _single
    places.update({name: region.translate((0, top)) for name, region in shape(width, room, need).items()})
    return places


def _row(y: int, height: int, parts: list[tuple[str, int]]) -> Plan:
    x, places = 0, {}
    for name, width in parts:
        places[name] = Region(x, y, width, height)
        x += width
    return places


def _single(width: int, room: int, need: Needs) -> Plan:
    """One column: what matters most first, each as high as it likes while the log keeps four lines."""
    order = [
        ("launch", need.launch),
        ("signs", need.signs),
        ("gpus", need.gpus),
        ("processes", need.processes),
        ("health", 2),
    ]
    places: Plan = {}
    if room < 16:
        gpus = 3 if room >= 12 else 0
        if room >= 8:
            places["launch"] = Region(0, 0, width, min(need.launch + 2, room - gpus - 4))
        y = places["launch"].bottom if places else 0
        if gpus:  # one line for all of them
            places["gpus"] = Region(0, y, width, gpus)
        places["log"] = Region(0, y + gpus, width, room - y - gpus)
        return places
    y, left_over = 0, room - 6
    for place, (name, wish) in enumerate(order):
        least = 5 if place < 2 else 3
        height = min(wish + 2, max(least, left_over - 4 * (1 if place == 0 else 0) - 4 * (1 if place < 2 else 0)))
        if height > left_over or (height < wish + 2 and place > 2):
            break
        places[name] = Region(0, y, width, height)
        y, left_over = y + height, left_over - height
    places["log"] = Region(0, y, width, room - y)
    return places


def _narrow(width: int, room: int, need: Needs) -> Plan:
    """72–99 cells: launch beside signs, GPUs across, log; more when the screen is high."""
    half = 36 if width < 84 else width // 2
    if room < 9:
        return {**_row(0, room, [("launch", half), ("log", width - half)])}
    rows = need.gpus if columns(need.gpus, width - 4, 4) == 1 else (need.gpus + 1) // 2
    gpus = min(rows, max(1, room - 13), 8) + 2 if room >= 14 else 0
    spare = room - gpus - 6
    upper = max(4, min(max(need.launch, need.signs), spare - 2) + 2) if spare >= 8 else max(4, min(6, spare + 1))
    upper = min(upper, max(6, room - gpus - 8) if room < 24 else 14)
    places = _row(0, upper, [("launch", half), ("signs", width - half)])
    y = upper
    if gpus:
        places["gpus"] = Region(0, y, width, gpus)
        y += gpus
    if room - y >= 17:
        side = max(6, min(need.processes + 2, 8))
        places.update(_row(y, side, [("processes", half), ("growth", width - half)]))
        places["growth"] = Region(half, y, width - half, side - 4 if side >= 8 else side)
        if side >= 8:
            places["health"] = Region(half, y + side - 4, width - half, 4)
        y += side
    places["log"] = Region(0, y, width, room - y)
    return places


def _middle(width: int, room: int, need: Needs) -> Plan:
    """100–149 cells, as in the sketch: two columns over the log."""
    half = width * 9 // 20
    other = width - half
    log_least = 6
    if room < 12:
        third = (width - half) // 2
        return _row(0, room, [("launch", half - 6), ("signs", third + 3), ("log", width - half + 6 - third - 3)])
    # The timeline can be squeezed, GPUs cannot: all of a usual host are seen before anything below gets a line.
    upper = max(6, (room - log_least) // 2 if room < 26 else room - log_least - 11)
    upper = min(max(need.launch, need.gpus) + 2, max(upper, min(need.gpus + 2, 10, room - log_least)))
    places = _row(0, upper, [("launch", half), ("gpus", other)])
    lower = min(max(need.signs + 2, need.processes + 6), room - upper - log_least)
    if lower >= 5:
        places["signs"] = Region(half, upper, other, lower)
        places.update(_left_stack(upper, lower, half, need))
    else:
        lower = 0
    places["log"] = Region(0, upper + lower, width, room - upper - lower)
    return places


def _left_stack(y: int, height: int, width: int, need: Needs) -> Plan:
    """Growth, health and processes one over the other; processes keep the rows they need before health gets any."""
    if height < 8:
        return {"processes": Region(0, y, width, height)}
    spare = height - need.processes - 2
    health = 4 if spare >= 8 else 3 if spare >= 7 else 0
    growth = max(4, min(7, spare - health))
    places = {"growth": Region(0, y, width, growth)}
    if health:
        places["health"] = Region(0, y + growth, width, health)
    used = growth + health
    places["processes"] = Region(0, y + used, width, height - used)
    return places


def _wide(width: int, room: int, need: Needs) -> Plan:
    """150 cells and more: three columns over the log, or everything in one row when the screen is low."""
    first, second = width * 28 // 100, width * 42 // 100
    third = width - first - second
    if room < 16:
        quarter = width // 4
        if need.gpus + 2 > room and width >= 190:  # GPUs in two columns, none below the edge
            return _row(0, room, [("launch", 36), ("signs", 44), ("gpus", 76), ("log", width - 156)])
        return _row(
            0, room, [("launch", quarter - 2), ("signs", quarter), ("gpus", quarter + 2), ("log", width - 3 * quarter)]
        )
    upper = min(max(need.launch, need.gpus, need.signs) + 2, room - 16 if room >= 28 else max(6, room - 8))
    places = _row(0, upper, [("launch", first), ("gpus", second), ("signs", third)])
    lower = max(6, min(need.processes + 2, 12)) if room - upper >= 14 else 0
    if lower:
        places.update(_row(upper, lower, [("growth", first), ("processes", second), ("health", third)]))
    places["log"] = Region(0, upper + lower, width, room - upper - lower)
    return places


class PlanLayout(Layout):
    """Puts the board's children where the plan says."""

    name = "plan"

    def arrange(
        self,
        parent: Widget,
        children: list[Widget],
        size: Size,
        greedy: bool = True,  # noqa: ARG002  Textual's
    ) -> list[WidgetPlacement]:
        assert isinstance(parent, Board)  # noqa: S101  only the board has this layout
        places = plan(size.width, size.height, parent.need, parent.zoom)
        return [
            WidgetPlacement(places[child.id], NULL_OFFSET, NO_MARGIN, child)
            for child in children
            if child.id is not None and child.id in places
        ]


class Board(Widget):
    """Holds all parts and places them by the plan."""

    DEFAULT_CSS = "Board { width: 1fr; height: 1fr; overflow: hidden; }"

    def __init__(self, *children: Widget) -> None:
        super().__init__(*children, id="board")
        self.need = Needs()
        self.zoom: str | None = None
        self.placed: Plan = {}
        self._layout = PlanLayout()

    @property
    def layout(self) -> Layout:
        """The plan."""
        return self._layout

    def settle(self, need: Needs, zoom: str | None) -> None:
        """Plan again if something asks for it; `placed` is right at once, the layout follows."""
        size = self.screen.size
        self.placed = plan(size.width, size.height, need, zoom)
        if (need, zoom) != (self.need, self.zoom):
            self.need, self.zoom = need, zoom
            # Only a child's layout makes Textual forget how this board was arranged.
            for part in self.children[:1]:
                part.refresh(layout=True)
