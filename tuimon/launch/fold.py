"""One launch's lines, one after another: rule → timeline, failures, serving, logbook."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tuimon.engines import bars, prefix
from tuimon.engines.bars import Bar
from tuimon.engines.grammar import Grammar, Library
from tuimon.engines.matching import Found, Matcher, Shape
from tuimon.engines.prefix import NONE, Prefix
from tuimon.engines.rule import DIGITS, Rule, RuleSeverity
from tuimon.launch import expectations, facts
from tuimon.launch.clock import LogClock, Moment
from tuimon.launch.facts import Facts
from tuimon.launch.failures import Failures
from tuimon.launch.logbook import Logbook, Note, plain, shown_severity
from tuimon.launch.refrains import Refrains
from tuimon.launch.segments import Segment
from tuimon.launch.served import Serving
from tuimon.launch.timeline import ALONE, Progress, Timeline
from tuimon.launch.told import Timer

_MOST_RANKS = 4096
_MOST_NOTES = 4096
_MOST_BARS = 64  # drawn in one line without an end between them
_LOOK_BACK = 100  # lines that are searched for a time
_LIFELESS = frozenset({"probe", "heartbeat"})  # roles of lines that are no sign of life


class Voice:
    """An engine's rules, ready to be applied; dear to make, so a relaunch takes over the old one."""

    def __init__(self, library: Library, grammar: Grammar | None) -> None:
        self.grammar = grammar
        self.matcher = Matcher(library.patterns(grammar))
        self.phases = library.phases(grammar)


class Fold:
    """The state that lines build up. Everything of one launch: a new launch gets a new fold."""

    def __init__(self, voice: Voice, clock: LogClock, book: Logbook) -> None:
        self.grammar = voice.grammar
        self.clock = clock
        self.book = book
        self.matcher = voice.matcher
        self.timeline = Timeline(voice.phases)
        self.failures = Failures()
        self.serving = Serving()
        self.facts: Facts | None = None
        self.version: str | None = None
        self.ranks: set[str] = set()
        self.life: tuple[float, bytes] | None = None
        """When the last line that counts as a sign of life came, and the line."""
        self.news: float | None = None
        """When the last such line came that was no refrain."""
        self._refrains = Refrains()
        self.heartbeat: tuple[float, bytes] | None = None
        self.ready: Moment | None = None
        self.ready_line: tuple[int, int] | None = None
        """(number in the logbook, line feeds before it)."""
        self.ended: Moment | None = None
        self.finished = False
        self.wait: str | None = None
        self.gated = False
        """That wait is for somebody outside."""
        self.timers: dict[str, tuple[Timer, str]] = {}
        """By name, with the phase whose end stops it."""
        self.timings: str | None = None
        self.file_lines: dict[int, int] = {}
        """Logbook number → line feeds before it, for lines of errors."""
        self.last_error = -1
        """Number of the last line that belongs to an error."""
        self.relaunched = False
        self._names: dict[int, str] = {}
        self._notes: dict[tuple[str, str | None, RuleSeverity], Note] = {}
        self._serving_rules: dict[str | None, str] = {}
        """By rank, the rule of its last line with numbers of requests."""
        self._other_bars: dict[str, Progress] = {}
        self.learn(None)

    # --- lines --------------------------------------------------------------------------------------------------------

    def lines(self, segments: Iterable[Segment], at: float) -> None:
        """Take in finished lines. This loop runs for each line of a log: what it does not need, it does not do."""
        known, learn = self.matcher.shapes, self.matcher.shape
        failures, add = self.failures, self.book.plain
        last = None
        for line, number in segments:
            shape = known.get(line.translate(None, DIGITS)) or learn(line)
            if not shape[0] and not shape[1] and not failures.waiting:
                add(line, at)
                last = line
            else:
                last = None
                self._special(line, number, at, shape)
        if last is not None:
            self._lives(last, at)

    def _lives(self, line: bytes, at: float) -> None:
        """A line counts as a sign of life; of a server that is ready nobody asks for news."""
        self.life = (at, line)
        if self.ready is not None or not self._refrains.is_one(line, at):
            self.news = at

    def _special(self, line: bytes, number: int, at: float, shape: Shape) -> None:
        bar = bars.parse(line) if shape[1] else None
        if bar is not None:
            self._bar(line, bar, number, at)
            return
        if self.failures.waiting and self.failures.inside(line, self.book.end, at, self.matcher):
            self._cause(line, number, at)
            return
        found = self.matcher.run(line, shape[0])
        if found is None:
            self.book.plain(line, at)
            self._lives(line, at)
        else:
            self._found(line, found, number, at)

    def _found(self, line: bytes, found: Found, number: int, at: float) -> None:
        rule, parts = found.rule, found.prefix
        rank = self._rank(parts) if parts is not NONE else None
        place = self.book.add(line, at, self._note(rule, rank or parts.process))
        role = rule.role
        if role not in _LIFELESS:
            self._lives(line, at)
        if rule.severity in {"error", "fatal"}:
            self._error(found, place, number, at)
        if role is not None:
            act = _ACTS.get(role)
            if act is not None:
                act(self, found, place, number, at)
        if self.ready is None and rule.phase is not None:
            self._mark(found, rule.phase, rank or ALONE, self._moment(parts, at))
        if rule.starts is not None:
            self._start_timer(rule, at)

    def _error(self, found: Found, place: int, number: int, at: float) -> None:
        self.file_lines.setdefault(place, number)
        self.last_error = place
        if found.rule.role != "probe":
            self.failures.line(found, place, at)
        if found.rule.severity == "fatal" and self.ended is None:
            self.timeline.fail()

    def _cause(self, line: bytes, number: int, at: float) -> None:
        """The exception line of a traceback."""
        _, parts = prefix.parse(line)
        found = self.matcher.find(line)
        name = found.rule.name if found is not None else "traceback"
        place = self.book.add(line, at, Note("error", name, self._rank(parts) or parts.process))
        self.file_lines[place] = number
        self.last_error = place
        self.life, self.news = (at, line), at
        if found is not None and found.rule.role == "ended":
            self.ends(found, place, number, at)
        elif self.failures.fatal() is not None and self.ended is None:
            self.timeline.fail()

    def _moment(self, parts: Prefix, at: float) -> Moment:
        """When a line was written; one without a time has that of the last line before it that has one."""
        stamp = self.clock.resolve(parts, at)
        if stamp is None and not self.clock.live:
            for line in self.book.newest(_LOOK_BACK):
                stamp = self.clock.resolve(prefix.parse(line)[1], at)
                if stamp is not None:
                    break
        return self.clock.moment(at, stamp)

    def _note(self, rule: Rule, rank: str | None) -> Note:
        severity: RuleSeverity = "info" if self._routine(rule, rank) else rule.severity
        note = self._notes.get((rule.name, rank, severity))
        if note is None:
            note = Note(shown_severity(severity), rule.name, rank, rule.role == "probe")
            if len(self._notes) < _MOST_NOTES:
                self._notes[rule.name, rank, severity] = note
        return note

    def _routine(self, rule: Rule, rank: str | None) -> bool:
        """Each request writes lines of serving: the first in the warm-up is a milestone, the first of a row warns."""
        if rule.role != "serving":
            return False
        if rule.phase is not None:
            return self.ready is not None or self.timeline.began(rule.phase, rank or ALONE)
        again = self._serving_rules.get(rank) == rule.name
        if again or len(self._serving_rules) < _MOST_RANKS:
            self._serving_rules[rank] = rule.name
        return again

    def _rank(self, parts: Prefix) -> str | None:
        rank = parts.rank
        if parts.pid is not None:
            # One vLLM worker prints under three names: its pid tells who it is.
            if rank is not None:
                self._names[parts.pid] = rank
            rank = rank or self._names.get(parts.pid)
        if rank is not None and len(self.ranks) < _MOST_RANKS:
            self.ranks.add(rank)
        return rank

    # --- bars ---------------------------------------------------------------------------------------------------------

    def _bar(self, line: bytes, bar: Bar, number: int, at: float) -> None:
        """A bar, and what other processes write right behind it while it is being redrawn: lines, or more bars."""
        for _ in range(_MOST_BARS):
            drawn, rest = line[: bar.end], line[bar.end :]
            found = self.matcher.find(drawn)
            if self.redraw(bar, found, at):
                self.life, self.news = (at, drawn), at
            self.book.add(drawn, at, Note("progress", found.rule.name if found else None, bar=bar.name or "·"))
            if not rest.strip():
                return
            following = bars.parse(rest)
            if following is None:
                self.lines(((rest, number),), at)
                return
            line, bar = rest, following

    def redraw(self, bar: Bar, found: Found | None, at: float) -> bool:
        """A bar was drawn; True where that shows progress. Also for the unfinished last line, which comes again."""
        phase = self._phase_of_bar(found.rule if found else None, bar)
        if phase is not None and self.ready is None:
            return self.timeline.bar(phase, bar, at, self._moment(NONE, at))
        known = self._other_bars.get(bar.name)
        if known is None or known.total != bar.total:
            if len(self._other_bars) > 256:
                self._other_bars.clear()
            self._other_bars[bar.name] = Progress(bar, at)
            return True
        return known.redraw(bar, at, max(2, self.timeline.ranks or 1))

    def _phase_of_bar(self, rule: Rule | None, bar: Bar) -> str | None:
        current, running, _ = self.timeline.phase()
        if rule is not None and rule.phase is not None:
            return rule.again if rule.again and self._draft and current == rule.again else rule.phase
        if current is not None and running:
            return current
        a_server = self.grammar is not None and self.grammar.serves
        return None if a_server or not bar.name else bar.name

    # --- what a line does ---------------------------------------------------------------------------------------------

    def _mark(self, found: Found, name: str, rank: str, moment: Moment) -> None:
        rule = found.rule
        timeline = self.timeline
        if rule.again is not None and self._draft:
            phase = timeline.phases.get(name)
            again = rule.mark == "end" and timeline.began(rule.again, rank)
            if phase is not None and (rank in phase.ended or again):
                name = rule.again
        if rule.per_rank:
            words = found.message.split(b".")[0][:60].decode("utf-8", "replace")
            timeline.per_rank(f"{words} ({name})" if name and name == rule.again else words, rank, moment.at)
        if name:
            timeline.mark(name, rule, rank, moment, found.number("seconds"))
        if rule.severity == "milestone":
            self.failures.went_on()
            if rule.role not in {"wait", "gate"}:
                self.wait = None
        for timer, (_, until) in list(self.timers.items()):
            if timeline.ended(until):
                del self.timers[timer]

    @property
    def poor_draft(self) -> bool:
        """A draft model, which is known to be one, is hardly ever right."""
        return self.facts is not None and self.facts.draft and self.serving.poor_draft

    @property
    def _draft(self) -> bool:
        """A second load would be the draft model's; also where nobody told the arguments."""
        return self.facts is None or self.facts.draft

    def _start_timer(self, rule: Rule, at: float) -> None:
        starts = rule.starts
        if starts is None or (self.ready is not None and starts.until != "none"):
            return
        until = starts.until or rule.phase or ""
        if not self.timeline.ended(until):
            timer = Timer(starts.name, at, starts.seconds, starts.consequence)
            self.timers.setdefault(starts.name, (timer, until))

    def learn(self, told: Facts | None) -> None:
        """What the launch was told to do, as far as known."""
        self.facts = told
        engine, grammar = self.grammar.engine if self.grammar else None, self.grammar
        self.timeline.expected = expectations.expected(engine, told, grammar.expect if grammar else ())
        self.timeline.ranks = told.ranks if told else None
        self.timeline.hidden = told.quiet if told else False

    def arguments(self, found: Found, _place: int, _number: int, _at: float) -> None:
        """An argument dump."""
        self.version = found.text("version") or self.version
        told = facts.from_log(found.message.decode("utf-8", "replace"))
        if told is None:
            return
        self.failures.went_on()
        if self.ready is not None or self.ended is not None or self.failures.fatal() is not None:
            self.relaunched = True
        known = self.facts.values if self.facts is not None else {}
        self.learn(Facts({**known, **told.values}, "log"))

    def named(self, found: Found, _place: int, _number: int, _at: float) -> None:
        """An engine names its version."""
        self.version = found.text("version") or self.version

    def is_ready(self, found: Found, place: int, number: int, at: float) -> None:
        """It serves from here on."""
        if self.ready is not None:
            return
        moment = self._moment(found.prefix, at)
        self._mark(found, found.rule.phase or "ready", ALONE, moment)
        self.timeline.close(moment)
        self.failures.went_on()
        self.wait = None
        self.timers.clear()
        self.ready, self.ready_line = moment, (place, number)

    def ends(self, found: Found, _place: int, _number: int, at: float) -> None:
        """A shutdown that was asked for, or training that is done."""
        if self.ended is None and self.failures.fatal() is None:
            self.ended = self._moment(found.prefix, at)
            self.finished = found.rule.role == "finished"
            self.failures.closed = True

    def waits(self, found: Found, _place: int, _number: int, _at: float) -> None:
        """A wait that the server calls legal."""
        self.gated = found.rule.role == "gate"
        self.wait = plain(found.message)[:160]

    def beats(self, found: Found, _place: int, _number: int, at: float) -> None:
        """Somebody waits and says so: no sign of life."""
        self.heartbeat = (at, found.message)

    def serves(self, found: Found, _place: int, _number: int, at: float) -> None:
        """Numbers of running requests."""
        self.serving.line(found, at)
        if self.ready is not None:
            self.failures.went_on()
            self.timers.clear()

    def times(self, found: Found, _place: int, _number: int, _at: float) -> None:
        """The engine's own startup timings."""
        self.timings = found.text("timings")


Act: TypeAlias = Callable[[Fold, Found, int, int, float], None]
_ACTS: dict[str, Act] = {
    "args": Fold.arguments, "version": Fold.named, "ready": Fold.is_ready, "ended": Fold.ends, "finished": Fold.ends,
    "wait": Fold.waits, "gate": Fold.waits, "heartbeat": Fold.beats, "serving": Fold.serves, "tokens": Fold.serves,
    "speculation": Fold.serves, "timings": Fold.times,
}  # fmt: skip
