"""Several hosts on one screen: the verdict on the launch, a row for each node, and each node's own board behind it."""

from __future__ import annotations

from collections import Counter

from textual import events
from textual.app import ComposeResult
from textual.message import Message

from tuimon.launch.lasting import age
from tuimon.launch.node import STALE, NodeView
from tuimon.launch.nodes import NodesView
from tuimon.launch.view import LaunchView
from tuimon.ui import noderows
from tuimon.ui.banner import Banner
from tuimon.ui.board import Board, needs
from tuimon.ui.footer import Footer
from tuimon.ui.header import ENGINES
from tuimon.ui.loglines import Look, entry, rule
from tuimon.ui.pane import Painted, Pane
from tuimon.ui.rows import Row, cells, clean, fit, flow, plain, spread, width_of
from tuimon.ui.viewing import Viewing

GLIMPSE = 6
"""Lines left over from which the end of a log is shown in them."""


class NodesHeader(Painted):
    """One line: how many, what is launched, and how many lights are on."""

    nodes: NodesView | None = None

    def slice(self, view: LaunchView) -> object:
        started = view.server.started if view.server else None
        return view.server, self.lights(), None if started is None else int(view.now - started)

    def lights(self) -> tuple[tuple[str, int, int], ...]:
        """Name, how many are on, of how many."""
        nodes = self.nodes.nodes if self.nodes is not None else ()
        up = [node for node in nodes if not node.unseen]
        running = [node for node in up if node.view.server is not None and node.state not in {"crashed", "finished"}]
        fresh = [node for node in up if node.view.data_age is not None and node.view.data_age < STALE]
        return tuple((name, len(on), len(nodes)) for name, on in (("link", up), ("process", running), ("data", fresh)))

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:  # noqa: ARG002  one line
        if view is None:
            return [fit(((" tuimon", "head"),), width, "headdim")]
        end: list[tuple[str, str]] = []
        for name, on, count in self.lights():
            shape, ink = ("●", "headgood") if on == count else ("◐", "headwarn") if on else ("○", "headdim")
            end += [(f" {name if width >= 100 else name[:4]} ", "headdim"), (f"{shape} ", ink), (f"{on}/{count} ", ink)]
        count = len(self.nodes.nodes) if self.nodes is not None else 0
        start = flow(_who(view, count, width), width - width_of(tuple(end)) - 2, (" · ", "headdim"))
        return [spread(((" ", "head"), *start), tuple(end), width, "headdim")]


def _who(view: LaunchView, count: int, width: int) -> list[Row]:
    parts: list[Row] = [((f"{count} hosts", "head"),)]
    server = view.server
    if server is None:
        return parts
    version = f" {clean(server.version)}" if server.version and width >= 100 else ""
    words = [ENGINES.get(server.engine or "", clean(server.engine or "unknown engine")) + version]
    words.append(clean((server.model or "").rstrip("/").rsplit("/", 1)[-1]))
    shape = [part for part in clean(server.shape or "").split(" · ") if not part.startswith("node ")]
    words += [" · ".join(shape)] if width >= 80 else []
    words += [age(view.now - server.started)] if server.started is not None else []
    return [*parts, *(((word, "headdim"),) for word in words if word)]


class NodeList(Pane):
    """The rows. The cursor stands on a node, not on a line: where the node goes, it goes."""

    TITLE = "Nodes"

    class Chosen(Message):
        """The cursor stands on another node; `opened`: and its board is wanted."""

        def __init__(self, place: int, *, opened: bool) -> None:
            self.place = place
            self.opened = opened
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="nodes")
        self.nodes: NodesView | None = None
        self.cursor = 0
        """Place of the node that it stands on."""
        self.moved = False
        """Until somebody moves it, it stands on the first line, which is the worst."""

    def take(self, nodes: NodesView) -> None:
        """Take new rows."""
        self.nodes = nodes
        if not self.moved:
            self.cursor = nodes.nodes[0].place

    def slice(self, view: LaunchView) -> object:  # noqa: ARG002  the view is of one node
        return self.nodes, self.cursor

    @property
    def line(self) -> int:
        """The line of the cursor, from 0."""
        nodes = self.nodes.nodes if self.nodes is not None else ()
        return next((line for line, node in enumerate(nodes) if node.place == self.cursor), 0)

    def aside(self, view: LaunchView, room: int) -> str:  # noqa: ARG002  the view is of one node
        counts = Counter(noderows.verdict(node)[0] for node in (self.nodes.nodes if self.nodes else ()))
        words = ""
        for word, count in counts.items():  # as they stand: the worst first
            more = f"{words} · " if words else ""
            if len(f"{more}{count} {word[2:].lower()}") > room:
                break
            words = f"{more}{count} {word[2:].lower()}"
        return words

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:  # noqa: ARG002  the view is of one node
        if self.nodes is None:
            return []
        nodes = self.nodes.nodes
        look = noderows.columns(nodes, width)
        room = self._room(height)
        self._scroll(room)
        shown = nodes[self.top : self.top + room]
        rows = [noderows.row(node, look, width, cursor=node.place == self.cursor) for node in shown]
        head = noderows.heading(look, width)
        above, below = self.top, len(nodes) - self.top - len(shown)
        lines = [fit(((f"  ▴ {above} more above", "dim"),), width) if above else head, *rows]
        if below or above:
            return [*lines, fit(((f"  ▾ {below} more below", "dim"),), width)]
        return [*lines, *glimpse(self.nodes.at(self.cursor), width, height - len(lines))]

    def _room(self, height: int) -> int:
        """Rows of nodes: the heading takes a line, and where not all fit, what is below takes one."""
        count = len(self.nodes.nodes) if self.nodes is not None else 0
        return max(1, height - 1 if count < height else height - 2)

    def _scroll(self, room: int) -> None:
        """Show the cursor."""
        count = len(self.nodes.nodes) if self.nodes is not None else 0
        self.top = max(0, min(self.top, count - room))
        self.top = min(max(self.top, self.line - room + 1), self.line)

    def _window(self, rows: list[Row], height: int) -> tuple[list[Row], str]:  # noqa: ARG002  the body is the window
        return rows, ""

    def move(self, lines: int) -> None:
        if self.nodes is not None:
            line = max(0, min(self.line + lines, len(self.nodes.nodes) - 1))
            self._choose(self.nodes.nodes[line].place)

    def go(self, *, end: bool) -> None:
        if self.nodes is not None:
            self._choose(self.nodes.nodes[-1 if end else 0].place)

    def _choose(self, place: int, *, opened: bool = False) -> None:
        self.cursor, self.moved = place, True
        self.post_message(self.Chosen(place, opened=opened))
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        line = self.top + event.y - 2
        room = self._room(self.size.height - 2)
        if self.nodes is not None and 2 <= event.y < 2 + room and line < len(self.nodes.nodes):
            self._choose(self.nodes.nodes[line].place, opened=True)

    def chosen(self) -> str:
        """What copying takes: all rows."""
        nodes = self.nodes.nodes if self.nodes is not None else ()
        look = noderows.columns(nodes, 200)
        return plain([noderows.heading(look, 200), *(noderows.row(node, look, 200, cursor=False) for node in nodes)])


def glimpse(node: NodeView, width: int, height: int) -> list[Row]:
    """The end of a node's log, where all rows leave room for it."""
    lines = node.view.lines
    if height < GLIMPSE or lines.end <= lines.first:
        return []
    ranks = max((cells(clean(rank)) for rank in node.ranks), default=0)
    look = Look(rank_width=min(10, ranks))
    kept = lines.slice(max(lines.first, lines.end - height + 2), lines.end)
    log = clean(node.view.server.log or "") if node.view.server else ""
    head = rule(f"{clean(node.host)} · {log}" if log else clean(node.host), width)
    return [(), head, *(row for line in kept for row in entry(line, width, look))]


class NodesScreen(Viewing, inherit_bindings=False):
    """The overview."""

    AUTO_FOCUS = "#nodes"
    KEYS = ("open", "stacks", "diagnose", "collectives", "down", "up", "pause", "help", "quit")
    HINTS = True

    def __init__(self) -> None:
        super().__init__(id="_default")
        self.header = NodesHeader(id="header")
        self.list = NodeList()
        self.parts: tuple[Painted, ...] = (self.header, Banner(id="banner"), self.list, Footer(id="footer"))
        self.main = Board(*self.parts)

    def compose(self) -> ComposeResult:
        yield self.main

    @property
    def pane(self) -> Pane:
        return self.list

    def take(self, nodes: NodesView) -> None:
        """What is shown next."""
        self.header.nodes = nodes
        self.list.take(nodes)

    def show(self, view: LaunchView) -> None:
        """The view is that of the whole launch."""
        self.main.settle(needs(view, self.size.width, self.size.height), self.list.id)
        for part in self.parts:
            if part.id in self.main.placed:
                part.show(view)
