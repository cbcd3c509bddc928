"""Which lines are a sign of life: new text, but not answers to health questions, heartbeats or a stale bar."""

from __future__ import annotations

import pytest

from tests.unit import sglang_lines as sg
from tuimon.launch.events import ServerFound
from tuimon.launch.reading import Reading


def reading_of(engine: str, *, ready: bool = True) -> Reading:
    reading = Reading()
    reading.begin(ServerFound(pid=7, engine=engine), 1000.0)
    if ready:
        reading.feed(b"INFO:     Application startup complete.\n", 1001.0)
    return reading


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("sglang", '[2026-03-04 10:15:11] INFO:     127.0.0.1:51530 - "GET /health HTTP/1.1" 200 OK'),
        ("sglang", '[2026-03-04 10:15:11] INFO:     127.0.0.1:51530 - "GET /health HTTP/1.1" 503 Service Unavailable'),
        ("sglang", '[2026-03-04 10:15:11] INFO:     10.1.2.3:51530 - "GET /model_info HTTP/1.1" 200 OK'),
        ("sglang", "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, #running-req: 0, "),
        ("sglang", "[2026-03-04 10:15:40] Health check failed. Server couldn't get a response from detokenizer"),
        ("vllm", 'INFO:     127.0.0.1:60490 - "GET /health HTTP/1.1" 200 OK'),
        ("vllm", 'INFO:     127.0.0.1:60490 - "GET /v1/models HTTP/1.1" 200 OK'),
        ("vllm", "(APIServer pid=1) DEBUG 11-30 03:10:41 [v1/u.py:6] Waiting for 1 core engine proc(s) to start."),
        ("vllm", "INFO 11-30 03:10:41 [s.py:8] No available shared memory broadcast block found in 60 seconds."),
        ("tgi", "2026-01-08T14:02:49.1Z  INFO text_generation_launcher: Waiting for shard to be ready... rank=1"),
    ],
)  # fmt: skip
def test_a_line_that_only_answers_or_waits_is_no_life(engine: str, line: str) -> None:
    reading = reading_of(engine)
    before = reading.told(1002.0).last_life
    reading.feed(line.encode() + b"\n", 1050.0)
    view = reading.told(1051.0)
    assert view.last_life == before
    assert view.last_text == 1050.0
    assert view.error is None


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("[monitor pid=4711] rank 3 alive, {} s in barrier 17, rss 8.1 GB", False),
        ("2026/03/04 10:15:{} waiting for the others", False),
        ("3/8 ranks are there, {} s", False),
        ("fetched {}/600 blocks", True),
        ("fetched {} % of the weights", True),
        ("the sidecar has {}.5 GB of 600", True),
        ("[2026-03-04 10:15:{}] step 3{} loss 2.31", True),
        ("epoch=1 step={} loss=2.31", True),
        ("rank 3 alive, {}s in barrier", False),
        ("rank 3 alive since {} minutes, 17330000{}", False),
        ("10.0.0.7:500{} asks for rank 3", False),
    ],
)
def test_a_line_that_comes_again_and_again_is_no_news_unless_what_it_counts_moves(line: str, news: bool) -> None:
    reading = reading_of("sglang", ready=False)
    for i in range(4):
        reading.feed(line.replace("{}", str(10 + 5 * i)).encode() + b"\n", 1050.0 + 5 * i)
    told = reading.told(1066.0)
    assert told.last_life == 1065.0
    assert told.last_news == (1065.0 if news else 1050.0)


def test_a_number_that_falls_now_and_then_counts_nothing() -> None:
    reading = reading_of("sglang", ready=False)
    for i, used in enumerate((8100, 8140, 8120, 8150, 8160, 8170)):
        reading.feed(b"rank 3 alive, %d MB in use\n" % used, 1050.0 + 5 * i)
    assert reading.told(1080.0).last_news == 1055.0


def test_what_several_ranks_say_together_is_said_once() -> None:
    reading = reading_of("sglang", ready=False)
    for rank in range(8):
        reading.feed(f"[2026-03-04 10:15:11 TP{rank}] the pool of this rank is there\n".encode(), 1050.0 + rank / 5)
    assert reading.told(1052.0).last_news == 1050.0 + 7 / 5


def test_a_heartbeat_is_told_apart() -> None:
    reading = reading_of("vllm")
    reading.feed(
        b"(E pid=4) INFO 11-30 03:10:41 [a.py:1] No available shared memory broadcast block found in 60 seconds\n", 9.0
    )
    reading.feed(
        b"(EngineCore pid=4) INFO 11-30 03:10:41 [a.py:1] Waiting for 1 core engine proc(s) to start\n", 1060.0
    )
    view = reading.told(1061.0)
    assert view.last_heartbeat == 1060.0
    assert view.heartbeat_text == "Waiting for 1 core engine proc(s) to start"


def test_any_other_new_line_is_life() -> None:
    reading = reading_of("sglang")
    reading.feed(b"[2026-03-04 10:15:11] something that no grammar knows\n", 1050.0)
    view = reading.told(1051.0)
    assert view.last_life == 1050.0
    assert view.last_life_text is not None
    assert "no grammar knows" in view.last_life_text


def test_our_questions_are_marked_in_the_lines() -> None:
    reading = reading_of("sglang")
    reading.feed(b'[2026-03-04 10:15:11] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK\nother\n', 1050.0)
    window = reading.lines()
    assert [line.ours for line in window.slice(window.end - 2, window.end)] == [True, False]


# --- bars -------------------------------------------------------------------------------------------------------------


def loading() -> Reading:
    reading = Reading()
    reading.begin(None, 1000.0)
    reading.feed((sg.arguments(sg.OLD_ARGS) + sg.every(13, "Load weight begin. avail mem=94 GB")).encode(), 1000.0)
    return reading


def test_a_bar_without_a_line_end_shows_counter_rate_and_eta() -> None:
    reading = loading()
    for step in range(1, 5):
        reading.feed(sg.bar("Multi-thread loading shards", step, 16).encode(), 1000.0 + 10 * step)
    view = reading.told(1042.0)
    weights = next(phase for phase in view.phases if phase.name == "weights")
    assert (weights.count, weights.total, weights.state) == (4, 16, "running")
    assert weights.rate == pytest.approx(0.1)
    assert weights.eta == pytest.approx(118.0), "12 left at 0.1/s, 2 s of them are over"
    assert view.last_life == 1040.0


def test_a_bar_redrawn_with_the_same_counter_is_no_life() -> None:
    reading = loading()
    reading.feed(sg.bar("Multi-thread loading shards", 3, 16).encode(), 1010.0)
    for second in range(20, 60, 10):
        stale = b"\rMulti-thread loading shards:  18%% Completed | 3/16 [00:%02d<00:40,  3.00s/it]" % second
        reading.feed(stale, 1000.0 + second)
    assert reading.told(1060.0).last_life in {1010.0, 1020.0}, "one more for a second writer, then no more"


def test_a_late_redraw_by_the_bars_own_monitor_is_no_life() -> None:
    reading = reading_of("torchrun", ready=False)
    reading.feed(b"\r  0%|          | 20/100000 [00:00<58:52, 28.30it/s]", 1009.0)
    reading.feed(b"\r  0%|          | 21/100000 [00:19<58:52, 28.30it/s]", 1028.0)
    assert reading.told(1030.0).last_life == 1009.0


def test_redraws_take_one_line_of_the_log_and_the_last_one_can_be_seen() -> None:
    reading = loading()
    before = reading.lines().end
    for step in range(1, 10):
        reading.feed(sg.bar("Multi-thread loading shards", step, 16).encode(), 1000.0 + step)
    window = reading.lines()
    assert window.end == before + 1
    assert "9/16" in window[window.end - 1].text
    assert window[window.end - 1].severity == "progress"


def test_a_line_written_behind_a_bar_is_read_too() -> None:
    reading = reading_of("torchrun", ready=False)
    reading.feed(b"\r100%|##########| 200/200 [00:06<00:00, 36.35it/s]training done rank 1\n", 1010.0)
    view = reading.told(1011.0)
    assert view.ended is not None
    assert not view.serves


def test_the_bar_of_a_download_is_progress_of_the_download() -> None:
    reading = loading()
    reading.feed("\rmodel-1.safetensors:  12%|█▏        | 596M/4.98G [00:06<00:46, 94.1MB/s]".encode(), 1010.0)
    download = next(phase for phase in reading.told(1011.0).phases if phase.name == "download")
    assert (download.count, download.total) == (596e6, 4.98e9)
