"""The demo's table of scenarios, and its paces."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tuimon.demo.errors import UnknownPace, UnknownScenario
from tuimon.demo.scenarios import REAL, SCENARIOS, find, phases, trouble_at

WANTED = {"silent-stall", "healthy", "collective-spin", "rank-killed", "slow-compile", "dead-storage", "useless-draft"}


def test_there_are_the_seven_scenarios_and_the_first_is_the_default_one() -> None:
    assert set(SCENARIOS) == WANTED
    assert next(iter(SCENARIOS)) == "silent-stall"
    assert all(scenario.line for scenario in SCENARIOS.values())


@pytest.mark.parametrize("name", sorted(WANTED - {"healthy"}))
def test_trouble_begins_30_to_40_seconds_after_the_start(name: str) -> None:
    when = trouble_at(find(name), "brisk")
    assert when is not None
    assert 30 <= when <= 40


def test_a_healthy_launch_has_no_trouble_and_is_ready_within_40_seconds() -> None:
    assert trouble_at(find("healthy"), "brisk") is None
    assert phases(find("healthy"), "brisk")["ready"].begin <= 40


def test_slow_compile_is_silent_for_at_least_3_minutes() -> None:
    assert phases(find("slow-compile"), "brisk")["compile"].length >= 180


def test_the_real_pace_takes_real_durations() -> None:
    real = phases(find("silent-stall"), "real")
    assert real["load"].length == REAL["load"] > 500
    assert trouble_at(find("silent-stall"), "real") == pytest.approx(sum(list(REAL.values())[:7]))


def test_a_factor_scales_the_brisk_pace() -> None:
    whole, tenth = phases(find("healthy"), "brisk"), phases(find("healthy"), "0.1")
    assert tenth["ready"].begin == pytest.approx(whole["ready"].begin / 10)


def test_phases_follow_each_other_without_a_gap() -> None:
    found = list(phases(find("healthy"), "brisk").values())
    for phase, follower in pairwise(found):
        assert follower.begin == pytest.approx(phase.begin + phase.length)


def test_an_unknown_scenario_is_refused_with_the_list_of_those_that_exist() -> None:
    with pytest.raises(UnknownScenario, match="sudden-stall") as refusal:
        find("sudden-stall")
    assert all(name in refusal.value.sentence() for name in WANTED)


@pytest.mark.parametrize("pace", ["slow", "0", "-1", "nan", "inf", ""])
def test_an_unknown_pace_is_refused(pace: str) -> None:
    with pytest.raises(UnknownPace):
        phases(find("healthy"), pace)
