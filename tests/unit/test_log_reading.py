"""The whole reading: any bytes, any chunking; windows for other threads; logs that are replaced."""

from __future__ import annotations

import queue
import threading
import time
from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import sglang_lines as sg
from tuimon.engines.grammar import shipped
from tuimon.launch.events import LogReset, ServerFound
from tuimon.launch.logbook import Window
from tuimon.launch.reading import Reading
from tuimon.launch.view import LogLine

SAMPLES = [
    sample.encode() for grammar in shipped().grammars.values() for rule in grammar.rules for sample in rule.samples[:1]
]
LINES = st.one_of(st.sampled_from(SAMPLES), st.binary(max_size=60))
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b""])
TEXTS = st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=25).map(b"".join)


def read(text: bytes, cuts: list[int], engine: str | None) -> tuple[list[LogLine], bytes]:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine=engine) if engine else None, 1000.0)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in pairwise(edges):
        reading.feed(text[start:end], 1000.0)
    reading.finish(1000.0)
    window = reading.lines()
    told = msgspec.structs.replace(reading.told(1001.0), last_life_text=None)
    return list(window.slice(0, window.end)), msgspec.json.encode(told)


@settings(max_examples=250, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 1500), max_size=6), st.sampled_from([None, "sglang", "vllm", "torchrun"]))
def test_any_text_in_any_chunking_gives_the_same_lines(text: bytes, cuts: list[int], engine: str | None) -> None:
    assert read(text, cuts, engine)[0] == read(text, [], engine)[0]


@settings(max_examples=250, deadline=None)
@given(TEXTS)
def test_any_text_is_read_and_told_without_an_exception(text: bytes) -> None:
    reading = Reading()
    for engine in (None, "sglang", "vllm", "nonsense"):
        reading.begin(ServerFound(pid=7, engine=engine, argv=("x", "--tp", "banana")), 1000.0)
        reading.feed(text, 1000.0)
        reading.reset(LogReset(at=1001.0, why="truncated", offset=0))
        reading.feed(text, 1002.0, written=900.0)
        msgspec.json.encode(reading.told(1003.0))
        window = reading.lines()
        assert len(window.slice(window.first, window.end)) == window.end - window.first


def test_lines_made_to_be_slow_or_deep_are_neither() -> None:
    """Each of these took minutes or the recursion limit with a naive pattern; all together take a CPU second."""
    bar = b"a: 10%|#| 1/10 [00:01<00:09, 1it/s]"
    nasty = [
        b"1" * 100_000 + b"% |1/1 [", b"1%|" * 60_000, bar * 5_000, b"(" * 100_000 + b" pid=1) x", b"[20" * 60_000,
        b"\x1b[" * 100_000, b"server_args={" + b"'a': {" * 20_000, b"server_args=ServerArgs(" + b"a=((" * 30_000,
        b"api_key=" + b"a_" * 60_000 + b"key", b"://" + b"a:" * 60_000, b"Decode batch, " + b"accept len: 1, " * 9_000,
    ]  # fmt: skip
    start = time.process_time()
    for line in nasty:
        reading = Reading()
        reading.feed(line + b"\n", 1000.0)
        reading.told(1001.0)
        window = reading.lines()
        window.slice(window.first, window.end)
    assert time.process_time() - start < 10.0


def test_lines_before_the_engine_is_known_are_read_again() -> None:
    reading = Reading()
    reading.begin(None, 1000.0)
    reading.feed(b"\rLoading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.32it/s]\n", 1000.0)
    assert reading.told(1001.0).engine is None
    reading.feed(sg.stamped(9, "Load weight begin. avail mem=78.31 GB").encode(), 1005.0)
    view = reading.told(1006.0)
    assert view.engine == "SGLang"
    weights = next(phase for phase in view.phases if phase.name == "weights")
    assert (weights.count, weights.start) == (2, 1000.0)
    assert reading.lines()[0].rule == "load_progress"


def test_a_reset_marks_a_gap_and_numbers_go_on() -> None:
    reading = Reading()
    reading.begin(None, 1000.0)
    reading.feed(b"one\ntwo unfinish", 1000.0)
    reading.reset(LogReset(at=1001.0, why="rotated", offset=0, skipped=4096))
    reading.feed(b"three\n", 1002.0)
    lines = reading.lines().slice(0, 10)
    assert [(line.number, line.text, line.gap) for line in lines] == [
        (0, "one", False), (1, "two unfinish", False), (2, "the log was rotated, 4,096 bytes not seen", True),
        (3, "three", False),
    ]  # fmt: skip


def test_a_window_can_be_read_on_another_thread_while_the_log_grows() -> None:
    reading = Reading()
    reading.begin(None, 1000.0)
    windows: queue.SimpleQueue[Window | None] = queue.SimpleQueue()
    seen: list[int] = []

    def look() -> None:
        while (window := windows.get()) is not None:
            lines = window.slice(window.end - 50, window.end)
            seen.extend(line.number for line in lines if line.text == f"line {line.number}")

    thread = threading.Thread(target=look)
    thread.start()
    for block in range(200):
        reading.feed(b"".join(b"line %d\n" % (block * 100 + index) for index in range(100)), 1000.0)
        windows.put(reading.lines())
    windows.put(None)
    thread.join()
    assert len(seen) == 200 * 50


def test_the_server_is_taken_from_its_process_where_the_log_says_nothing() -> None:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine="llama.cpp", version="b1", model="/m.gguf"), 1000.0)
    view = reading.told(1001.0)
    assert (view.engine, view.version, view.model, view.phase, view.last_life) == (
        "llama.cpp", "b1", "/m.gguf", None, None,
    )  # fmt: skip


def test_years_and_days_that_a_time_lacks_are_the_nearest_ones() -> None:
    reading = Reading(own_clock=True)
    reading.feed(b"(A pid=1) INFO 12-31 23:59:58 [a.py:1] Loading weights took 1 seconds\n", 0.0)
    reading.feed(b"(A pid=1) INFO 01-01 00:00:02 [a.py:1] Graph capturing finished in 4 secs\n", 0.0)
    assert reading.clock.latest is not None
    assert reading.first is not None
    assert reading.clock.latest - reading.first == 4.0
