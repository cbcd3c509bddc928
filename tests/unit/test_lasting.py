"""Durations are written in one way everywhere."""

from __future__ import annotations

import pytest

from tuimon.launch.lasting import age, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (59.9, "59 s"),
        (60, "1 m 00 s"),
        (117, "1 m 57 s"),
        (323.4, "5 m 23 s"),
        (3840, "1 h 04 m"),
        (86400 * 2 + 3 * 3600, "2 d 03 h"),
    ],
)
def test_what_ticks_has_whole_seconds_and_two_units_at_most(seconds: float, words: str) -> None:
    assert age(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(-1, "0.0 s"), (4.12, "4.1 s"), (9.96, "10 s"), (511.6, "8 m 32 s")])
def test_what_is_over_has_a_decimal_where_it_was_short(seconds: float, words: str) -> None:
    assert duration(seconds) == words
