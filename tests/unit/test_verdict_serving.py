"""Ready, serving, failing: silence is health here, undone work is not."""

from __future__ import annotations

import pytest

from tests.judging import Story
from tuimon.launch.events import LogStat, Metrics
from tuimon.launch.told import LogError, Timer
from tuimon.launch.view import RED, ServingView


def _ready(ranks: int = 2) -> Story:
    story = Story(ranks)
    story.everybody("imports", "idle")
    story.runs(5)
    story.tells(ready=story.now)
    story.everybody("sleeps", "idle")
    story.asks(200)
    story.runs(1)
    return story


def _metrics(story: Story, running: int, tokens: float) -> None:
    story.apply(
        Metrics(at=story.now, values={"sglang:num_running_reqs": running, "sglang:generation_tokens_total": tokens})
    )


def test_the_ready_line_makes_ready() -> None:
    story = Story(1)
    story.runs(3)
    story.tells(ready=story.now)
    assert story.runs(1).state == "ready"


def test_the_first_200_of_health_makes_ready() -> None:
    story = Story(1)
    story.runs(3)
    story.asks(503)
    assert story.runs(1).state == "starting"
    story.asks(200)
    assert story.runs(1).state == "ready"


def test_a_path_that_only_proves_http_does_not_where_a_log_would_tell() -> None:
    story = Story(1)
    story.runs(1)
    story.asks(200, path="/model_info")
    assert story.runs(1).state == "starting"
    blind = Story(1, log=False)
    blind.runs(1)
    blind.asks(200, path="/model_info")
    assert blind.runs(1).state == "ready"


def test_a_warm_up_that_hangs_behind_an_open_port_is_a_stall() -> None:
    story = Story(1)
    story.everybody("sleeps", "idle")
    for _ in range(30):
        story.asks(200, path="/model_info")
        story.runs(1)
    assert story.launch.verdict.state == "stalled"


def test_our_port_answered_by_another_process_is_not_ready_and_says_so() -> None:
    story = Story(1)
    story.runs(2)
    story.asks(200, listener=4711)
    verdict = story.runs(1)
    assert verdict.state == "starting"
    assert "port_taken" in verdict.alarms
    assert any("4711" in finding for finding in story.launch.snapshot(story.now).findings)


def test_an_idle_server_is_ready_for_ever() -> None:
    story = _ready()
    for _ in range(30):
        story.asks(200)
        story.runs(10)
    assert set(story.states()) <= {"starting", "quiet", "ready"}


def test_tokens_make_serving() -> None:
    story = _ready()
    story.tells(last_tokens=story.now)
    assert story.runs(1).state == "serving"
    story.runs(40)
    assert story.launch.verdict.state == "ready"


def test_counters_of_metrics_make_serving() -> None:
    story = _ready()
    _metrics(story, 0, 100)
    assert story.runs(1).state == "ready"
    _metrics(story, 0, 150)
    assert story.runs(1).state == "serving"


def test_requests_that_run_without_a_token_fail() -> None:
    story = _ready()
    for _ in range(6):
        _metrics(story, 2, 100)
        story.runs(5)
        story.asks(200)
    verdict = story.launch.verdict
    assert (verdict.state, verdict.kind) == ("failing", "hang while serving")
    assert "2 requests running" in verdict.headline
    assert verdict.wants_stacks


def test_a_long_prefill_on_the_gpu_is_no_failure() -> None:
    story = _ready()
    story.gpus = ["works", "works"]
    for _ in range(12):
        _metrics(story, 2, 100)
        story.runs(5)
    assert not set(story.states()) & RED


def test_a_gauge_that_is_no_longer_fresh_proves_nothing() -> None:
    story = _ready()
    _metrics(story, 2, 100)
    story.runs(60)
    assert not set(story.states()) & RED


def test_health_that_times_out_while_nothing_works_fails() -> None:
    story = _ready()
    for _ in range(8):
        story.runs(3)
        story.asks(error="timeout")
    verdict = story.launch.verdict
    assert verdict.state == "failing"
    assert "times out" in verdict.headline


def test_it_hangs_before_its_first_good_answer_but_had_said_not_yet() -> None:
    story = Story(2)
    story.runs(5)
    story.asks(503)
    story.tells(ready=story.now)
    story.everybody("sleeps", "idle")
    for _ in range(8):
        story.runs(3)
        story.asks(error="timeout")
    assert story.launch.verdict.state == "failing"
    assert "not_reachable" not in story.launch.verdict.alarms


def test_health_that_times_out_under_load_is_no_failure() -> None:
    story = _ready()
    story.gpus = ["works", "works"]
    for _ in range(20):
        story.runs(3)
        story.asks(error="timeout")
    assert not set(story.states()) & RED


def test_a_closed_port_fails_sooner() -> None:
    story = _ready()
    for _ in range(12):
        story.asks(error="refused")
        story.runs(1)
    assert story.launch.verdict.kind == "port closed"


def test_a_port_that_never_answered_is_not_reachable_and_no_failure() -> None:
    story = Story(1)
    story.runs(3)
    story.tells(ready=story.now)
    for _ in range(15):
        story.asks(error="refused")
        story.runs(2)
    assert story.launch.verdict.state == "ready"
    assert "not_reachable" in story.launch.verdict.alarms


def test_a_spinning_gpu_without_a_token_fails_where_idleness_was_calm() -> None:
    story = _ready()
    story.runs(15)
    story.tells(last_tokens=story.now)
    story.everybody("spins", "spins")
    story.runs(15)
    assert not set(story.states()) & RED
    verdict = story.runs(10)
    assert (verdict.state, verdict.kind) == ("failing", "collective spin")


def test_a_spinning_gpu_with_pending_requests_fails() -> None:
    story = _ready()
    story.everybody("spins", "spins")
    for _ in range(6):
        _metrics(story, 1, 100)
        story.runs(5)
    assert story.launch.verdict.kind == "collective spin"


def test_a_server_that_always_spins_while_idle_is_healthy() -> None:
    story = Story(2)
    story.everybody("spins", "spins")
    story.tells(ready=story.now)
    story.runs(120)
    assert not set(story.states()) & RED


def test_a_spin_that_makes_tokens_is_work() -> None:
    story = _ready()
    story.everybody("spins", "spins")
    for _ in range(10):
        story.tells(last_tokens=story.now)
        story.runs(5)
    assert not set(story.states()) & RED


def test_requests_that_wait_unread_fail() -> None:
    story = _ready()
    story.root.more = {"unread_bytes": 900}
    story.runs(15)
    assert not set(story.states()) & RED
    assert story.runs(10).state == "failing"


def test_a_rank_stopped_while_serving_is_frozen() -> None:
    story = _ready()
    story.ranks[1].does = "stops"
    assert story.runs(2).state == "frozen"


def test_a_rank_killed_while_serving_is_certain_and_failing_while_the_port_answers() -> None:
    story = _ready()
    story.ranks[1].does = "zombie"
    verdict = story.runs(2)
    assert verdict.state == "stalled"
    assert verdict.certain
    story.asks(200)
    assert story.runs(1).state == "failing"


def test_vllms_status_line_that_just_stops_is_a_hang() -> None:
    story = _ready()
    story.tells(engine="vllm", serving=ServingView(2, 0, 93.0, None, story.now), last_tokens=story.now)
    assert story.runs(20).state not in RED
    assert story.runs(10).state == "failing"


def test_and_sooner_after_one_that_told_of_requests_without_a_token() -> None:
    story = _ready()
    story.tells(engine="vllm", serving=ServingView(2, 0, 93.0, None, story.now), last_tokens=story.now)
    story.runs(10)
    story.tells(serving=ServingView(2, 0, 0.0, None, story.now))
    assert story.runs(9).state not in RED
    assert story.runs(7).state == "failing"


def test_a_status_line_that_comes_seldom_is_none_that_stopped_where_a_gauge_says_that_nobody_asks() -> None:
    story = _ready()
    story.tells(engine="vllm", serving=ServingView(2, 0, 93.0, None, story.now), last_tokens=story.now)
    for _ in range(20):
        _metrics(story, 0, 100)
        story.runs(5)
    assert not set(story.states()) & RED


def test_bytes_that_lay_unread_while_tokens_came_are_nobodys_request() -> None:
    story = _ready()
    story.ranks[0].more = {"unread_bytes": 40}
    for _ in range(3):
        story.tells(last_tokens=story.now)
        story.runs(10)
    assert story.runs(300).state not in RED


def test_vllms_last_status_line_says_zero_and_is_no_hang() -> None:
    story = _ready()
    story.tells(engine="vllm", serving=ServingView(0, 0, 0.0, None, story.now), last_tokens=story.now)
    assert story.runs(120).state == "ready"


def test_status_lines_with_requests_and_no_tokens_are_a_hang() -> None:
    story = _ready()
    for _ in range(4):
        story.tells(serving=ServingView(0, 3, 0.0, None, story.now))
        story.runs(10)
    assert story.launch.verdict.state == "failing"
    assert "3 requests" in story.launch.verdict.headline


def test_a_server_that_writes_that_it_waits_hangs() -> None:
    story = _ready()
    story.runs(15)
    story.tells(last_heartbeat=story.now, heartbeat_text="No available shared memory broadcast block in 60 seconds")
    assert story.runs(10).state == "failing"


def test_its_soft_watchdog_tells_a_hang() -> None:
    story = _ready()
    story.runs(15)
    story.tells(error=LogError(line=1, text="watchdog timeout (soft)", kind="watchdog", at=story.now, fatal=False))
    assert story.runs(10).state == "failing"


def test_a_dead_engine_behind_an_open_port_is_failing() -> None:
    story = _ready()
    story.tells(fatal=LogError(line=1, text="EngineDeadError", kind="engine_died", at=story.now, fatal=True))
    story.tells(ready=story.now - 5)
    assert story.runs(2).state == "crashed"
    story.runs(5)
    story.asks(200)
    assert story.runs(1).state == "failing"


def test_a_health_question_that_needs_a_key_is_not_reachable() -> None:
    story = _ready()
    story.asks(401)
    assert "not_reachable" in story.runs(1).alarms


def test_the_cpu_of_a_server_without_gpus_gets_more_patience() -> None:
    story = _ready(1)
    story.gpus = []
    story.everybody("spins")
    for _ in range(8):
        _metrics(story, 1, 100)
        story.runs(5)
    assert not set(story.states()) & RED
    for _ in range(6):
        _metrics(story, 1, 100)
        story.runs(5)
    assert story.launch.verdict.state == "failing"


def test_a_useless_draft_model_is_an_alarm_beside_serving() -> None:
    story = _ready()
    story.tells(last_tokens=story.now, useless_draft=True)
    verdict = story.runs(1)
    assert verdict.state == "serving"
    assert "useless_draft" in verdict.alarms
    assert any("draft model is not working" in finding for finding in story.launch.snapshot(story.now).findings)


def test_a_log_that_stays_empty_while_all_works_is_buffered() -> None:
    story = Story(1, log=False)
    story.log_stat = LogStat(path="/x.log", size=0, mtime=story.now, inode=1)
    story.runs(50)
    assert story.launch.snapshot(story.now).findings == ()
    story.runs(20)
    assert any("PYTHONUNBUFFERED" in finding for finding in story.launch.snapshot(story.now).findings)
    assert not set(story.states()) & RED


def test_memory_held_by_an_earlier_launch_is_said_before_ready() -> None:
    story = Story(1)
    story.strangers = {4711: "sglang::scheduler_TP0"}
    verdict = story.runs(2)
    assert "gpu_strangers" in verdict.alarms
    assert any("4711" in finding for finding in story.launch.snapshot(story.now).findings)


@pytest.mark.parametrize(("passed", "left"), [(10, "7 m 50 s"), (400, "1 m 20 s")])
def test_the_servers_own_timer_counts_down(passed: int, left: str) -> None:
    story = Story(1)
    story.tells(
        timers=(
            Timer("load barrier", story.now, 480, "kills the waiting ranks"),
            Timer("NCCL", story.now, 600, "aborts"),
        )
    )
    assert story.runs(passed).countdown == f"load barrier kills the waiting ranks in {left}"
