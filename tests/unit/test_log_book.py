"""The logbook: bounded, numbered for good, bars folded, frozen windows."""

from __future__ import annotations

import pytest

from tuimon.launch import logbook
from tuimon.launch.logbook import Logbook, Note


def test_old_lines_are_forgotten_and_numbers_never_start_again() -> None:
    book = Logbook(most_lines=2000)
    for number in range(10_000):
        assert book.add(b"line %d" % number, 1.0) == number
    window = book.window()
    assert window.end == 10_000
    assert 2000 <= window.end - window.first <= 2000 + 2 * 512
    assert window[window.first].text == f"line {window.first}"
    assert window[9_999].text == "line 9999"
    with pytest.raises(IndexError):
        window[window.first - 1]
    assert [line.number for line in window.slice(9_998, 20_000)] == [9_998, 9_999]


def test_bytes_are_bounded_too() -> None:
    book = Logbook(most_bytes=1_000_000)
    for _ in range(5_000):
        book.add(b"x" * 2_000, 1.0)
    window = book.window()
    assert (window.end - window.first) * 2_000 < 1_000_000 + 512 * 2_200


def test_the_logs_of_many_hosts_are_bounded_together() -> None:
    def fill() -> int:
        book = Logbook()
        for number in range(40_000):
            book.add(b"x" * 1000, float(number))
        window = book.window()
        return window.end - window.first

    alone = fill()
    try:
        logbook.share(64)
        among_many = fill()
    finally:
        logbook.share(1)
    assert alone * 1000 <= logbook.MOST_BYTES
    assert among_many * 1000 * 64 <= logbook.ALL_BYTES
    assert among_many > 3_000


def test_redraws_of_a_bar_take_one_line() -> None:
    book = Logbook()
    book.add(b"begin", 1.0)
    for step in range(100):
        book.add(b"load: %d/100" % step, 1.0 + step, Note("progress", bar="load"))
    book.add(b"end", 200.0)
    assert [line.text for line in book.window().slice(0, 99)] == ["begin", "load: 99/100", "end"]


def test_a_window_does_not_change_while_the_log_goes_on() -> None:
    book = Logbook()
    book.add(b"one", 1.0, Note("progress", bar="b"))
    window = book.window()
    book.add(b"one, redrawn", 2.0, Note("progress", bar="b"))
    for _ in range(2_000):
        book.add(b"more", 3.0)
    assert window.end == 1
    assert window[0].text == "one"


def test_lines_that_matter_outlive_their_neighbours() -> None:
    book = Logbook(most_lines=600)
    book.add(b"Load weight begin.", 1.0, Note("milestone", "load_begin"))
    for _ in range(5_000):
        book.add(b"noise", 2.0)
    assert [line.text for line in book.key_lines()] == ["Load weight begin."]


def test_a_line_is_shown_without_its_prefix_controls_and_secrets() -> None:
    book = Logbook()
    book.add(b"[2026-03-04 10:15:36.412 DP1 TP3 EP3] api_key='hush-hush-1' \x07\x1b]8;;evil\xe2\x80\xae\xff", 5.0)
    line = book.window()[0]
    assert line.clock == "10:15:36.412"
    assert line.rank == "DP1 TP3 EP3"
    assert line.time == pytest.approx(1772619336.412)
    assert line.text.startswith("api_key='***' ")
    assert "hush" not in (line.raw or "")
    assert all(char.isprintable() for char in line.text)
    assert line.raw is not None
    assert line.raw.startswith("[2026-03-04")


def test_a_very_long_line_is_cut() -> None:
    book = Logbook()
    book.add(b"y" * 200_000, 1.0)
    line = book.window()[0]
    assert len(line.text) == 4_000
    assert line.raw is not None
    assert len(line.raw) <= 16 * 1024
