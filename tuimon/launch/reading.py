"""Reads one launch's log: bytes in, what they tell out.

One line goes: segment → rule → timeline, failures, serving, logbook. The engine is taken from the process where there is
one, else from the first line that only one engine writes; the lines before it are then read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tuimon.engines import bars, prefix
from tuimon.engines.bars import Bar
from tuimon.engines.grammar import Grammar, Library, ready, shipped
from tuimon.engines.matching import Found, Matcher
from tuimon.engines.prefix import Prefix
from tuimon.launch import expectations, facts
from tuimon.launch.clock import LogClock, Moment
from tuimon.launch.events import LogReset, ServerFound
from tuimon.launch.failures import Failures
from tuimon.launch.logbook import PLAIN, Entry, Logbook, Note, Window, plain, shown_severity
from tuimon.launch.segments import Segment, Splitter
from tuimon.launch.served import Serving
from tuimon.launch.timeline import ALONE, Timeline, natural
from tuimon.launch.told import Timer, Told

HEALTH_PATHS = (
    "/health",
    "/health_generate",
    "/ping",
    "/ready",
    "/model_info",
    "/get_model_info",
    "/v1/models",
    "/metrics",
)
"""Paths whose access lines are answers to questions like ours, so no sign of life."""
_UNDECIDED = 3000  # lines that are read again once the engine is known
_BARRIERS = {"sglang": 480.0}  # s that the first rank waits behind its load; 300 before 0.5.6


class Reading:
    """What one launch's log has told so far. Not for several threads; what it gives out is frozen."""

    def __init__(self, grammars: Library | None = None, own_clock: bool = False) -> None:
        self._library = grammars if grammars is not None else shipped()
        self._own_clock = own_clock
        self._recognisers = [
            (re.compile(pattern.encode()), grammar)
            for grammar in self._library.grammars.values()
            for pattern in grammar.recognise
        ]
        self._server: ServerFound | None = None
        self._grammar: Grammar | None = None
        self._splitter = Splitter()
        self._start()

    def begin(self, server: ServerFound | None, at: float) -> None:
        """A launch begins; what the process tells (engine, arguments) is known before its log is."""
        self._server = server
        self._splitter = Splitter()
        self._grammar = self._library.find(server.engine) if server else None
        self._start()
        self._began = at

    def _start(self) -> None:
        self._matcher = Matcher(ready(self._library.rules(self._grammar)))
        self._clock = LogClock(self._own_clock)
        self._book = Logbook()
        self._timeline = Timeline(self._library.phases(self._grammar))
        self._failures = Failures()
        self._serving = Serving()
        self._early: list[tuple[bytes, int, float]] | None = [] if self._grammar is None else None
        self._began = 0.0
        self._facts: facts.Facts | None = None
        self._version: str | None = None
        self._names: dict[int, str] = {}
        self._ranks: set[str] = set()
        self._life: tuple[float, bytes] | None = None
        self._text_at: float | None = None
        self._heartbeat: tuple[float, bytes] | None = None
        self._pending_seen: tuple[float, float] | None = None
        self._ready: tuple[float, int, int] | None = None
        self._ended: float | None = None
        self._finished = False
        self._wait: str | None = None
        self._timers: dict[str, Timer] = {}
        self.timings: str | None = None
        """The engine's own "startup timings" line."""
        self.error_lines: dict[int, int] = {}
        if self._server is not None and self._server.argv:
            self._learn(facts.from_argv(self._server.argv))
        else:
            self._expect()

    # --- text ---------------------------------------------------------------------------------------------------------

    def feed(self, text: bytes, at: float, written: float | None = None) -> None:
        """Take in bytes that arrived at `at`; `written` = when the last of them was written, where that was earlier
        (the log's mtime on tuimon's clock, when we come late)."""
        segments = self._splitter.feed(text)
        self._clock.arrive(at, self._newest(segments, at), written)
        when = at if written is None else min(at, written)
        if text.strip():
            self._text_at = when
        self._lines(segments, when)
        self._pending(when)

    def finish(self, at: float) -> None:
        """The log ends here: the unfinished last line counts as a line."""
        self._lines(self._splitter.flush(), at)

    def reset(self, event: LogReset) -> None:
        """The next text does not continue the last."""
        self.finish(event.at)
        why = {
            "rotated": "log was rotated", "truncated": "log was cut off and begins anew",
            "relaunched": "a new launch writes here", "skipped": "not read", "reconnected": "link was lost",
        }[event.why]  # fmt: skip
        skipped = f", {event.skipped:,} bytes not seen" if event.skipped else ""
        self._book.gap(f"{why}{skipped}", event.at)

    def _newest(self, segments: list[Segment], at: float) -> float | None:
        """The stamp of the newest of these lines that has one; looks at the last few only."""
        for line, _ in reversed(segments[-20:]):
            parts = prefix.parse(line)
            if parts.stamp is not None:
                return self._clock.resolve(parts, at)
        return None

    def _lines(self, segments: list[Segment], at: float) -> None:
        for line, number in segments:
            self._line(line, number, at)

    def _line(self, line: bytes, number: int, at: float) -> None:
        if self._early is not None and self._undecided(line, number, at):
            return
        matcher = self._matcher
        candidates, is_bar = matcher.shape(line)
        if is_bar:
            bar = bars.parse(line)
            if bar is not None:
                self._bar(line, bar, number, at)
                return
        if self._failures.waiting:
            parts = prefix.parse(line)
            if self._failures.inside(parts, self._book.end, at, matcher, line):
                self._cause(line, number, at, parts)
                return
        found = matcher.run(line, candidates) if candidates else None
        if found is None:
            self._book.add(line, at)
            self._life = (at, line)
            return
        self._found(line, found, number, at)

    # --- lines that mean something ------------------------------------------------------------------------------------

    def _found(self, line: bytes, found: Found, number: int, at: float) -> None:
        rule, parts = found.rule, found.prefix
        rank = self._rank(parts)
        severity = shown_severity(rule.severity)
        ours = rule.role == "probe"
        place = self._book.add(line, at, Note(severity, rule.name, rank or parts.process, ours))
        if not ours and rule.role != "heartbeat":
            self._life = (at, line)
        if severity in {"error", "fatal"}:
            self.error_lines.setdefault(place, number)
            if not ours:
                self._failures.line(found, place, at)
            if self._failures.fatal() is not None and self._ended is None:
                self._timeline.fail()
        role = rule.role
        if role is not None:
            act = self._ACTS.get(role)
            if act is not None:
                act(self, found, place, number, at)
        if rule.phase is not None and self._ready is None:
            self._mark(found, rank or ALONE, self._clock.moment(at, self._clock.resolve(parts, at)))
            if severity == "milestone":
                self._failures.went_on()

    def _cause(self, line: bytes, number: int, at: float, parts: Prefix) -> None:
        """The exception line of a traceback."""
        found = self._matcher.find(line)
        if found is not None and found.rule.role == "ended":
            self._end(found, 0, 0, at)
        name = found.rule.name if found is not None else "traceback"
        place = self._book.add(line, at, Note("error", name, self._rank(parts) or parts.process))
        self.error_lines[place] = number
        self._life = (at, line)

    def _bar(self, line: bytes, bar: Bar, number: int, at: float) -> None:
        found = self._matcher.find(line[: bar.end])
        moment = self._clock.moment(at, None)
        phase = self._phase_of_bar(found)
        news = self._timeline.bar(phase, bar, at, moment)
        before = line[: bar.start].strip()
        self._book.add(line[: bar.end], at, Note("progress", found.rule.name if found else None, bar=bar.name or phase))
        if news:
            self._life = (at, line[: bar.end])
        rest = line[bar.end :]
        if rest.strip() and not before:
            # Other processes write right behind a bar that is being redrawn.
            self._line(rest, number, at)

    def _phase_of_bar(self, found: Found | None) -> str:
        rule = found.rule if found else None
        current, running, _ = self._timeline.phase()
        if rule is not None and rule.phase is not None:
            if rule.again is not None and self._draft and rule.phase != current and current == rule.again:
                return rule.again
            return rule.phase
        return current if current is not None and running else "progress"

    def _mark(self, found: Found, rank: str, moment: Moment) -> None:
        rule = found.rule
        name = rule.phase
        if name is None:
            return
        if rule.again is not None and self._draft:
            phase = self._timeline.phases.get(name)
            if phase is not None and (
                rank in phase.ended or (rule.mark == "end" and self._timeline.began(rule.again, rank))
            ):
                name = rule.again
        if rule.per_rank:
            words = found.prefix.message.split(b".")[0][:60].decode("utf-8", "replace")
            self._timeline.per_rank(f"{words} ({name})" if name == rule.again else words, rank, moment.at)
        if name:
            self._timeline.mark(name, rule, rank, moment, found.number("seconds"))

    @property
    def _draft(self) -> bool:
        """A second load would be the draft model's; also where nobody told the arguments."""
        return self._facts is None or self._facts.draft

    def _rank(self, parts: Prefix) -> str | None:
        rank = parts.rank
        if parts.pid is not None:
            # One vLLM worker prints under three names: its pid tells who it is.
            if rank is not None:
                self._names[parts.pid] = rank
            rank = rank or self._names.get(parts.pid)
        if rank is not None and len(self._ranks) < 4096:
            self._ranks.add(rank)
        return rank

    # --- what roles do ------------------------------------------------------------------------------------------------

    def _arguments(self, found: Found, _place: int, _number: int, _at: float) -> None:
        self._version = found.text("version") or self._version
        told = facts.from_log(found.prefix.message.decode("utf-8", "replace"))
        if told is None:
            return
        if self._facts is not None:
            told = facts.Facts({**self._facts.values, **told.values}, "log")
        self._learn(told)

    def _learn(self, told: facts.Facts | None) -> None:
        self._facts = told
        self._expect()

    def _expect(self) -> None:
        engine = self._grammar.engine if self._grammar else None
        self._timeline.expected = expectations.expected(
            engine, self._facts, self._grammar.expect if self._grammar else ()
        )
        self._timeline.ranks = self._facts.ranks if self._facts else None
        self._timeline.hidden = self._facts.quiet if self._facts else False

    def _named(self, found: Found, _place: int, _number: int, _at: float) -> None:
        self._version = found.text("version") or self._version

    def _is_ready(self, found: Found, place: int, number: int, at: float) -> None:
        if self._ready is not None:
            return
        moment = self._clock.moment(at, self._clock.resolve(found.prefix, at))
        self._mark(found, ALONE, moment)
        self._timeline.close(moment)
        self._failures.went_on()
        self._wait = None
        self._timers.clear()
        self._ready = (self._clock.instant(moment), place, number)

    def _end(self, found: Found, _place: int, _number: int, at: float) -> None:
        if self._ended is None and self._failures.fatal() is None:
            self._ended = self._clock.instant(self._clock.moment(at, None))
            self._finished = found.rule.role == "finished"
            self._failures.closed = True

    def _waits(self, found: Found, _place: int, _number: int, _at: float) -> None:
        self._wait = plain(found.prefix.message)[:160]

    def _beat(self, found: Found, _place: int, _number: int, at: float) -> None:
        self._heartbeat = (at, found.prefix.message)

    def _serves(self, found: Found, _place: int, _number: int, at: float) -> None:
        self._serving.line(found, at)

    def _times(self, found: Found, _place: int, _number: int, _at: float) -> None:
        self.timings = found.text("timings")

    def _barrier(self, found: Found, _place: int, _number: int, at: float) -> None:
        seconds = _BARRIERS.get(self._grammar.engine) if self._grammar else None
        if seconds is None or (self._facts.ranks if self._facts else 1) == 1:
            return
        phase = self._timeline.phases.get("weights")
        ranks = self._timeline.ranks or 1
        if phase is not None and len(phase.ended) + 1 >= ranks:
            self._timers.pop("load barrier", None)
        else:
            consequence = "ends the ranks that wait for the slow one"
            self._timers.setdefault("load barrier", Timer("load barrier", at, seconds, consequence))

    _ACTS: dict[str, Callable[[Reading, Found, int, int, float], None]] = {
        "args": _arguments, "version": _named, "ready": _is_ready, "ended": _end, "finished": _end, "wait": _waits,
        "heartbeat": _beat, "serving": _serves, "tokens": _serves, "speculation": _serves, "timings": _times,
        "barrier": _barrier,
    }  # fmt: skip

    # --- which engine -------------------------------------------------------------------------------------------------

    def _undecided(self, line: bytes, number: int, at: float) -> bool:
        """While the engine is unknown; True where the lines so far, this one included, were read again."""
        early = self._early
        if early is None:
            return False
        early.append((line, number, at))
        for pattern, grammar in self._recognisers:
            if pattern.search(line):
                self._grammar = grammar
                began = self._began
                clock = self._clock
                self._start()
                self._began, self._clock = began, clock
                for one in early:
                    self._line(*one)
                return True
        if len(early) >= _UNDECIDED:
            self._early = []
        return False

    # --- out ----------------------------------------------------------------------------------------------------------

    def _pending(self, at: float) -> None:
        """The unfinished last line: a bar that is redrawn without a line end must not wait for one."""
        text = self._splitter.pending
        bar = bars.parse(text) if text else None
        if bar is None or bar.end != len(text):
            return
        found = self._matcher.find(text)
        if self._timeline.bar(self._phase_of_bar(found), bar, at, self._clock.moment(at, None)):
            self._life = (at, text)

    def lines(self) -> Window:
        """A frozen window over the lines, safe on other threads."""
        text = self._splitter.pending
        if not text:
            return self._book.window()
        bar = bars.parse(text)
        note = Note("progress", bar=bar.name) if bar else PLAIN
        pending: Entry = (text[:4096], self._text_at or 0.0, note)
        return self._book.window(pending)

    def told(self, now: float) -> Told:
        """What is known at `now`."""
        grammar, told_facts = self._grammar, self._facts
        phase, running, since = self._timeline.phase()
        instant = self._clock.instant
        server = self._server
        hidden = self._timeline.hidden
        return Told(
            engine=grammar.title if grammar else (server.engine if server else None),
            version=self._version or (server.version if server else None),
            model=(told_facts.model if told_facts else None) or (server.model if server else None),
            shape=told_facts.shape if told_facts else None,
            ranks=tuple(sorted(self._ranks, key=natural)),
            ranks_expected=told_facts.ranks if told_facts else None,
            lines=self._book.end,
            last_life=self._life[0] if self._life else None,
            last_life_text=plain(self._life[1])[:300] if self._life else None,
            last_text=self._text_at,
            last_heartbeat=self._heartbeat[0] if self._heartbeat else None,
            heartbeat_text=plain(self._heartbeat[1])[:300] if self._heartbeat else None,
            phase=phase,
            phase_running=running,
            phase_since=instant(since) if since else None,
            phases=self._timeline.views(now, instant),
            missing=self._timeline.missing(),
            next_expected=None if self._ready or hidden else self._timeline.next_expected(),
            laggards=self._timeline.laggards(now) if self._ready is None else (),
            ready=self._ready[0] if self._ready else None,
            ready_line=self._ready[1] if self._ready else None,
            last_tokens=self._serving.last_tokens,
            serving=self._serving.view(),
            useless_draft=self._serving.useless_draft,
            error=self._failures.error(),
            fatal=self._failures.fatal(),
            ended=self._ended,
            allowed_wait=self._wait,
            timers=tuple(self._timers.values()),
            milestones_hidden=hidden,
            serves=grammar.serves if grammar else True,
        )
