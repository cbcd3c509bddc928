"""Only silence that was watched counts: gaps and stale data stop the clock."""

from __future__ import annotations

import pytest

from tuimon.launch.attention import Attention


def _looking(*instants: float) -> Attention:
    attention = Attention()
    for instant in instants:
        attention.look(instant)
    return attention


def test_time_between_looks_counts() -> None:
    attention = _looking(*range(100, 111))
    assert attention.looked(100, 110) == 10


def test_a_gap_does_not_count() -> None:
    attention = _looking(*range(100, 111), *range(140, 151))
    assert attention.looked(100, 150) == 20
    assert attention.gaps(100) == ((110, 140),)


def test_the_clock_stops_when_looks_stop_coming() -> None:
    attention = _looking(*range(100, 111))
    assert attention.looked(100, 500) == pytest.approx(13)
    assert not attention.fresh(500)


def test_slow_sampling_is_a_rhythm_and_no_row_of_gaps() -> None:
    attention = _looking(*range(100, 160, 5))
    assert attention.looked(100, 155) == 55
    assert attention.gaps(0) == ()
