"""Every scenario through the real path: SSH, probe, log, judge. All seven are watched at once, five times as fast."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec import Struct

from tuimon.config import Settings
from tuimon.demo.scenarios import SCENARIOS, Scenario, trouble_at
from tuimon.launch.view import RED, LaunchView, Verdict
from tuimon.watch.live import LiveWatch

PACE = "0.2"
WATCH_S = 36.0
"""The latest trouble begins after 7.4 s, and red may take 22 s on a machine with other work."""
SLOW = 8.0
"""Seconds more than on an idle machine that a verdict may take: seven launches share two cores."""


class Watched(Struct):
    """What was seen of one scenario."""

    watch: LiveWatch
    began: float
    verdicts: list[tuple[float, Verdict]]

    def look(self) -> None:
        """Note the verdict when it changes."""
        verdict = self.watch.view.verdict
        if not self.verdicts or self.verdicts[-1][1].state != verdict.state:
            self.verdicts.append((time.monotonic() - self.began, verdict))

    @property
    def view(self) -> LaunchView:
        """The latest."""
        return self.watch.view

    @property
    def red(self) -> tuple[float, Verdict] | None:
        """The first red verdict."""
        return next((found for found in self.verdicts if found[1].state in RED), None)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Watched]]:
    patch = pytest.MonkeyPatch()
    patch.setenv("TUIMON_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    seen = {}
    for name in SCENARIOS:
        watch = LiveWatch(f"demo:{name}@{PACE}", Settings())
        watch.start()
        seen[name] = Watched(watch, time.monotonic(), [])
    end = time.monotonic() + WATCH_S
    while time.monotonic() < end:
        for one in seen.values():
            one.look()
        time.sleep(0.1)
    yield seen
    for one in seen.values():
        one.watch.stop()
    patch.undo()


def trouble(name: str) -> float:
    """When it begins."""
    scenario: Scenario = SCENARIOS[name]
    when = trouble_at(scenario, PACE)
    assert when is not None
    return when


@pytest.mark.parametrize(
    ("name", "state", "suspect", "within"),
    [
        ("silent-stall", "stalled", "TP3", 22 + SLOW),
        ("dead-storage", "stalled", "TP5", 22 + SLOW),
        ("collective-spin", "spinning", "TP5", 22 + SLOW),
        ("rank-killed", "stalled", "TP6", 3 + SLOW),
    ],
)
def test_a_dead_launch_turns_red_and_names_its_rank(
    watched: dict[str, Watched], name: str, state: str, suspect: str, within: float
) -> None:
    red = watched[name].red
    assert red is not None, watched[name].verdicts
    when, verdict = red
    assert verdict.state == state
    assert [one.rank for one in verdict.suspects] == [suspect]
    assert trouble(name) < when < trouble(name) + within


def test_the_silent_stall_says_that_the_draft_model_never_came(watched: dict[str, Watched]) -> None:
    verdict = watched["silent-stall"].view.verdict
    assert verdict.phase == "CUDA graphs"
    assert verdict.missing[0].milestone == "draft model load"


def test_a_killed_rank_is_certain(watched: dict[str, Watched]) -> None:
    assert watched["rank-killed"].view.verdict.certain


@pytest.mark.parametrize("name", ["healthy", "useless-draft", "slow-compile"])
def test_a_living_launch_is_never_red(watched: dict[str, Watched], name: str) -> None:
    assert watched[name].red is None


@pytest.mark.parametrize("name", ["healthy", "useless-draft"])
def test_a_server_that_answers_is_serving(watched: dict[str, Watched], name: str) -> None:
    assert watched[name].view.verdict.state in {"ready", "serving"}
    assert watched[name].view.health.ready_at is not None


def test_only_the_useless_draft_raises_its_alarm(watched: dict[str, Watched]) -> None:
    alarmed = {name for name, one in watched.items() if "useless_draft" in one.view.verdict.alarms}
    assert alarmed == {"useless-draft"}


def test_the_server_is_found_without_being_told(watched: dict[str, Watched]) -> None:
    for one in watched.values():
        server = one.view.server
        assert server is not None
        assert (server.engine, server.version, server.shape) == ("SGLang", "0.5.6", "tp 8 · EAGLE3")
        assert server.log is not None
        assert server.log.endswith("sglang_eagle3_v2.log")
