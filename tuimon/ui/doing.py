"""What each action of the table does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.ui import clipboard
from tuimon.ui.board import PANES
from tuimon.ui.boardscreen import BoardScreen
from tuimon.ui.pane import Pane
from tuimon.ui.search import compiled
from tuimon.ui.sheet import SheetScreen
from tuimon.ui.sieve import Test, is_error, is_milestone, is_warning, says
from tuimon.ui.viewing import Viewing

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from tuimon.ui.app import TuimonApp
    from tuimon.watch.watching import Action as Asked


class Doing:
    """Actions by id; everything here returns at once."""

    def __init__(self, app: TuimonApp) -> None:
        self._app = app

    def do(self, name: str) -> None:
        """Do it."""
        if name.startswith("pane_"):
            self._on_board(lambda board: board.go_to(PANES[int(name[5:]) - 1]))
            return
        act: Callable[[], None] = getattr(self, f"_{name}")
        act()

    # Where.

    @property
    def _pane(self) -> Pane | None:
        screen = self._app.screen
        return screen.pane if isinstance(screen, Viewing) else None

    def _on_board(self, act: Callable[[BoardScreen], object]) -> None:
        """Do something on the board; from another screen go back to it first."""
        if isinstance(self._app.screen, SheetScreen):
            self._app.pop_screen()
        board = self._app.board
        if board is not None:
            act(board)

    # Asking the host.

    def _stacks(self) -> None:
        self._stacks_screen("stacks")

    def _stacks_screen(self, action: Asked) -> None:
        from tuimon.ui.stacks import StacksScreen  # noqa: PLC0415  first paint need not wait for it

        self._app.watching.ask(action)
        if not isinstance(self._app.screen, StacksScreen):
            self._open(StacksScreen(lambda: self._app.watching.busy))

    def _diagnose(self) -> None:
        self._report("diagnose")

    def _collectives(self) -> None:
        self._report("collectives")

    def _checkpoint(self) -> None:
        self._report("checkpoint")

    def _flight_recorder(self) -> None:
        self._question("flight_recorder", lambda: self._report("flight_recorder"))

    def _debug_server(self) -> None:
        self._question("debug_server", lambda: self._report("debug_server"))

    def _native(self) -> None:
        def look() -> None:
            self._stacks_screen("native")

        self._question("native", look)

    def _abort(self) -> None:
        self._app.watching.ask("aim")
        self._question("abort", lambda: self._report("abort"))

    def _report(self, action: Asked) -> None:
        """Ask for it and show its report as soon as it comes."""
        from tuimon.ui.reports import ReportScreen  # noqa: PLC0415  first paint need not wait for it

        self._app.watching.ask(action)
        screen = self._app.screen
        if not (isinstance(screen, ReportScreen) and screen.of == action):
            self._open(ReportScreen(action, lambda: self._app.watching.busy, self._app.key))

    def _question(self, action: Asked, yes: Callable[[], None]) -> None:
        """Show cost and risk first."""
        from tuimon.ui.question import QuestionScreen  # noqa: PLC0415  first paint need not wait for it

        self._open(QuestionScreen(action, self._app.view.now, yes))

    def _open(self, screen: SheetScreen) -> None:
        """Open a screen in place of the one that is open."""
        if isinstance(self._app.screen, SheetScreen):
            self._app.pop_screen()
        self._app.push_screen(screen)

    def _commands(self) -> None:
        from tuimon.ui.listings import CommandsScreen  # noqa: PLC0415  first paint need not wait for it

        self._push(CommandsScreen())

    def _findings(self) -> None:
        from tuimon.ui.listings import FindingsScreen  # noqa: PLC0415  first paint need not wait for it

        self._push(FindingsScreen())

    def _launches(self) -> None:
        from tuimon.ui.launches import LaunchesScreen  # noqa: PLC0415  first paint need not wait for it

        self._push(LaunchesScreen(self._app.watching, self._app.say, self._app.key("findings")))

    def _help(self) -> None:
        from tuimon.ui.listings import HelpScreen  # noqa: PLC0415  first paint need not wait for it

        self._push(HelpScreen(self._app.actions))

    def _push(self, screen: SheetScreen) -> None:
        """Open a screen; the key that opened it closes it again, and screens do not pile up."""
        current = self._app.screen
        if isinstance(current, SheetScreen):
            self._app.pop_screen()
            if type(current) is type(screen):
                return
        self._app.push_screen(screen)

    # The log.

    def _prompt(self, sign: str, words: str, take: Callable[[str], None]) -> None:
        self._on_board(lambda board: self._prompt_on(board, sign, words, take))

    def _prompt_on(self, screen: Screen[None], sign: str, words: str, take: Callable[[str], None]) -> None:
        from tuimon.ui.prompt import Prompt  # noqa: PLC0415  Input is only imported when it is used

        if not screen.query(Prompt):
            screen.mount(Prompt(sign, words, take))

    def _search(self) -> None:
        screen = self._app.screen
        if isinstance(screen, SheetScreen) and screen.NARROWS:
            self._prompt_on(screen, "/", "show only keys with this (empty: all)", screen.narrow)
        else:
            self._prompt("/", "search the log", self._searched)

    def _searched(self, text: str) -> None:
        def go(board: BoardScreen) -> None:
            if not board.log_pane.search(compiled(text)):
                self._app.say(f"nothing in the log matches {text!r}")

        self._on_board(go)

    def _filter(self) -> None:
        self._prompt("&", "only lines with this (!… without it; empty: all)", self._filtered)

    def _filtered(self, text: str) -> None:
        def go(board: BoardScreen) -> None:
            without = text.startswith("!")
            pattern = compiled(text[1:] if without else text)
            if pattern is None:
                board.log_pane.unsift()
            else:
                board.log_pane.sift(pattern=(pattern, without))

        self._on_board(go)

    def _lens(self) -> None:
        self._on_board(lambda board: board.log_pane.sift(lens=not board.log_pane.reader.lens))

    def _time(self) -> None:
        self._prompt("T", "go to a time: 15:46 or 15:46:58", self._timed)

    def _timed(self, text: str) -> None:
        def go(board: BoardScreen) -> None:
            clock = text.strip()
            if not board.log_pane.jump_to_time(f"0{clock}" if clock[1:2] == ":" else clock):
                self._app.say(f"no line of the log is at {clock!r} or later")

        self._on_board(go)

    def _next(self) -> None:
        self._hit(back=False)

    def _previous(self) -> None:
        self._hit(back=True)

    def _hit(self, *, back: bool) -> None:
        def go(board: BoardScreen) -> None:
            pattern = board.log_pane.reader.look.pattern
            if pattern is None:
                self._app.say(f"no search yet: {self._app.key('search')} begins one")
            else:
                self._jump(board, says(pattern), "no more hits", back=back)

        self._on_board(go)

    def _jump(self, board: BoardScreen, test: Test, words: str, *, back: bool) -> None:
        if board.log_pane.jump(test, back=back):
            return
        again = board.log_pane.jump(test, back=back, around=True)
        on = f": on from the {'end' if back else 'start'}" if again else ""
        self._app.say(f"{words} {'above' if back else 'below'}{on}")

    def _next_error(self) -> None:
        self._on_board(lambda board: self._jump(board, is_error, "no error line", back=False))

    def _previous_error(self) -> None:
        self._on_board(lambda board: self._jump(board, is_error, "no error line", back=True))

    def _next_warning(self) -> None:
        self._on_board(lambda board: self._jump(board, is_warning, "no warning or error", back=False))

    def _previous_warning(self) -> None:
        self._on_board(lambda board: self._jump(board, is_warning, "no warning or error", back=True))

    def _next_milestone(self) -> None:
        self._on_board(lambda board: self._jump(board, is_milestone, "no milestone", back=False))

    def _previous_milestone(self) -> None:
        self._on_board(lambda board: self._jump(board, is_milestone, "no milestone", back=True))

    def _follow(self) -> None:
        self._on_board(lambda board: board.log_pane.toggle_follow())

    def _wrap(self) -> None:
        self._on_board(lambda board: board.log_pane.change(wrap=not board.log_pane.reader.look.wrap))

    def _times(self) -> None:
        self._on_board(lambda board: board.log_pane.change(times=not board.log_pane.reader.look.times))

    def _copy(self) -> None:
        pane = self._pane
        text = pane.chosen() if pane is not None else ""
        if not text:
            self._app.say("nothing to copy here")
            return
        kept = clipboard.limited(text)
        self._app.copy_to_clipboard(kept)
        self._app.say(clipboard.sent(kept, cut=kept != text))

    def _save(self) -> None:
        from tuimon.ui.saving import save  # noqa: PLC0415  rarely used

        pane = self._pane
        if pane is None:
            return
        try:
            path = save(self._app.view, pane)
        except OSError as error:
            self._app.say(f"nothing was saved: {error}")
        else:
            self._app.say(f"saved: {path}")

    # Moving.

    def _move(self, lines: int) -> None:
        if self._pane is not None:
            self._pane.move(lines)

    def _page(self) -> int:
        return max(1, self._pane.size.height - 3) if self._pane is not None else 1

    def _down(self) -> None:
        self._move(1)

    def _up(self) -> None:
        self._move(-1)

    def _page_down(self) -> None:
        self._move(self._page())

    def _page_up(self) -> None:
        self._move(-self._page())

    def _top(self) -> None:
        if self._pane is not None:
            self._pane.go(end=False)

    def _end(self) -> None:
        if self._pane is not None:
            self._pane.go(end=True)

    def _next_pane(self) -> None:
        self._on_board(lambda board: board.step(1))

    def _previous_pane(self) -> None:
        self._on_board(lambda board: board.step(-1))

    def _zoom(self) -> None:
        self._on_board(lambda board: board.set_zoom(None if board.board.zoom else board.pane.id))

    # The screen.

    def _back(self) -> None:
        screen = self._app.screen
        if isinstance(screen, Viewing) and not screen.back() and len(self._app.screen_stack) > 1:
            self._app.pop_screen()

    def _pause(self) -> None:
        self._app.freeze()

    def _palette(self) -> None:
        self._app.action_command_palette()

    def _quit(self) -> None:
        self._app.exit()
