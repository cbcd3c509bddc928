"""Launch: the only writer of what we believe. `apply` takes events, `snapshot` gives the frozen view for the screen."""

from __future__ import annotations

from collections import deque
from typing import Literal

from tuimon.config import Patience
from tuimon.launch import processes
from tuimon.launch.events import (
    OWN_ERROR,
    AnyEvent,
    Collectives,
    CommandRun,
    Finding,
    Gap,
    Health,
    Launches,
    Linked,
    LogReset,
    LogText,
    LogUnreadable,
    Metrics,
    Report,
    Sample,
    ServerFound,
    ServerGone,
    Stacks,
    Unlinked,
    UsualTimes,
)  # fmt: skip
from tuimon.launch.gpus import Gpus
from tuimon.launch.run import Run
from tuimon.launch.standing import standing
from tuimon.launch.usual import with_usual
from tuimon.launch.verdict import judge
from tuimon.launch.view import RED, EarlierLaunch, Episode, LaunchView, LinkView, ProcessView, RunningView, Verdict
from tuimon.launch.waits import alarm_words

MAX_COMMANDS = 200
MAX_EPISODES = 100
MAX_OWN_ERRORS = 20


class Launch:
    """What is known of the launch on one host. Pure: all time comes from events or from `now`."""

    def __init__(self, host: str, patience: Patience | None = None) -> None:
        self.host = host
        self.patience = patience or Patience()
        self.link = LinkView(state="connecting", since=0.0)
        self.gpus = Gpus()
        self.run = Run(0, None, self.gpus, self.patience)
        self.earlier: list[EarlierLaunch] = []
        self.verdict = Verdict(state="unreachable", since=0.0, headline="not connected yet")
        self._own_errors: dict[str, None] = {}
        self._commands: deque[str] = deque(maxlen=MAX_COMMANDS)
        self._cost: tuple[float, float] | None = None
        self._probe_cost: float | None = None
        self._usual: UsualTimes | None = None
        self._running: Launches | None = None

    def apply(self, event: AnyEvent) -> None:
        """Take one event."""
        run = self.run
        match event:
            case Sample():
                self._take_cost(event)
                run.take_sample(event)
            case LogText():
                run.take_text(event)
            case Health():
                run.take_health(event)
            case Linked() | Unlinked():
                self._take_link(event)
            case ServerFound():
                self._take_server(event)
            case ServerGone():
                if run.server is not None and event.pid == run.server.pid:
                    run.take_gone(event)
            case Stacks():
                run.take_stacks(event)
            case _:
                self._take_rare(event)

    def _take_rare(self, event: AnyEvent) -> None:
        run = self.run
        match event:
            case LogReset():
                run.take_reset(event)
            case LogUnreadable():
                run.take_unreadable(event)
            case Metrics():
                run.take_metrics(event)
            case Collectives():
                run.collectives = event
            case UsualTimes():
                self._usual = run.usual = event
            case Finding():
                run.findings.append(event)
                self._take_own(event)
            case Launches():
                self._running = event
            case Report():
                run.reports[event.of] = event
            case CommandRun():
                self._commands.append(_command_words(event))
            case Gap():
                run.growth.look(event.at, looked=False)
                run.health.gap()
            case _:
                pass

    def _take_own(self, event: Finding) -> None:
        """An error of tuimon's own concerns no single launch."""
        if event.kind == OWN_ERROR:
            self._own_errors.pop(event.text, None)
            self._own_errors[event.text] = None
            if len(self._own_errors) > MAX_OWN_ERRORS:
                del self._own_errors[next(iter(self._own_errors))]

    def _take_link(self, event: Linked | Unlinked) -> None:
        if isinstance(event, Linked):
            self.link = LinkView(state="up", since=event.at, detail=event.detail)
            return
        state: Literal["refused", "lost"] = "refused" if event.refused else "lost"
        since = self.link.since if self.link.state == state else event.at
        self.link = LinkView(state=state, since=since, reason=event.reason, next_try=event.next_try)
        self.run.growth.look(event.at, looked=False)
        self.run.health.gap()

    def _take_server(self, event: ServerFound) -> None:
        run = self.run
        if event.same(run.server):
            run.server = event
            return
        self._keep(run, event.at)
        self.run = Run(run.number + 1, event, self.gpus, self.patience)
        self.run.usual = self._usual

    def _keep(self, run: Run, at: float) -> None:
        """A relaunch: the earlier launch stays as an entry."""
        server = run.server
        if server is None:
            return
        ended = run.gone_at if run.gone_at is not None else at
        self.earlier.append(
            EarlierLaunch(
                launch=run.number, pid=server.pid, began=run.began, ended=ended, ready_at=run.ready_at,
                state=self.verdict.state, headline=self.verdict.headline,
            )
        )  # fmt: skip

    def _take_cost(self, event: Sample) -> None:
        if event.cost is None:
            return
        if self._cost is not None and event.mono > self._cost[0] and event.cost.cpu >= self._cost[1]:
            self._probe_cost = 100 * (event.cost.cpu - self._cost[1]) / (event.mono - self._cost[0])
        self._cost = (event.mono, event.cost.cpu)

    def snapshot(self, now: float) -> LaunchView:
        """Judge, and freeze everything that the screen shows."""
        self.settle(now)
        run, verdict = self.run, self.verdict
        told = run.told
        suspects = frozenset(suspect.pid for suspect in verdict.suspects if suspect.pid is not None)
        return LaunchView(
            now=now,
            host=self.host,
            link=self.link,
            verdict=verdict,
            server=run.view(),
            data_age=max(0.0, now - run.sample.at) if run.sample is not None else None,
            phases=standing(with_usual(told.phases, run.usual, now), silent=self._is_silent(now)),
            growth=run.growth.view(now, run.vitals.log.last, looking=run.attention.fresh(now)),
            gpus=self.gpus.rows(run.processes, suspects, now),
            gpu_note=self.gpus.note,
            signs=run.vitals.views(now),
            processes=self._process_rows(suspects),
            health=run.health.view(run.ready_at),
            serving=told.serving,
            lines=run.reading.lines(),
            stacks=run.stacks,
            episodes=tuple(run.episodes[-MAX_EPISODES:]),
            findings=(*alarm_words(run, now), *self._findings()),
            commands=tuple(self._commands),
            probe_cost=self._probe_cost,
            usual_launches=run.usual.launches if run.usual else 0,
            error=_error_words(run),
            earlier=tuple(self.earlier),
            launches=self._launches(),
            collectives=run.collectives,
            reports=tuple(run.reports.values()),
            own_errors=tuple(self._own_errors),
        )

    def _findings(self) -> list[str]:
        """This launch's, and those of our own errors that came before it."""
        told = [finding.text for finding in self.run.findings]
        return [text for text in self._own_errors if text not in told] + told

    def _launches(self) -> tuple[RunningView, ...]:
        told, server = self._running, self.run.server
        if told is None:
            return ()
        return tuple(
            RunningView(
                pid=one.pid, engine=one.engine, model=one.model, port=one.port,
                started=None if one.age is None else told.at - one.age,
                watched=server is not None and server.pid == one.pid,
            )
            for one in told.found
        )  # fmt: skip

    def _is_silent(self, now: float) -> bool:
        """Nothing was alive for so long that no phase may promise when it ends."""
        return self.verdict.state in RED or self.run.silence(now) >= self.patience.quiet

    def settle(self, now: float) -> Verdict:
        """Judge, and keep the stretches of red as episodes."""
        before, verdict = self.verdict, judge(self, now)
        self.verdict = verdict
        episodes = self.run.episodes
        running = bool(episodes) and episodes[-1].end is None
        if verdict.state == "unreachable":
            return verdict
        if verdict.state in RED:
            start = episodes[-1].start if running else verdict.since
            episode = Episode(verdict.state, verdict.kind, start, None, verdict.phase, verdict.suspects)
            if running and before.state in RED:
                episodes[-1] = episode
            elif not running:
                episodes.append(episode)
        elif running:
            last = episodes[-1]
            episodes[-1] = Episode(last.state, last.kind, last.start, now, last.phase, last.suspects)
        return verdict

    def _process_rows(self, suspects: frozenset[int]) -> tuple[ProcessView, ...] | None:
        run = self.run
        if not run.processes_seen:
            return None
        notes = {suspect.pid: suspect.reason for suspect in self.verdict.suspects if suspect.pid is not None}
        return processes.rows(run.processes, run.vitals.rates, suspects, notes, run.server.pid if run.server else None)


def _command_words(event: CommandRun) -> str:
    took = f" ({event.duration:.2f} s)" if event.duration is not None else ""
    ended = f" exit {event.exit}" if event.exit else f" {event.error}" if event.error else ""
    return f"{event.why}{took}{ended}: {event.command}"


def _error_words(run: Run) -> str | None:
    error = run.told.error or run.told.fatal
    if error is None:
        return None
    return f"{error.text} · {error.advice}" if error.advice else error.text
