"""The app: takes the latest view four times a second, hands it to the screen, and does what keys ask.

It never waits for anything: the collector has its own thread, and the first frame comes before it is started.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.markup import escape
from textual.screen import Screen
from textual.theme import Theme

from tuimon.config import Settings
from tuimon.launch.lasting import age
from tuimon.launch.view import RED, LaunchView
from tuimon.ui import clipboard, endings, garbage, pressing, themes, title
from tuimon.ui.actions import ACTIONS, BY_ID, Action, harmless, keys_of, shown, with_keys
from tuimon.ui.banner import Banner
from tuimon.ui.boardscreen import BoardScreen
from tuimon.ui.doing import Doing
from tuimon.ui.errors import BadKeys
from tuimon.ui.footer import Footer
from tuimon.ui.inks import Inks
from tuimon.ui.pane import Canvas, Painted, Pressed
from tuimon.ui.pulse import Pulse
from tuimon.ui.reasons import reason
from tuimon.ui.viewing import Viewing
from tuimon.watch.watching import Asking, Calling, Watching

FRAME = 0.25
"""Seconds between looks at a view that does not call: frames cost, lines do not."""
CALLED = 0.5
"""The same where new views call: each look that finds nothing costs 0.03 % of a core."""
ANYWAY = 1.0
"""Seconds after which a frame is due without a new view: words that were said end, a pause gets older."""
SOON, SOON_FOR = 0.02, 10.0
"""Seconds between looks, and for how long, until the first data come: somebody waits for them."""
SAID = 5.0
"""Seconds that a message stays in the last line."""
LAST = 99
"""Importance in the footer of keys that only some screens have there."""
STILL = 5.0
"""Seconds without a new view (it is replaced each second) after which the collector itself is in doubt."""


def bindings(actions: Iterable[Action]) -> list[BindingType]:
    """The keys of a table of actions, for an app that has `press`."""
    return [
        Binding(",".join(action.keys), f"press('{action.id}')", action.word, show=False, id=action.id)
        for action in actions
    ]


class TuimonApp(Canvas, inherit_bindings=False):
    """A live monitor for one launch."""

    CSS_PATH = "tuimon.tcss"
    TITLE = "tuimon"
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, watching: Watching, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.watching = watching
        self.settings = settings
        self.actions = harmless(ACTIONS) if settings.read_only else ACTIONS
        self.view: LaunchView = watching.view
        self.frozen_at: float | None = None
        """When the screen was frozen, on `clock`; None = live."""
        self._clock = clock
        self._drawn: LaunchView | None = None
        self._seen: tuple[object, ...] = ()
        self._view_at = clock()
        self._said = ("", 0.0)
        self._title = ""
        self._pulse = Pulse(self.due, self._beat, SOON)
        self._ticked_at, self._busy = clock(), watching.busy
        self._asking = False
        self._restore: Callable[[], None] = lambda: None
        self._tty = not endings.terminal_gone()
        self._doing = Doing(self)
        self._complaints = self._load_themes()
        self.inks = Inks(self.current_theme, no_color=self.no_color)

    def _load_themes(self) -> list[str]:
        known, complaints = themes.load()
        for theme in known.values():
            self.register_theme(theme)
        wanted = self.settings.theme
        if wanted not in self.available_themes:
            complaints.append(f"there is no theme {wanted!r}; known: {', '.join(sorted(known))}")
            wanted = "tuimon-dark"
        if wanted in self.available_themes:
            self.theme = wanted
        return complaints

    # Beginning and end.

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice, but its driver for terminals is asleep until there is input."""
        usual = super().get_driver_class()
        if usual.__name__ != "LinuxDriver":
            return usual
        from tuimon.ui import driver  # noqa: PLC0415  where there is another, this one cannot be imported

        return driver.Driver

    def get_default_screen(self) -> Screen[None]:
        """The board."""
        return BoardScreen()

    def on_mount(self) -> None:
        self._restore = endings.watch_signals(self._leave, self.watching.stop)
        self.theme_changed_signal.subscribe(self, self._retheme)
        try:
            self.actions = with_keys(self.actions, self.settings.keys)
        except BadKeys as error:
            self._complaints.append(error.sentence())
        else:
            self.set_keymap({action.id: ",".join(action.keys) for action in self.actions})
            pressing.use(self.actions)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """The first frame is on the screen: now the network may be thought of."""
        if isinstance(self.watching, Calling):
            self.watching.on_view(self._pulse.hurry)
        self.watching.start()
        self._pulse.start()
        self.set_timer(SOON_FOR, self._settle)
        for complaint in self._complaints:
            self.say(complaint)
        self.tick()
        # A folder that cannot be watched is no reason to end; failures stay in the worker.
        self.run_worker(self._watch_themes(), group="themes", exit_on_error=False)

    def _beat(self) -> None:
        self.tick()
        if self._pulse.pause != SOON:
            self._pulse.pause = self._calm
        elif self.view.data_age is not None:
            self._settle()

    def _settle(self) -> None:
        """The first data are there, or nobody waits for them any more."""
        self._pulse.pause = self._calm
        garbage.settle()

    @property
    def _calm(self) -> float:
        return CALLED if isinstance(self.watching, Calling) and not self._unfinished else FRAME

    @property
    def _unfinished(self) -> bool:
        return isinstance(self.screen, Viewing) and self.screen.unfinished

    def _leave(self) -> None:
        self.call_later(self.exit)

    def on_unmount(self) -> None:
        self._pulse.stop()
        if self._driver is not None and self._title:
            self._driver.write(title.give_back())
        self._restore()

    # Drawing.

    def due(self) -> bool:
        """Whether a tick may have something to draw; asked again and again, so it costs nothing."""
        watching = self.watching
        if watching.view is not self._drawn or watching.busy is not self._busy:
            return True
        return self._unfinished or self._clock() - self._ticked_at >= ANYWAY

    def tick(self) -> None:
        """Draw what is new; nothing when nothing is."""
        self._ticked_at, self._busy = self._clock(), self.watching.busy
        try:
            self._draw()
            self._attend()
        except Exception as error:  # noqa: BLE001  whatever is wrong with one view, the next one may be drawn
            self._complain(f"drawing failed: {type(error).__name__}: {error}")
        if self._tty and endings.terminal_gone():
            self.exit()

    def on_resize(self) -> None:
        """Plan for the new size at once, also while the screen is frozen."""
        if self._seen:
            self.call_after_refresh(self.tick)

    def _attend(self) -> None:
        """Ask for a secret where the collector wants one."""
        watching = self.watching
        if isinstance(watching, Asking) and (watching.secret_wanted or self._asking):
            from tuimon.ui.secret import attend  # noqa: PLC0415  Input is only imported when it is used

            self._asking = watching.secret_wanted is not None
            attend(self.screen_stack, watching)

    def _complain(self, words: str) -> None:
        """Say it without drawing anything else: that is what has just failed."""
        self._said = (words, self._clock() + SAID)
        for footer in self.screen.query(Footer):
            footer.said = words
            footer.redraw()

    def _draw(self) -> None:
        now = self._clock()
        latest = self.watching.view
        if self.frozen_at is None and latest is not self.view:
            self.view, self._view_at = latest, now
        said = self._said[0] if now < self._said[1] else ""
        if self.frozen_at is None and now - self._view_at > STILL and self._drawn is not None:
            said = said or f"tuimon's own collector has said nothing for {age(now - self._view_at)}"
        paused = "" if self.frozen_at is None else f"PAUSED {age(now - self.frozen_at)} · {self.key('pause')} goes on"
        seen = (self.screen, self.size, said, paused, self.watching.busy, self.whole)
        if self.view is self._drawn and seen == self._seen and not self._unfinished:
            return
        self._drawn = self.view
        self._seen = seen
        self._show(said, paused)

    def _show(self, said: str, paused: str) -> None:
        screen = self.screen
        if not isinstance(screen, Viewing):
            return
        footer = screen.query_one_optional("#footer", Footer)
        if footer is None:  # a new screen is not composed before its first idle moment
            self._seen = ()
            self.call_after_refresh(self.tick)
            return
        actions = self._footer_actions()
        footer.said, footer.paused, footer.troubled = said, paused, self._troubled()
        footer.keys = tuple((a.id, shown(a.keys[0]), a.word, self.why(a) is None) for a in actions if a.keys)
        # What a screen of its own names first is what it is for.
        rank = {action.id: action.footer or (LAST if place else 0) for place, action in enumerate(actions)}
        footer.order = tuple(sorted(rank, key=rank.__getitem__))
        if screen.HINTS:
            screen.query_one("#banner", Banner).keys = self._banner_keys(self.shown_on(screen))
        screen.show(self.shown_on(screen))
        self._write_title()

    def _troubled(self) -> str:
        count = len(self.whole.own_errors)
        if not count:
            return ""
        return f"▲ {'own error' if count == 1 else f'{count} own errors'}: {self.key('findings')}"

    def _footer_actions(self) -> list[Action]:
        if isinstance(self.screen, Viewing) and self.screen.KEYS:
            return [self.by_id(name) for name in self.screen.KEYS]
        return [action for action in self.actions if action.footer]

    def _banner_keys(self, view: LaunchView) -> tuple[tuple[str, str, str], ...]:
        if view.verdict.state not in RED:
            return ()
        asks = [action for action in self.actions if action.group == "Ask the host" and action.footer]
        return tuple((a.id, shown(a.keys[0]), a.word) for a in asks if a.keys and self.why(a) is None)

    def _write_title(self) -> None:
        words = title.words(self.whole)
        if words != self._title and self._driver is not None:
            first = "" if self._title else title.KEEP
            self._title = words
            self._driver.write(first + title.sequence(words))

    async def _watch_themes(self) -> None:
        """Take changed theme files at once; only where the user has a folder for them (watchfiles costs 50 ms)."""
        folder = themes.folders()[-1]
        if not folder.is_dir():
            return
        from watchfiles import awatch  # noqa: PLC0415  see above

        async for _changes in awatch(folder, debounce=200):
            known, complaints = themes.load()
            for theme in known.values():
                self.register_theme(theme)
            for complaint in complaints:
                self.say(complaint)
            if self.theme in known:
                self.refresh_css(animate=False)
                self._retheme(known[self.theme])

    def _retheme(self, theme: Theme) -> None:
        self.inks = Inks(theme, no_color=self.no_color)
        for screen in self.screen_stack:
            for part in screen.query(Painted):
                part.forget()

    @property
    def whole(self) -> LaunchView:
        """What the terminal's title tells of."""
        return self.view

    def shown_on(self, screen: Viewing) -> LaunchView:  # noqa: ARG002  several hosts have another on each
        """The view that a screen is shown."""
        return self.view

    @property
    def board(self) -> BoardScreen | None:
        """The board that keys of the log and the panes work on."""
        first = self.screen_stack[0]
        return first if isinstance(first, BoardScreen) else None

    # Keys.

    def by_id(self, name: str) -> Action:
        """An action with the user's keys."""
        return next((action for action in self.actions if action.id == name), BY_ID[name])

    def key(self, name: str) -> str:
        """The first key of an action, as people read it."""
        return (keys_of(self.by_id(name)).split() or ["?"])[0]

    def action_press(self, name: str) -> None:
        """Do an action of the table, or say why it cannot be done."""
        why = self.why(self.by_id(name))
        if why is not None:
            self.say(f"{self.by_id(name).word}: {why}")
            return
        try:
            self.perform(name)
        except Exception as error:  # noqa: BLE001  a key must not end the watch
            self.say(f"{self.by_id(name).word} failed: {type(error).__name__}: {error}")
        self.tick()

    def why(self, action: Action) -> str | None:
        """Why an action cannot be done now; None = it can."""
        return reason(action, self.view)

    def perform(self, name: str) -> None:
        """Do it."""
        self._doing.do(name)

    def on_pressed(self, message: Pressed) -> None:
        self.action_press(message.action)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:  # noqa: ARG002  Textual's
        """The palette: all of our actions, and the choice of a theme."""
        for action in self.actions:
            why = self.why(action)
            words = f"{keys_of(action)} · {why or action.help}"
            yield SystemCommand(action.word, escape(words), partial(self.action_press, action.id))
        yield SystemCommand("theme", "Choose another theme", self.action_change_theme)

    def say(self, words: str) -> None:
        """Show one line for a few seconds."""
        self._said = (words, self._clock() + SAID)
        if self._seen:
            self.call_later(self.tick)

    def copy_to_clipboard(self, text: str) -> None:
        """Over ssh and through tmux."""
        self._clipboard = text
        self.send(clipboard.sequence(text))

    def send(self, sequence: str) -> None:
        """Send a bell or a notification to the terminal; from any thread."""
        if self._driver is not None:
            self._driver.write(sequence)

    def freeze(self) -> None:
        """Hold the screen, or let it go on."""
        self.frozen_at = self._clock() if self.frozen_at is None else None
        self._view_at = self._clock()
