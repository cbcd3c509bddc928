"""What every part of the board is: a widget that keeps rows and repaints only the lines that differ.

Measured: a frame costs, a line does not (2.7 ms for one `Static.update`, 6.9 ms with its default layout), so these
widgets bypass renderables and the styles cache and give Textual strips they have kept.
"""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar, cast

from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.app import App
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tuimon.launch.view import LaunchView
from tuimon.ui.inks import Inks
from tuimon.ui.rows import Row, cells, fit, frame, plain


class Canvas(App[None]):
    """An app that has inks, and draws what is new."""

    inks: Inks

    def tick(self) -> None:
        """Draw what is new; nothing when nothing is."""

    def _fatal_error(self) -> None:
        """In our words: Textual's traceback shows the values of variables."""
        from tuimon.ui.fatal import sentence  # noqa: PLC0415  hardly ever wanted

        self.bell()
        self._exit_renderables.append(Text(sentence(self._exception)))
        self._close_messages_no_wait()


class Pressed(Message):
    """Something that stands for a key was clicked."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__()


class Painted(Widget):
    """A widget made of rows, drawn from the view."""

    DEFAULT_CSS = "Painted { width: 1fr; height: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self, *, id: str) -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.view: LaunchView | None = None
        self._key: object = None
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._painted = Size(0, 0)

    # What a part defines.

    def slice(self, view: LaunchView) -> object:
        """The part of the view that this widget shows: equal slices need no drawing."""
        raise NotImplementedError

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:
        """Rows for this size; before the first view there is none."""
        raise NotImplementedError

    # What it gets for that.

    def show(self, view: LaunchView) -> None:
        """Take a new view; repaints the lines that differ, nothing when the slice is equal."""
        self.view = view
        try:
            key = self.slice(view)
        except Exception:  # noqa: BLE001  painting fails in the same way, and says so in this part's place
            key = object()
        if key != self._key or self._painted != self.size:
            self._key = key
            self.redraw()

    def redraw(self) -> None:
        """Paint again from the view at hand and mark the lines that differ."""
        before, size = self._rows, self._painted
        self._repaint()
        if size != self.size:
            self.refresh()
            return
        changed = [y for y, row in enumerate(self._rows) if y >= len(before) or row != before[y]]
        if changed:
            self.refresh(*_stripes(changed, self.size.width))

    def forget(self) -> None:
        """The inks have changed: no strip can be kept."""
        self._rows, self._strips, self._painted = [], [], Size(0, 0)
        self.refresh()

    def _repaint(self) -> None:
        width, height = self.size
        rows = self._guarded(width, height)[:height]
        rows = [fit(row, width) for row in rows] + [fit((), width)] * (height - len(rows))
        same = self._painted == self.size
        old_rows, old_strips = (self._rows, self._strips) if same else ([], [])
        inks = cast("Canvas", self.app).inks
        self._strips = [
            old_strips[y] if y < len(old_rows) and old_rows[y] == row else strip_of(row, width, inks)
            for y, row in enumerate(rows)
        ]
        self._rows, self._painted = rows, self.size

    def _guarded(self, width: int, height: int) -> list[Row]:
        try:
            return self.paint(self.view, width, height)
        except Exception as error:  # noqa: BLE001  one bad pane must not take the screen (and the stall banner) with it
            return [((f"{self.id} cannot be drawn: {type(error).__name__}: {error}".replace("\n", " "), "bad"),)]

    def render_lines(self, crop: Region) -> list[Strip]:
        """The kept strips, without Textual's styles cache: these rows bring their own background."""
        if self._painted != self.size:
            self._repaint()
        strips = self._strips[crop.y : crop.bottom]
        if crop.x or crop.width != self.size.width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips


def strip_of(row: Row, width: int, inks: Inks) -> Strip:
    """A row in ink; neighbours of one ink become one segment."""
    return Strip([Segment("".join(t for t, _ in part), inks[ink]) for ink, part in groupby(row, lambda s: s[1])], width)


def _stripes(lines: list[int], width: int) -> list[Region]:
    stripes: list[Region] = []
    for y in lines:
        if stripes and stripes[-1].bottom == y:
            stripes[-1] = stripes[-1].grow((0, 0, 1, 0))
        else:
            stripes.append(Region(0, y, width, 1))
    return stripes


class Pane(Painted, can_focus=True):
    """A framed part of the board that can be focused, zoomed and scrolled."""

    TITLE: ClassVar[str] = ""
    ZOOMS: ClassVar[bool] = True
    """It is one of several on its screen."""

    def __init__(self, *, id: str) -> None:  # noqa: A002  Textual's own name
        super().__init__(id=id)
        self.top = 0
        self._more = 0

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        """Rows inside the frame; more than `height` of them can be scrolled."""
        raise NotImplementedError

    def title(self, view: LaunchView | None, width: int) -> str:  # noqa: ARG002  a pane may say more
        """What the frame says at the left."""
        return self.TITLE

    def aside(self, view: LaunchView, room: int) -> str:  # noqa: ARG002  a pane may say something
        """What the frame says at the right, in at most `room` cells."""
        return ""

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:
        """The frame and the body in it."""
        rows = self.body(view, width - 4, height - 2) if view is not None and height > 2 else []
        title = self.title(view, width)
        rows, shown = self._window(rows, height - 2)
        words = self.aside(view, width - 12 - cells(title) - len(shown)) if view is not None else ""
        ink = "focus" if self.has_focus else "line"
        return frame(rows, width, height, title, aside=f"{words}  {shown}".strip(), ink=ink)

    def _window(self, rows: list[Row], height: int) -> tuple[list[Row], str]:
        """The rows that are scrolled to, and which ones of how many they are (empty when all are shown)."""
        self._more = max(0, len(rows) - height)
        self.top = max(0, min(self.top, self._more))
        shown = f"{self.top + 1}–{self.top + height} of {len(rows)}" if self._more else ""
        return rows[self.top :], shown

    def move(self, lines: int) -> None:
        """Scroll by so many lines."""
        self.top = max(0, min(self.top + lines, self._more))
        self.redraw()

    def go(self, *, end: bool) -> None:
        """Scroll to one end."""
        self.top = self._more if end else 0
        self.redraw()

    def chosen(self) -> str:
        """What copying takes: everything the pane can show."""
        if self.view is None:
            return ""
        return plain(self.body(self.view, self.size.width - 4, 10_000))

    def on_click(self, event: events.Click) -> None:
        """Twice: what the key for zoom does."""
        if self.ZOOMS and event.chain == 2:
            self.post_message(Pressed("zoom"))

    def on_focus(self, _event: events.Focus) -> None:
        self.redraw()

    def on_blur(self, _event: events.Blur) -> None:
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)
