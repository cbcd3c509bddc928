"""Colours that servers print: kept beside the text, which stays what it was without them."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.launch import colours
from tuimon.launch.colours import Coloured
from tuimon.launch.escapes import clean
from tuimon.launch.logbook import Logbook, Note
from tuimon.launch.reading import Reading
from tuimon.launch.segments import Splitter
from tuimon.launch.view import LogLine

PIECES = st.sampled_from(
    [
        b"\x1b[31m", b"\x1b[0m", b"\x1b[m", b"\x1b[1;38;5;196m", b"\x1b[48;2;1;2;3m", b"\x1b[38;2m", b"\x1b[38;5m",
        b"\x1b[2J", b"\x1b]0;title\x07", b"\x1b", b"\x1b[", b"\x1b[9999999999999m", b"\x1b[:;:m", b"\0", b"\xff",
        b"\r", b"\n", b"\r\n", b"\t", b" ", b"text", b"[2026-03-04 10:15:36", b"[20", "日本é".encode(), b"\xe6\x97",
        b"password=hunter2 ", b"INFO 11-30 03:10:41 [core.py:133] ",
    ]
)  # fmt: skip


def lines(text: bytes) -> list[LogLine]:
    reading = Reading()
    reading.begin(None, 0.0)
    reading.feed(text, 1.0)
    window = reading.lines()
    return list(window.slice(window.first, window.end))


def runs(line: LogLine) -> list[tuple[str, str]]:
    """(how it is coloured, the text) from end to end."""
    found = colours.runs(line.written, line.text) if line.written else ()
    edges = [*found, (len(line.text), "")]
    head = [("", line.text[: edges[0][0]])] if edges[0][0] else []
    return head + [(pen, line.text[at:end]) for (at, pen), (end, _) in pairwise(edges)]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"\x1b[31mred\x1b[0m plain", [("color(1)", "red"), ("", " plain")]),
        (b"\x1b[1;93mbright\x1b[22m b\x1b[39m c", [("bold color(11)", "bright"), ("color(11)", " b"), ("", " c")]),
        (b"\x1b[38;5;208morange\x1b[49;39m.", [("color(208)", "orange"), ("", ".")]),
        (b"\x1b[38;2;255;0;10;48:2:1:2:3mx", [("#ff000a on #010203", "x")]),
        (b"\x1b[4m\x1b[3mboth\x1b[24m one\x1b[m.", [("italic underline", "both"), ("italic", " one"), ("", ".")]),
        (b"\x1b[2J\x1b[31mscreen\x1b]0;title\x07 cleared", [("color(1)", "screen cleared")]),
        (b"\x1b[31ma\ttab", [("color(1)", "a    tab")]),
        (b"\x1b[1;36mINFO\x1b[0m:     Started", [("bold color(6)", "INFO"), ("", ":     Started")]),
    ],
)  # fmt: skip
def test_what_colours_a_line(written: bytes, shown: list[tuple[str, str]]) -> None:
    (line,) = lines(written + b"\n")
    assert runs(line) == shown


def test_colours_of_the_prefix_are_no_colours_of_the_message_and_no_line_colours_the_next() -> None:
    first, second = lines(
        b"[2026-03-04 10:15:36 TP0] \x1b[32mgreen\x1b[0m\n\x1b[35m[2026-03-04 10:15:36 TP1] all\nplain\n"
    )[:2]
    assert runs(first) == [("color(2)", "green")]
    assert runs(second) == [("color(5)", "all")]
    assert lines(b"\x1b[31mred\nplain\n")[1].written is None


def test_a_secret_in_colour_stays_a_secret() -> None:
    (line,) = lines(b"\x1b[33mapi_key=sk-abcdefghijklmnop123456\x1b[0m and more\n")
    assert "sk-abc" not in line.text
    assert runs(line) == [("", line.text)]


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_colours_change_nothing_of_what_is_read(text: bytes) -> None:
    coloured, bare = Splitter(), Splitter()
    assert coloured.feed(text) + coloured.flush() == bare.feed(clean(text)) + bare.flush() or b"\x1b" in clean(text)
    for line in lines(text + b"\n"):
        found = colours.runs(line.written, line.text) if line.written else ()
        places = [at for at, _ in found]
        assert places == sorted(set(places))
        assert all(0 <= at <= len(line.text) for at in places)


def test_a_line_of_a_hundred_thousand_colours_is_shown_plain_and_costs_little() -> None:
    began = time.process_time()
    lines(b"".join(b"\x1b[3%dm" % (n % 8) for n in range(100_000)) + b"text\n")
    (line,) = lines(b"".join(b"\x1b[3%dm" % (n % 8) for n in range(40_000)) + b"text\n")
    assert (line.text, line.written) == ("text", None)
    short = b"".join(b"\x1b[3%dmx" % (n % 8) for n in range(600)) + b"\n"
    for _ in range(1_000):
        (line,) = lines(short)[:1]
    assert len(colours.runs(line.written or b"", line.text)) <= colours.MOST
    assert time.process_time() - began < 5


def test_the_book_stays_bounded_with_colours() -> None:
    book = Logbook(most_bytes=1_000_000)
    for _ in range(5_000):
        text = Coloured(b"x" * 100)
        text.written = b"\x1b[31m" * 300
        book.plain(text, 1.0)
    window = book.window()
    assert (window.end - window.first) * 1_600 < 1_000_000 + 512 * 2_000


def test_the_book_stays_bounded_with_bars_whose_redraws_are_coloured() -> None:
    book = Logbook(most_bytes=1_000_000)
    for number in range(5_000):
        bar = Note(bar=f"bar {number}")
        book.add(b"10%", 1.0, bar)
        text = Coloured(b"20%")
        text.written = b"\x1b[31m20%" + b"\x1b[0m" * 300
        book.add(text, 1.0, bar)
    window = book.window()
    assert (window.end - window.first) * 1_200 < 1_000_000 + 512 * 1_600
