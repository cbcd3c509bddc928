"""Several hosts watched for a screen: each recorded and remembered as one alone would be, alerts once for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tuimon.launch.events import Finding
from tuimon.watch.live import LiveWatch
from tuimon.watch.nodes import NodesWatch, Whole, stop_all
from tuimon.watch.recorded import record

if TYPE_CHECKING:
    from tuimon.alerts.herald import Herald
    from tuimon.config import Settings
    from tuimon.launch.nodes import NodesView
    from tuimon.launch.view import LaunchView
    from tuimon.watch.onlooker import Onlooker

_STOP_WITHIN = 1.0
"""Seconds for the last word of each, when somebody has pressed q."""


class AttendedNodes(NodesWatch):
    """NodesWatch; `terminal` takes bells and notifications once there is a screen to send them through."""

    def __init__(self, specs: Sequence[str], settings: Settings) -> None:
        """Raises HostError, BadCommand. A host that is named twice is watched once."""
        self._specs = tuple(dict.fromkeys(specs))
        self._hosts = [LiveWatch(spec, settings) for spec in self._specs]
        for host in self._hosts:
            host.asks = True
        super().__init__(self._hosts, settings.patience)
        self.terminal: Callable[[str], None] | None = None
        self._settings = settings
        self._herald: Herald | None = None
        self._onlookers: list[Onlooker] = []
        self._begun = threading.Lock()
        """Held while what is beside it begins."""
        self._ended = False
        self._asked: str | None = None
        """What the user reads, and answers."""
        if settings.on_change:
            from tuimon.alerts.command import split  # noqa: PLC0415  only where there is a command

            split(settings.on_change)
        many = len(self._specs)
        recorders = [record(host, spec, settings, many) for host, spec in zip(self._hosts, self._specs, strict=True)]
        self._recorders = [recorder for recorder in recorders if recorder is not None]

    def _start(self) -> None:
        from tuimon.launch.logbook import share  # noqa: PLC0415  grammars are behind it, which a first frame waits not for

        share(len(self._specs))
        super()._start()
        with self._begun:
            if not self._ended:
                self._begin()

    def _begin(self) -> None:
        # sqlite3 costs 10 ms that a first frame need not wait for.
        from tuimon.alerts.herald import Herald  # noqa: PLC0415
        from tuimon.history.remembering import Remembering  # noqa: PLC0415
        from tuimon.watch.onlooker import Onlooker  # noqa: PLC0415

        self._herald = Herald(self._settings, self._send, self._find, self._told)
        relief = Relief(self._herald.look)
        self._onlookers = [Onlooker(Whole(self), lambda _whole: relief.look(self.nodes), self._find, "alerts")]
        if self._settings.history:
            memories = [Remembering(spec, host.post) for spec, host in zip(self._specs, self._hosts, strict=True)]

            def look(_whole: LaunchView) -> None:
                for memory, host in zip(memories, self._hosts, strict=True):
                    memory.look(host.view)

            self._onlookers.append(Onlooker(Whole(self), look, self._find, "history"))
        for onlooker in self._onlookers:
            onlooker.start()

    def stop(self) -> None:
        """End what is beside it, then the watching, then its recordings; each of them bounded."""
        with self._begun:
            self._ended = True
            onlookers, self._onlookers = self._onlookers, []
            herald, self._herald = self._herald, None
        for onlooker in onlookers:
            onlooker.stop(_STOP_WITHIN)
        if herald is not None:
            herald.stop(within=_STOP_WITHIN)
        super().stop()
        stop_all([recorder.stop for recorder in self._recorders], _STOP_WITHIN * 2)

    @property
    def secret_wanted(self) -> str | None:
        """The secret that a host wants, in words; None = nothing. The same until it is given, whoever else asks."""
        wanted = [words for host in self._hosts if (words := host.secret_wanted) is not None]
        if self._asked not in wanted:
            self._asked = wanted[0] if wanted else None
        return self._asked

    def give_secret(self, secret: str | None) -> None:
        """The answer to what was asked, for all hosts that ask for it: nobody types a key's passphrase 64 times."""
        wanted = _key(self._asked)
        for host in self._hosts:
            if host.secret_wanted is not None and _key(host.secret_wanted) == wanted:
                host.give_secret(secret)

    def _send(self, sequence: str) -> None:
        if self.terminal is not None:
            self.terminal(sequence)

    def _find(self, text: str) -> None:
        """What is wrong with any of it concerns no host; the first one's findings tell it."""
        self._hosts[0].post(Finding(source="tuimon", kind="alert", text=text, severity="warning"))

    def _told(self) -> dict[str, object]:
        return told(self._specs, self.nodes)


class Relief:
    """Passes the launch as one on to the alerts, but no good news while a node that was red cannot be seen."""

    def __init__(self, look: Callable[[LaunchView], None]) -> None:
        self._look = look
        self._red: set[int] = set()

    def look(self, nodes: NodesView) -> None:
        """Look at them."""
        unseen = {node.place for node in nodes.nodes if node.unseen}
        self._red = {node.place for node in nodes.nodes if node.red} | self._red & unseen
        if nodes.verdict.state not in {"starting", "quiet"} or not self._red:
            self._look(nodes.whole)


def _key(words: str | None) -> str:
    """What is asked for, without the host that it is asked for."""
    return (words or "").rpartition(" for ")[0] or (words or "")


def told(specs: Sequence[str], nodes: NodesView) -> dict[str, object]:
    """What a document about one host says in addition where it is about several."""
    decides = None if nodes.decides is None else specs[nodes.decides]
    listed = sorted(nodes.nodes, key=lambda node: node.place)
    return {
        "host": " ".join(specs),
        "node": decides,
        "nodes": [{"host": specs[node.place], "state": node.state, "note": node.note} for node in listed],
    }
