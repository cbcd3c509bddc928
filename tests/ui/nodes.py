"""Launches over several nodes at the moments that matter, and a stage for the app that shows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import Cranked, Stage
from tuimon.config import Settings
from tuimon.launch.view import LaunchView, PhaseView
from tuimon.ui.nodesapp import NodesApp
from tuimon.watch.nodes import NodesWatch


def node(number: int, view: LaunchView, many: int) -> LaunchView:
    """This view as the numbered node of many tells it."""
    server = view.server
    if server is not None:
        ranks = tuple(f"TP{number * 8 + index}" for index in range(8))
        shape = f"tp {8 * many} · EAGLE3 · node {number + 1} of {many}"
        argv = (*server.argv, "--nnodes", str(many), "--node-rank", str(number))
        log = f"/data/logs/node{number + 1}.log"
        server = replace(server, ranks=ranks, shape=shape, log=log, launch=1, argv=argv)
    return replace(view, host=f"node{number + 1}", server=server)


def loading(share: int) -> LaunchView:
    """Weights load, so many of 64 shards."""
    view = launches.starting()
    phases = tuple(replace(phase, count=share, total=64) if phase.name == "weights" else phase for phase in view.phases)
    return replace(view, phases=phases, verdict=replace(view.verdict, headline="weights", phase="weights"),
                   gpus=launches.gpus(0.2))  # fmt: skip


def spins() -> LaunchView:
    """In the all-reduce of the CUDA graphs, for the node that does not come."""
    view = launches.spinning()
    return replace(view, verdict=replace(view.verdict, suspects=()))


def stops() -> LaunchView:
    """Silent in the middle of its weights."""
    view = launches.stall()
    verdict = replace(view.verdict, headline="in “weights”: nothing alive", phase="weights", missing=(), suspects=())
    running = PhaseView("weights", "running", start=launches.NOW - 300, count=41, total=64)
    return replace(view, verdict=verdict, phases=(*launches.phases()[:2], running), lines=launches.story(6))


def two() -> list[LaunchView]:
    """Both load."""
    return [node(0, loading(41), 2), node(1, loading(22), 2)]


def sixteen() -> list[LaunchView]:
    """One has stopped, fourteen spin waiting for it, one cannot be seen."""
    views = [spins() for _ in range(16)]
    views[11] = stops()
    views[4] = launches.unreachable()
    return [node(number, view, 16) for number, view in enumerate(views)]


def sixty_four() -> list[LaunchView]:
    """They load; three have no link, one has no server, two wait."""
    views = [loading(20 + number * 7 % 40) for number in range(64)]
    for number in (17, 40, 41):
        views[number] = launches.unreachable()
    views[30] = launches.waiting()
    for number in (3, 50):
        views[number] = launches.stall()
    return [node(number, view, 64) for number, view in enumerate(views)]


MOMENTS = {"nodes-2": two, "nodes-16": sixteen, "nodes-64": sixty_four}


class NodesStage(Stage):
    """The app, and each node's watching."""

    def __init__(self, stage: Stage, hosts: Sequence[Cranked]) -> None:
        super().__init__(stage.app, stage.pilot, stage.watching)
        self.hosts = hosts

    async def turn(self, number: int, view: LaunchView | None = None, *, seconds: float = 0.0) -> None:
        """Give one node's next view."""
        host = self.hosts[number]
        view = view or host.view
        host.view = replace(view, now=view.now + seconds)
        await self.draw()

    async def later(self, seconds: float) -> None:
        """All of them, so many seconds later."""
        for host in self.hosts:
            host.view = replace(host.view, now=host.view.now + seconds)
        await self.draw()

    async def draw(self) -> None:
        self.app.tick()
        await self.pilot.pause()


@asynccontextmanager
async def staged(
    views: Sequence[LaunchView], size: tuple[int, int] = (120, 40), settings: Settings | None = None
) -> AsyncIterator[NodesStage]:
    """The app running on these nodes; each look at them is a new one."""
    hosts = [Cranked(view) for view in views]
    ticks = iter(range(1_000_000))
    app = NodesApp(NodesWatch(hosts, clock=lambda: float(next(ticks))), settings or Settings())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        stage = NodesStage(Stage(app, pilot, hosts[0]), hosts)
        await stage.draw()
        yield stage
