"""The probe on the host: start it, take in what it says, start it again when it falls silent or ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec

from tuimon.config import Settings
from tuimon.hosts.beating import PATIENCE, beat
from tuimon.hosts.finding import find_python, unfit
from tuimon.hosts.host import Channel, Host, WithPython
from tuimon.hosts.quoting import last_line
from tuimon.launch.events import Finding, Gap
from tuimon.launch.view import RED, LaunchView
from tuimon.probe import send
from tuimon.probe.program.speech import FORSAKEN
from tuimon.watch.announced import Announced
from tuimon.watch.board import Board
from tuimon.watch.lines import Lines, Reported
from tuimon.watch.pauses import Backoff
from tuimon.watch.tending import within

SILENT = 15.0
"""Seconds without a line after which the probe is started anew; it speaks each second."""


class _Path:
    python = "python3"


class Sampling:
    """Runs the probe for as long as the link is up."""

    def __init__(
        self,
        host: Host,
        board: Board,
        settings: Settings,
        heard: Callable[[Reported], None],
        chosen: Callable[[], int | None],
    ) -> None:
        self._host = Announced(host, "sample GPUs, processes and health", board.post, board.clock)
        self._python = host if isinstance(host, WithPython) else _Path()
        self._nvml: bytes | None = getattr(host, "probe_nvml", None)
        self._within: int | None = getattr(host, "probe_within", None)
        self._board = board
        self._settings = settings
        self._heard = heard
        self._channel: Channel | None = None
        self._chosen = chosen
        """The launch among several that the user wants to see."""
        self._preferred: int | None = None
        self._told: dict[str, bool] = {}
        self._restarted = False
        """After a silence, and nothing was heard since."""
        self._reported: set[str] = set()

    async def run(self) -> None:
        """Run it again and again; never returns. Raises HostUnreachable, ChannelRefused."""
        backoff = Backoff()
        while True:
            began = self._board.clock.now()
            await self._once()
            if self._board.clock.now() - began > 60:
                backoff.reset()
            await self._board.clock.sleep(backoff.next())

    def look(self, view: LaunchView) -> None:
        """Tell the probe what this state needs: PCIe costs 20 ms a call, /metrics a request."""
        state = view.verdict.state
        if self._channel is not None and self._chosen() != self._preferred:
            self._preferred = self._chosen()
            self._channel.write(msgspec.json.encode({"do": "pid", "pid": self._preferred}) + b"\n")
        self._tell("quiet", {"on": state == "quiet" or state in RED})
        self._tell("serving", {"metrics": state in {"ready", "serving", "failing"}})

    def _tell(self, what: str, how: dict[str, bool]) -> None:
        (value,) = how.values()
        # Off is how the probe begins.
        if self._channel is None or self._told.get(what, False) == value:
            return
        self._told[what] = value
        self._channel.write(msgspec.json.encode({"do": what, **how}) + b"\n")

    async def _once(self) -> None:
        channel = await self._host.start(send.command(self._python.python))
        lines = Lines()
        beating = asyncio.create_task(beat(channel, self._board.clock.sleep))
        try:
            channel.write(send.payload(self._options(), self._nvml))
            self._told = {}
            self._channel = channel
            ended = await self._listen(channel, lines)
        finally:
            self._channel = None
            beating.cancel()
            channel.end_input()
        if ended:
            await self._ended(channel, lines.example)
        else:
            self._gap("the probe fell silent")
            self._restarted = True

    async def _listen(self, channel: Channel, lines: Lines) -> bool:
        """Take in its lines; True when it has ended, False when it fell silent and another may do better."""
        while True:
            try:
                piece = await within(self._board.clock, SILENT, channel.read())
            except TimeoutError:
                if not self._restarted:
                    return False
                # A hanging /proc would only hold the next one too, and they would pile up there: wait for this one.
                self._find(
                    "probe_silent",
                    f"The probe on {self._host.name} says nothing",
                    "Does /proc or the machine hang there?",
                )
                continue
            if not piece:
                return True
            for event in lines.feed(piece):
                self._restarted = False
                self._heard(event)
            if lines.garbage:
                self._find(
                    "probe_garbage",
                    f"The probe on {self._host.name} sent lines that make no sense, first: {lines.example}",
                    "Something on that host writes into the output of our program; it does no harm",
                )

    async def _ended(self, channel: Channel, said: str) -> None:
        """`said`: what came instead of events; an account that may run nothing says so on stdout."""
        status = await within(self._board.clock, 2.0, channel.wait())
        if status == FORSAKEN:
            self._gap("tuimon stood still, so the probe had ended")
            return
        self._gap("the probe ended")
        last = last_line(channel.errors() or said)
        if unfit(status, last):
            await self._find_python()
            return
        self._find(
            "probe_ended", f"The probe on {self._host.name} ended (exit {status}): {last}", "It is started again"
        )

    async def _find_python(self) -> None:
        found = await find_python(self._host)
        if found is not None:
            self._python.python = found
            return
        from tuimon.watch.degraded import Degraded  # noqa: PLC0415  hardly ever wanted, and 3 ms to import

        await Degraded(self._host, self._board, self._heard, self._settings.log).run()

    def _gap(self, reason: str) -> None:
        if self._board.sample is not None:
            self._board.post(Gap(of="samples", since=self._board.sample.at, reason=reason))

    def _find(self, kind: str, text: str, fix: str) -> None:
        if text not in self._reported and len(self._reported) < 20:
            self._reported.add(text)
            self._board.post(Finding(source="probe", kind=kind, text=text, severity="warning", fix=fix))

    def _options(self) -> send.ProbeOptions:
        settings = self._settings
        self._preferred = self._chosen()
        key = None
        if settings.api_key_env:
            key = os.environ.get(settings.api_key_env)
            if key is None:
                text = f"The variable {settings.api_key_env} (api_key_env) is not set here"
                self._find("no_api_key", text, f"export {settings.api_key_env}=… before starting tuimon")
        return send.ProbeOptions(
            interval=settings.interval,
            pid=settings.pid,
            prefer=self._preferred,
            port=settings.port,
            log=settings.log,
            engine=settings.engine,
            api_key=key,
            within=self._within,
            patience=PATIENCE,
        )
