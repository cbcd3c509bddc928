"""Bytes of a log → segments, however they are cut on their way."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.launch.segments import LONGEST, Segment, Splitter

PIECES = st.sampled_from(
    [
        b"\r", b"\n", b"\r\n", b"text", b" ", b"\t", b"\x1b[1;36m", b"\x1b]0;title\x07", b"\x1b]", b"\x1b", b"\0",
        b"\xff", b"[2026-03-04 10:15:36", b"[2026-03-04 10:15:36 TP1] Load weight begin.", b"[20", "█▌".encode(),
    ]
)  # fmt: skip


def split(text: bytes, cuts: list[int]) -> list[Segment]:
    splitter = Splitter()
    segments: list[Segment] = []
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in pairwise(edges):
        segments += splitter.feed(text[start:end])
    return segments + splitter.flush()


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=30).map(b"".join), st.lists(st.integers(0, 400), max_size=8))
def test_any_chunking_gives_the_same_segments_as_the_whole(text: bytes, cuts: list[int]) -> None:
    assert split(text, cuts) == split(text, [])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_any_bytes_in_any_chunking_too(text: bytes, cuts: list[int]) -> None:
    assert split(text, cuts) == split(text, [])


def test_lines_are_numbered_by_the_line_feeds_before_them() -> None:
    assert split(b"a\n\nb\r\nc", []) == [(b"a", 0), (b"b", 2), (b"c", 3)]


def test_each_redraw_of_a_bar_is_a_segment_and_the_blanks_that_clear_it_are_none() -> None:
    text = b"\rbar: 10%\rbar: 20%\r        \r{'loss': 1}\n"
    assert [piece for piece, _ in split(text, [])] == [b"bar: 10%", b"bar: 20%", b"{'loss': 1}"]


def test_a_line_glued_to_a_bar_by_another_process_is_a_segment_of_its_own() -> None:
    text = b"\rCapturing batches: 38%|#| 3/8 [00:02<00:03][2026-03-04 10:15:36 TP1] Registering 1560\n"
    assert [piece[:20] for piece, _ in split(text, [])] == [b"Capturing batches: 3", b"[2026-03-04 10:15:36"]


def test_a_bar_without_a_line_end_can_be_seen_at_once() -> None:
    splitter = Splitter()
    assert splitter.feed(b"\rMulti-thread loading shards:   6% Completed | 1/17 [00:02<00:33,  2.11s/it]") == []
    assert splitter.pending.startswith(b"Multi-thread loading shards:   6%")


def test_colours_and_the_hole_of_a_truncated_file_are_removed() -> None:
    text = b"\0" * 4096 + b"\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m INFO msg\n"
    assert split(text, []) == [(b"(Worker_TP0 pid=7) INFO msg", 0)]


def test_a_line_of_100_mb_is_cut_and_costs_little_memory() -> None:
    splitter = Splitter()
    block = b"x" * 1_000_000
    tracemalloc.start()
    for _ in range(100):
        assert splitter.feed(block) == []
    segments = splitter.feed(b"\nnext\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(piece) for piece, _ in segments] == [LONGEST, 4]
    assert peak < 8 * 1024 * 1024
