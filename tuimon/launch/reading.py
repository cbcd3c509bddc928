"""Reads one launch's log: bytes in, what they tell out.

The engine is taken from the process where there is one, else from the first line that only one engine writes; the lines
before it are then read again.
"""

from __future__ import annotations

import re

from tuimon.engines import bars, prefix
from tuimon.engines.grammar import Library, in_use
from tuimon.launch import facts
from tuimon.launch.clock import LogClock
from tuimon.launch.events import LogReset, ServerFound
from tuimon.launch.fold import Fold, Voice
from tuimon.launch.gaps import Gaps
from tuimon.launch.logbook import MOST_LINES, PLAIN, Entry, Logbook, Note, Window, plain
from tuimon.launch.segments import Segment, Splitter
from tuimon.launch.timeline import natural
from tuimon.launch.told import Told

HEALTH_PATHS = (
    "/health", "/health_generate", "/ping", "/ready", "/model_info", "/get_model_info", "/v1/models", "/metrics",
)  # fmt: skip
"""Paths whose access lines are answers to questions like ours, so no sign of life."""
UP = "this node is up and waits for the first node, which serves"
_UNDECIDED = 3000  # lines that are read again once the engine is known
_LOOKED_AT = 20  # newest lines that are searched for a time
_RESETS = {
    "rotated": "the log was rotated", "truncated": "the log was cut off and begins anew",
    "relaunched": "a new launch writes here", "skipped": "not read", "reconnected": "the link was lost",
}  # fmt: skip


class Reading:
    """What one launch's log has told so far. Not for several threads; what it gives out is frozen."""

    def __init__(
        self,
        grammars: Library | None = None,
        own_clock: bool = False,
        gaps: Gaps | None = None,
        most_lines: int = MOST_LINES,
    ) -> None:
        """`own_clock`: a log from anywhere, whose instants are its own times; `gaps` looks for silences in it."""
        self._library = grammars if grammars is not None else in_use()
        self._own_clock = own_clock
        self._gaps = gaps
        self._most_lines = most_lines
        self.first: float | None = None
        """The first time in the log, by its own clock."""
        self._recognisers = [
            (re.compile(pattern.encode()), grammar)
            for grammar in self._library.grammars.values()
            for pattern in grammar.recognise
        ]
        self.begin(None, 0.0)

    def begin(self, server: ServerFound | None, at: float) -> None:
        """A launch begins at `at`; what its process tells (engine, arguments) is known before its log is."""
        self._server = server
        self._began = at
        self._splitter = Splitter()
        self._text_at: float | None = None
        self.clock = LogClock(self._own_clock)
        self._start(
            Voice(self._library, self._library.find(server.engine) if server else None), Logbook(self._most_lines)
        )
        self._early: list[tuple[Segment, float]] | None = [] if self.fold.grammar is None else None

    def _start(self, voice: Voice, book: Logbook) -> None:
        self._voice = voice
        self.fold = Fold(voice, self.clock, book)
        if self._server is not None and self._server.argv:
            self.fold.learn(facts.from_argv(self._server.argv))

    def feed(self, text: bytes, at: float, written: float | None = None) -> None:
        """Take in bytes that arrived at `at`; `written` = when the last of them was written, where that was earlier
        (the log's mtime on tuimon's clock, when we come late)."""
        segments = self._splitter.feed(text)
        self._times(segments, at, written)
        when = at if written is None else min(at, written)
        if text.strip():
            self._text_at = when
        self._take(segments, when)
        self._pending(when)

    def finish(self, at: float) -> None:
        """The log ends here: the unfinished last line counts as a line."""
        segments = self._splitter.flush()
        self._times(segments, at, None)
        self._take(segments, at)

    def reset(self, event: LogReset) -> None:
        """The next text does not continue the last."""
        self.finish(event.at)
        skipped = f", {event.skipped:,} bytes not seen" if event.skipped else ""
        self.fold.book.gap(f"{_RESETS[event.why]}{skipped}", event.at)
        if event.skipped:
            self.fold.timeline.hidden = True

    def _take(self, segments: list[Segment], at: float) -> None:
        if self._early is not None:
            self._decide(segments, at)
        self.fold.lines(segments, at)
        if self.fold.relaunched:
            self._again()

    def _decide(self, segments: list[Segment], at: float) -> None:
        """While the engine is unknown: look who writes like this, then read what came before again."""
        early = self._early
        if early is None:
            return
        grammar = next(
            (
                grammar
                for line, _ in segments
                for pattern, grammar in self._recognisers
                if pattern.search(line)
            ),
            None,
        )  # fmt: skip
        if grammar is not None:
            self._early = None
            self._start(Voice(self._library, grammar), Logbook(self._most_lines))
            for segment, then in early:
                self.fold.lines((segment,), then)
            return
        early.extend((segment, at) for segment in segments)
        if len(early) > _UNDECIDED:
            early.clear()

    def _again(self) -> None:
        """A second launch writes into the same file (`>>`): the state begins anew, the lines stay."""
        old = self.fold
        self._start(self._voice, old.book)
        self.fold.learn(old.facts)
        self.fold.version, self.fold.life, self.fold.news = old.version, old.life, old.news

    def _times(self, segments: list[Segment], at: float, written: float | None) -> None:
        """What the times in these lines say: only the newest line counts, and where silences are looked for, all."""

        def stamp(line: bytes) -> float | None:
            return self.clock.resolve(prefix.parse(line)[1], at)

        if not segments and not self._own_clock:
            self.clock.arrive(at, None, written)
            return
        if self._own_clock and self.first is None:
            self.first = next((time for time in (stamp(line) for line, _ in segments) if time is not None), None)
        newest = (stamp(line) for line, _ in reversed(segments[-_LOOKED_AT:]))
        self.clock.arrive(at, next((time for time in newest if time is not None), None), written)
        if self._gaps is not None:
            self._gaps.see(segments, stamp)

    def _pending(self, at: float) -> None:
        """The unfinished last line: a bar that is redrawn without a line end must not wait for one."""
        text = self._splitter.pending
        bar = bars.parse(text) if text else None
        if bar is not None and bar.end == len(text) and self.fold.redraw(bar, self.fold.matcher.find(text), at):
            self.fold.life, self.fold.news = (at, text), at

    def lines(self) -> Window:
        """A frozen window over the lines: take it where the log is read, read it on any thread."""
        text = self._splitter.pending
        if not text:
            return self.fold.book.window()
        bar = bars.parse(text)
        note = Note("progress", bar=bar.name or "·") if bar else PLAIN
        pending: Entry = (text[:4096], self._text_at or 0.0, note)
        return self.fold.book.window(pending)

    def _is_up(self) -> bool:
        """A node that follows has done all that it does before the first node is ready."""
        fold, told = self.fold, self.fold.facts
        return fold.ready is None and told is not None and told.follows and fold.timeline.only_ready_is_left()

    def told(self, now: float) -> Told:
        """What is known at `now`."""
        fold, server, told = self.fold, self._server, self.fold.facts
        timeline, failures, up = fold.timeline, fold.failures, self._is_up()
        (phase, running, since), instant = timeline.phase(), self.clock.instant
        return Told(
            engine=fold.grammar.title if fold.grammar else (server.engine if server else None),
            version=fold.version or (server.version if server else None),
            model=(told.model if told else None) or (server.model if server else None),
            shape=told.shape if told else None,
            ranks=tuple(sorted(fold.ranks, key=natural)),
            ranks_expected=told.ranks if told else None,
            lines=fold.book.end,
            last_life=fold.life[0] if fold.life else None,
            last_life_text=plain(fold.life[1])[:300] if fold.life else None,
            last_news=fold.news,
            last_text=self._text_at,
            last_heartbeat=fold.heartbeat[0] if fold.heartbeat else None,
            heartbeat_text=plain(fold.heartbeat[1])[:300] if fold.heartbeat else None,
            phase=phase,
            phase_running=running,
            phase_since=instant(since) if since else None,
            phases=timeline.views(now, instant),
            missing=timeline.missing(),
            next_expected=timeline.next_expected() if fold.ready is None else None,
            laggards=timeline.laggards(now) if fold.ready is None else (),
            ready=instant(fold.ready) if fold.ready else None,
            ready_line=fold.ready_line[0] if fold.ready_line else None,
            last_tokens=fold.serving.last_tokens,
            serving=fold.serving.view(),
            useless_draft=fold.serving.useless_draft or fold.poor_draft,
            error=failures.error(),
            fatal=failures.fatal(),
            ended=instant(fold.ended) if fold.ended else None,
            allowed_wait=fold.wait or (UP if up else None),
            waits_outside=up or (fold.gated and fold.wait is not None),
            timers=tuple(timer for timer, _ in fold.timers.values()),
            milestones_hidden=told.quiet if told else False,
            serves=fold.grammar.serves if fold.grammar else True,
        )
