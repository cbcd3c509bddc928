"""Signs of life on the GPUs: work is memory traffic or power over this GPU's own idle, never utilisation."""

from __future__ import annotations

import pytest

from tests.judging import MIB, Story
from tuimon.launch.gpus import slowed


def _story(*does: str) -> Story:
    story = Story(1)
    story.everybody("sleeps")
    for what in does:
        assert story.gpus is not None
        story.gpus = [what]
        story.runs(6)
    return story


def _last_work(story: Story) -> float | None:
    return story.launch.run.vitals.gpu_work.last


def test_a_spinning_collective_is_no_work_although_it_shows_100_percent() -> None:
    story = _story("parked", "idle", "spins")
    assert _last_work(story) is None
    card = story.launch.gpus.cards[0]
    assert card.spins
    assert card.work == 0.0
    assert card.word() == "100 % busy, no work"


@pytest.mark.parametrize(
    ("idle", "spin", "limit"),
    [(118.0, 120.0, 700.0), (60.0, 88.0, 400.0), (70.0, 132.0, 700.0), (27.0, 35.0, 72.0), (150.0, 240.0, 1000.0)],
    ids=["H200", "A100", "H100", "L4", "B200"],
)
def test_a_spin_is_no_work_whatever_it_costs_on_other_gpus(idle: float, spin: float, limit: float) -> None:
    story = Story(1)
    story.everybody("spins")
    for power, util in ((idle, 0.0), (spin, 100.0)):
        story.gpu_more[0] = {"util": util, "mem_util": 0.0, "power": power, "power_limit": limit, "sm_clock": 1410}
        story.runs(5)
    assert _last_work(story) is None
    assert story.launch.gpus.cards[0].spins


def test_the_power_of_a_card_in_slices_is_the_neighbours_too() -> None:
    story = Story(1)
    story.everybody("spins")
    story.gpu_more[0] = {
        "util": None, "mem_util": None, "power": 330.0, "procs": {101: 1000 * MIB, 9999: 1000 * MIB},
    }  # fmt: skip
    story.runs(30)
    assert _last_work(story) is None
    assert story.launch.verdict.state == "quiet"
    assert story.runs(40).state == "spinning"
    assert "the GPUs cannot be read" in story.launch.verdict.headline


def test_memory_traffic_is_work() -> None:
    assert _last_work(_story("idle", "works")) is not None


def test_dram_bandwidth_is_work_where_memory_utilisation_rounds_to_zero() -> None:
    story = _story("idle")
    story.gpu_more[0] = {"util": 7.0, "mem_util": 0.0, "dram_active": 0.9, "power": 119.0}
    story.runs(1)
    assert _last_work(story) == story.now


@pytest.mark.parametrize(("power", "works"), [(121.0, False), (126.0, False), (136.0, True)])
def test_power_counts_only_clearly_over_the_idle_that_was_learned(power: float, works: bool) -> None:
    story = _story("parked", "idle")
    story.gpu_more[0] = {"util": 15.0, "power": power}
    story.runs(1)
    assert (_last_work(story) == story.now) is works


def test_power_at_zero_utilisation_is_no_work_whatever_it_is() -> None:
    story = _story("idle")
    story.gpu_more[0] = {"util": 0.0, "power": 136.0}
    story.runs(3)
    assert _last_work(story) is None


def test_the_climb_to_full_clock_is_not_taken_for_idle() -> None:
    story = _story("parked")
    for power in (78.4, 99.0, 110.0, 118.0):
        story.gpu_more[0] = {"sm_clock": 1980, "power": power, "util": 3.0}
        story.runs(1)
    story.gpu_more[0] = {"sm_clock": 1980, "power": 118.0, "util": 3.0}
    story.runs(4)
    assert story.launch.gpus.cards[0].idle == pytest.approx(118.0)
    since = story.now
    story.runs(4)
    assert (_last_work(story) or 0) <= since


def test_came_while_it_spins_so_idle_was_never_seen() -> None:
    story = _story("spins")
    assert _last_work(story) is None
    assert story.launch.gpus.cards[0].spins


def test_loud_power_is_work_even_where_nothing_else_is_told() -> None:
    story = Story(1)
    story.everybody("sleeps")
    story.gpu_more[0] = {"util": 100.0, "mem_util": None, "power": 690.0, "sm_clock": 1980}
    story.runs(5)
    assert _last_work(story) == story.now


def test_without_any_reading_work_is_unknown_and_not_zero() -> None:
    story = Story(1)
    story.everybody("sleeps")
    story.gpu_more[0] = {"util": 100.0, "mem_util": None, "power": None, "sm_clock": None}
    story.runs(3)
    view = story.launch.snapshot(story.now)
    assert view.gpus is not None
    assert view.gpus[0].work is None
    assert view.gpus[0].word is None
    assert "GPU work" in view.verdict.unseen


def test_memory_counts_from_a_step_of_more_than_two_mebibytes() -> None:
    story = _story("idle")
    story.gpu_memory[0] += 2 * MIB
    story.runs(1)
    assert story.launch.run.vitals.gpu_memory.last is None
    story.gpu_memory[0] += 3 * MIB
    story.runs(1)
    assert story.launch.run.vitals.gpu_memory.last == story.now


def test_a_single_spike_on_the_link_means_nothing() -> None:
    story = _story("idle")
    for traffic in (600.0, 340_000.0, 600.0, 600.0):
        story.gpu_more[0] = {"pcie_tx": traffic, "pcie_rx": 500.0}
        story.runs(1)
    assert story.launch.run.vitals.link.last is None
    story.gpu_more[0] = {"pcie_tx": 40_000.0, "pcie_rx": 500.0}
    story.runs(2)
    assert story.launch.run.vitals.link.last == story.now


def test_the_work_of_strangers_keeps_nobody_alive() -> None:
    story = Story(2)
    story.everybody("sleeps", "idle")
    story.runs(6)
    sample = story.sample()
    assert sample.gpus is not None
    stranger = type(sample.gpus[0])(
        index=7, util=99.0, mem_util=60.0, power=600.0, mem_used=9 * MIB, procs={9999: 9 * MIB}
    )
    story.now += 1
    story.mono += 1
    story.apply(type(sample)(at=story.now, mono=story.mono, gpus=(*sample.gpus, stranger), processes=sample.processes))
    assert story.launch.run.vitals.gpu_work.last is None


def test_a_machine_without_gpus_misses_nothing() -> None:
    story = Story(1, gpus=False)
    story.gpus = []
    story.everybody("sleeps")
    story.runs(3)
    assert "GPU work" not in story.launch.verdict.unseen
    story.gpus = None
    story.runs(1)
    assert "GPU work" in story.launch.verdict.unseen


def test_history_shows_a_gap_where_nobody_looked() -> None:
    story = _story("works")
    story.unseen(10)
    story.runs(2)
    view = story.launch.snapshot(story.now)
    assert view.gpus is not None
    assert None in view.gpus[0].history
    assert view.gpus[0].history[-1] is not None


@pytest.mark.parametrize(
    ("reasons", "word"),
    [
        (None, None), (0, None), (0x1, None), (0x4, None), (0x20, "slowed: heat"), (0x40 | 0x8, "slowed: heat"),
        (0x80 | 0x8, "slowed: power brake"), (0x8, "slowed: hardware"), (1 << 60, None),
    ],
)  # fmt: skip
def test_what_holds_a_clock_down_is_said_where_it_is_not_normal(reasons: int | None, word: str | None) -> None:
    assert slowed(reasons) == word
