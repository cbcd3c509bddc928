"""Reading a log without a screen: positions, filters and the lens are absolute and never move by themselves."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.ui import launches
from tuimon.launch.view import LogLine, Severity
from tuimon.ui.reader import Reader
from tuimon.ui.rows import plain
from tuimon.ui.search import LIMIT, compiled, find
from tuimon.ui.sieve import Sieve, is_error, is_key, says

KINDS: tuple[Severity, ...] = ("info", "info", "milestone", "info", "warning", "info", "error", "info", "info", "info")


def log(count: int, first: int = 0) -> launches.Window:
    """Every tenth line is a milestone, a warning, an error."""
    lines = [LogLine(n, f"line {n:04}", launches.NOW, severity=KINDS[n % 10]) for n in range(first, count)]
    return launches.Window(lines, first)


def reading(count: int = 100) -> Reader:
    reader = Reader()
    reader.take(log(count))
    reader.rows(40, 10, [])
    return reader


def shown(reader: Reader, height: int = 10) -> list[str]:
    return [row.split()[-1] for row in plain(reader.rows(40, height, [])).splitlines()]


def test_following_shows_the_newest_lines_in_full() -> None:
    assert shown(reading()) == [f"{n:04}" for n in range(90, 100)]


def test_holding_keeps_what_is_read_while_lines_come_and_go() -> None:
    reader = reading()
    reader.move(-20, 40, 10)
    before = shown(reader)
    reader.take(log(500, first=60))
    assert shown(reader) == before
    assert not reader.follow
    reader.take(log(500, first=80))  # what is read is gone: the oldest line that is left
    assert shown(reader)[0] == "0080"


def test_the_lens_leaves_only_lines_that_mean_something_and_gives_the_place_back() -> None:
    reader = reading(1000)
    reader.move(-500, 40, 10)
    top = reader.top
    reader.sift(lens=True)
    assert all(number[-1] in "246" for number in shown(reader))
    assert abs(int(shown(reader)[0]) - top) < 10
    reader.unsift()
    assert abs(int(shown(reader)[0]) - top) < 10


def test_a_filter_keeps_or_leaves_out_and_follows_too() -> None:
    reader = reading(200)
    reader.sift(pattern=(re.compile("5$"), False))
    assert shown(reader) == [f"{n:04}" for n in range(105, 200, 10)]
    reader.take(log(400))
    assert shown(reader)[-1] == "0395"
    reader.sift(pattern=(re.compile("[0-8]$"), True))
    assert shown(reader)[-1] == "0399"


def test_a_filter_and_the_lens_work_together_and_searching_stays_inside() -> None:
    reader = reading(200)
    reader.sift(lens=True, pattern=(re.compile("0[02]4$"), True))
    assert reader.search(compiled("line"), 10)
    assert reader.jump(is_error, 10, back=True)
    assert reader.chosen().endswith("6")


def test_a_sieve_looks_at_a_big_log_piece_by_piece() -> None:
    sieve = Sieve(is_key)
    sieve.update(log(1000), budget=300)
    assert 0.2 < sieve.share < 0.4
    for _ in range(4):
        sieve.update(log(1000), budget=300)
    assert sieve.share == 1
    assert sieve.end - sieve.first == 300


def test_a_bar_that_is_drawn_over_is_looked_at_again() -> None:
    sieve = Sieve(says(re.compile("done")))
    lines = [LogLine(0, "begin", launches.NOW), LogLine(1, "41/64", launches.NOW)]
    sieve.update(launches.Window(lines))
    sieve.update(launches.Window([lines[0], LogLine(1, "64/64 done", launches.NOW)]))
    assert [line.text for line in sieve.slice(0, 9)] == ["64/64 done"]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=12), st.integers(1, 50))
def test_a_sieve_always_holds_exactly_what_passes(steps: list[tuple[int, int]], budget: int) -> None:
    sieve = Sieve(is_key)
    first = end = 0
    for more, gone in steps:
        end += more
        first = min(end, first + gone)
        sieve.update(log(end, first), budget)
    for _ in range(40):
        sieve.update(log(end, first), 50)
    expected = [line.number for line in log(end, first).slice(first, end) if is_key(line)]
    assert [line.number for line in sieve.slice(sieve.first, sieve.end)] == expected
    assert sieve.end - sieve.first == len(expected)


def test_searching_is_literal_where_the_text_is_no_expression_and_cares_for_capitals_if_there_are_any() -> None:
    broken, small, capital = compiled("a[b"), compiled("cuda"), compiled("CUDA")
    assert broken is not None
    assert broken.search("xa[bx")
    assert small is not None
    assert small.search("CUDA graphs")
    assert capital is not None
    assert not capital.search("cuda graphs")
    assert compiled("") is None


def test_one_key_press_looks_at_a_bounded_number_of_lines() -> None:
    looked = 0

    def never(_line: LogLine) -> bool:
        nonlocal looked
        looked += 1
        return False

    line = LogLine(0, "x", launches.NOW)

    class Endless(launches.Window):
        end = 10 * LIMIT

        def slice(self, start: int, stop: int) -> list[LogLine]:
            return [line] * (stop - start)

    assert find(Endless([]), 0, never, back=False) is None
    assert looked == LIMIT
