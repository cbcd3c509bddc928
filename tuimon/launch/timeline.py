"""The timeline of one launch: phases that came, run, are missing or still expected.

Begin and end are sets of ranks, not an order: phases of different versions come in different orders, and ranks drift.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tuimon.engines.bars import Bar
from tuimon.engines.rule import Rule
from tuimon.launch.clock import Moment
from tuimon.launch.expectations import Expected
from tuimon.launch.lasting import age
from tuimon.launch.ranks import in_short
from tuimon.launch.view import Missing, PhaseView, Suspect

ALONE = ""
"""Rank of a line that names none."""
_LATE = 3.0  # seconds after which a rank that lacks what its peers have is a suspect
Instant = Callable[[Moment], float]
"""A moment on tuimon's clock."""
_STALE = 5.0  # seconds by a bar's own clock without a change of its rate: tqdm's monitor drew it, not progress
_WINDOW = 60.0  # seconds over which a bar's rate is measured


class Progress:
    """A bar: its counter, how fast it moves, and which of its redraws say something new."""

    def __init__(self, bar: Bar, at: float) -> None:
        self.name = bar.name
        self.count = bar.count
        self.total = bar.total
        self.elapsed = bar.elapsed
        self._pace = bar.pace
        self._seen: dict[float, int] = {}
        self._moves: deque[tuple[float, float]] = deque([(at, bar.count)], maxlen=512)
        self._seen[bar.count] = 1

    def redraw(self, bar: Bar, at: float, writers: int) -> bool:
        """Take in a redraw; True where it shows that something moved.

        Several ranks may draw the same bar, so a count is news as often as there are writers; and each step is drawn
        twice by SGLang (description, then update).
        """
        times = self._seen.get(bar.count, 0)
        news = times == 0 or (times < writers and bar.count != self.count)
        if bar.pace == self._pace and bar.elapsed is not None and bar.elapsed - (self.elapsed or 0.0) > _STALE:
            news = False
        self._pace = bar.pace
        if len(self._seen) > 4096:
            self._seen = {bar.count: 0}
        self._seen[bar.count] = times + 1
        if bar.count > self.count:
            self._moves.append((at, bar.count))
        self.count, self.total, self.elapsed = bar.count, bar.total, bar.elapsed
        return news

    def rate(self) -> float | None:
        """Counts per second over the last minute of moves; by the bar's own clock where all came at once."""
        last, count = self._moves[-1]
        first, start = next(((at, n) for at, n in self._moves if last - at <= _WINDOW), self._moves[0])
        if last - first >= 1.0 and count > start:
            return (count - start) / (last - first)
        if self.elapsed and self.count:
            return self.count / self.elapsed
        return None

    def eta(self, now: float) -> float | None:
        """Seconds left; the time since the last move counts against it."""
        rate = self.rate()
        if not rate or self.count >= self.total:
            return None
        since = now - self._moves[-1][0]
        return max(0.0, (self.total - self.count) / rate - (since if since < _WINDOW else 0.0))


class Phase:
    """One phase: who began, who ended, and when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun: dict[str, Moment] = {}
        self.ended: dict[str, Moment] = {}
        self.first: Moment | None = None
        self.last: Moment | None = None
        self.per_rank = False
        self.failed = False
        self.closed = False
        self.seconds: float | None = None
        self.bar: Progress | None = None

    def mark(self, rule: Rule, rank: str, moment: Moment, seconds: float | None) -> None:
        """Take in a line of this phase."""
        if self.first is None:
            self.first = moment
        self.last = moment
        self.per_rank |= rule.per_rank
        if rule.mark == "begin":
            self.begun.setdefault(rank, moment)
            if rank in self.ended and rule.phase == self.name:
                del self.ended[rank]
        elif rule.mark == "end":
            self.begun.setdefault(rank, moment)
            self.ended[rank] = moment
            self.seconds = max(seconds, self.seconds or 0.0) if seconds is not None else self.seconds

    def done(self, ranks: int | None) -> bool:
        """Every rank that began has ended, and none of those expected is still to come."""
        if self.closed:
            return True
        if not self.ended or any(rank not in self.ended for rank in self.begun):
            return False
        tagged = sum(1 for rank in self.ended if rank != ALONE)
        return not (self.per_rank and ranks and tagged and tagged < ranks)

    def behind(self) -> str | None:
        """`TP5 not yet`: who is still in it while others have left it."""
        late = [rank for rank in self.begun if rank not in self.ended and rank != ALONE]
        return f"{in_short(late)} not yet" if late and self.ended else None


class Timeline:
    """All phases of a launch."""

    def __init__(self, order: tuple[str, ...] = ()) -> None:
        self._order = order
        self.expected: tuple[Expected, ...] = ()
        self.phases: dict[str, Phase] = {}
        self.ranks: int | None = None
        self.hidden = False
        """The log does not show everything (its level hides milestones, a part was skipped): nothing is missing."""
        self._marks: dict[str, dict[str, float]] = {}
        self.current: str | None = None

    def mark(self, name: str, rule: Rule, rank: str, moment: Moment, seconds: float | None = None) -> None:
        """A line of a phase came."""
        phase = self.phases.get(name)
        if phase is None:
            phase = self.phases[name] = Phase(name)
        phase.mark(rule, rank, moment, seconds)
        if phase.closed and not phase.done(self.ranks):
            phase.closed = False
        self._settle(name, moment)
        if rule.mark != "end" or self.current is None or not self._running(self.current) or self.current == name:
            self.current = name

    def began(self, name: str, rank: str) -> bool:
        """This rank has begun this phase."""
        phase = self.phases.get(name)
        return phase is not None and rank in phase.begun

    def per_rank(self, rule: str, rank: str, at: float) -> None:
        """A line that every rank writes."""
        if rank != ALONE:
            self._marks.setdefault(rule, {}).setdefault(rank, at)

    def bar(self, name: str, bar: Bar, at: float, moment: Moment) -> bool:
        """A redraw of a phase's bar; True where it shows progress."""
        phase = self.phases.get(name)
        if phase is None:
            phase = self.phases[name] = Phase(name)
        if phase.first is None:
            phase.first = moment
        if not phase.ended:
            self.current = name
        known = phase.bar
        if known is None or (known.name, known.total) != (bar.name, bar.total):
            # The same steps under a new name: tqdm draws a bar once before it gets its description.
            phase.bar = Progress(bar, at)
            return known is None or known.total != bar.total or known.count != bar.count
        return known.redraw(bar, at, max(2, self.ranks or 1))

    def close(self, moment: Moment) -> None:
        """Ready: what still runs has ended."""
        for phase in self.phases.values():
            if not phase.closed:
                phase.closed = True
                if not phase.ended:
                    phase.last = moment

    def fail(self) -> None:
        """The launch died: the running phase failed."""
        if self.current is not None and self._running(self.current):
            self.phases[self.current].failed = True

    def _running(self, name: str) -> bool:
        phase = self.phases.get(name)
        return phase is not None and not phase.done(self.ranks)

    def _settle(self, name: str, moment: Moment) -> None:
        """A later phase was marked: earlier ones in which no rank is still on its way have ended."""
        order = self._order if name in self._order else [part.phase for part in self.expected]
        for earlier in order[: order.index(name)] if name in order else ():
            phase = self.phases.get(earlier)
            if phase is None or phase.closed:
                continue
            open_ranks = any(rank not in phase.ended for rank in phase.begun)
            phase.closed = not (phase.per_rank and open_ranks)
            if phase.closed and not phase.ended:
                phase.last = moment

    def phase(self) -> tuple[str | None, bool, Moment | None]:
        """(name, running, since): the running phase, or the last one done."""
        if self.current is None:
            return None, False, None
        phase = self.phases[self.current]
        running = self._running(self.current)
        return self.current, running, phase.first if running else phase.last

    def _overtaken(self) -> list[Expected]:
        """Expected phases that did not come though a later one did."""
        seen = [index for index, part in enumerate(self.expected) if part.phase in self.phases]
        return [part for part in self.expected[: seen[-1]] if part.phase not in self.phases] if seen else []

    def missing(self) -> tuple[Missing, ...]:
        """Overtaken phases that an argument asks for; none where the log does not show everything."""
        if self.hidden:
            return ()
        return tuple(Missing(part.phase, part.reason()) for part in self._overtaken() if part.because)

    def next_expected(self) -> Missing | None:
        """The first phase that must come after what was seen; None while one runs, and at the end."""
        if self.hidden or (self.current is not None and self._running(self.current)):
            return None
        seen = [index for index, part in enumerate(self.expected) if part.phase in self.phases]
        for part in self.expected[(seen[-1] + 1) if seen else 0 :]:
            return Missing(part.phase, part.reason())
        return None

    def only_ready_is_left(self) -> bool:
        """Nothing runs, and of what must come only the end is still to come."""
        coming = self.next_expected()
        return coming is not None and coming.milestone == "ready"

    def ended(self, name: str) -> bool:
        """This phase is done."""
        phase = self.phases.get(name)
        return phase is not None and phase.done(self.ranks)

    def laggards(self, now: float) -> tuple[Suspect, ...]:
        """Ranks that lack a line which at least half of the ranks wrote some seconds ago: by the earliest such line."""
        known = {rank for ranks in self._marks.values() for rank in ranks}
        for rule, ranks in self._marks.items():
            behind = sorted(known - set(ranks), key=natural)
            if not behind or len(ranks) < len(behind):
                continue
            leader, first = min(ranks.items(), key=lambda item: item[1])
            if now - first >= _LATE:
                reason = f"no “{rule}” yet, which {leader} had {age(now - first)} ago"
                return tuple(Suspect(rank, None, reason) for rank in behind)
        return ()

    def views(self, now: float, instant: Instant) -> tuple[PhaseView, ...]:
        """One line a phase: expected ones in their order, others where they began."""
        missing = {part.milestone for part in self.missing()}
        unseen = {part.phase for part in self._overtaken()} - missing
        wanted = [part.phase for part in self.expected if part.phase not in unseen]
        extra = [name for name in self.phases if name not in wanted]
        names = _woven(wanted, extra, self._order)
        reasons = {part.phase: part.reason() for part in self.expected}
        return tuple(self._view(name, missing, reasons, now, instant) for name in names)

    def _view(self, name: str, missing: set[str], reasons: dict[str, str], now: float, instant: Instant) -> PhaseView:
        phase = self.phases.get(name)
        if phase is None:
            if name in missing:
                return PhaseView(name, "missing", note=reasons[name])
            asked = reasons[name].removesuffix(", not seen")
            return PhaseView(name, "expected", note=asked if "(" in asked else None)
        done = phase.done(self.ranks)
        start = instant(phase.first) if phase.first else None
        end = instant(phase.last) if done and phase.last else None
        bar = phase.bar
        return PhaseView(
            name,
            "failed" if phase.failed else "done" if done else "running",
            start, end,
            count=bar.count if bar else None,
            total=bar.total if bar else None,
            rate=bar.rate() if bar and not done else None,
            eta=bar.eta(now) if bar and not done else None,
            note=None if done else phase.behind(),
            seconds=phase.seconds if phase.seconds is not None else (end - start if end and start else None),
        )  # fmt: skip


def natural(rank: str) -> tuple[object, ...]:
    """Sort key: TP2 before TP10."""
    words: list[object] = []
    digits, letters = "", ""
    for char in f"{rank} ":
        if char.isdigit():
            digits += char
            continue
        if digits:
            words.append((letters, int(digits)))
            digits, letters = "", ""
        letters += char
    return (*words, (letters, 0))


def _woven(wanted: list[str], extra: list[str], order: tuple[str, ...]) -> list[str]:
    """Expected phases in order, unexpected ones put where the engine usually has them."""
    names = list(wanted)
    for name in extra:
        before = [other for other in order[: order.index(name)] if other in names] if name in order else names[-1:]
        names.insert(names.index(before[-1]) + 1 if before else 0, name)
    return names
