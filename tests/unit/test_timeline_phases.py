"""Phases: what came, what runs, what is missing, what must come next."""

from __future__ import annotations

from tests.unit import sglang_lines as sg
from tuimon.launch.events import LogReset, ServerFound
from tuimon.launch.reading import Reading
from tuimon.launch.told import Told
from tuimon.launch.view import PhaseView


def read(text: str, at: float = 1000.0) -> Reading:
    reading = Reading()
    reading.begin(None, at)
    reading.feed(text.encode(), at)
    return reading


def told(text: str, now: float = 1100.0) -> Told:
    return read(text).told(now)


def states(view: Told) -> dict[str, str]:
    return {phase.name: phase.state for phase in view.phases}


def phase(view: Told, name: str) -> PhaseView:
    return next(phase for phase in view.phases if phase.name == name)


def test_a_launch_that_stops_behind_its_graphs_names_the_draft_model_as_next() -> None:
    view = told(sg.OLD)
    assert (view.phase, view.phase_running) == ("CUDA graphs", False)
    assert view.next_expected is not None
    assert view.next_expected.milestone == "draft model load"
    assert view.next_expected.because == "expected (speculative_algorithm=EAGLE3), not seen"
    assert phase(view, "draft model load").state == "expected"
    assert view.missing == ()
    assert list(states(view)) == [
        "arguments", "distributed init", "weights", "KV cache", "CUDA graphs", "draft model load", "draft graphs",
        "HTTP server", "warm-up", "ready",
    ]  # fmt: skip


def test_a_draft_model_that_later_phases_have_overtaken_is_missing() -> None:
    view = told(sg.OLD + sg.up(40))
    missing = {one.milestone: one.because for one in view.missing}
    assert missing["draft model load"] == "expected (speculative_algorithm=EAGLE3), not seen"
    assert states(view)["draft model load"] == "missing"


def test_a_draft_model_that_loads_behind_the_graphs_is_done_and_not_the_target_again() -> None:
    view = told(sg.OLD + sg.draft(30) + sg.pool(32) + sg.draft_graphs(33) + sg.up(40))
    assert view.missing == ()
    assert view.next_expected is None
    assert states(view)["draft model load"] == "done"
    assert states(view)["draft KV cache"] == "done"
    assert view.ready is not None


def test_a_draft_model_that_stops_in_its_load_is_running() -> None:
    view = told(sg.OLD + sg.every(30, "Load weight begin. avail mem=19.00 GB"))
    assert (view.phase, view.phase_running) == ("draft model load", True)
    assert view.next_expected is None


def test_in_newer_versions_the_draft_model_is_expected_before_the_kv_cache() -> None:
    view = told(sg.arguments(sg.NEW_ARGS) + sg.begin())
    assert view.next_expected is not None
    assert view.next_expected.milestone == "draft model load"
    assert told(sg.NEW).missing == ()
    assert told(sg.NEW).ready is not None


def test_nothing_is_expected_of_a_draft_where_speculation_is_off_or_needs_none() -> None:
    for extra in ("speculative_algorithm=None", "speculative_algorithm='NGRAM'"):
        view = told(sg.arguments(extra) + sg.begin() + sg.pool(21) + sg.graphs(22) + sg.up(40))
        assert "draft model load" not in states(view)
        assert view.missing == ()


def test_without_graphs_none_are_expected() -> None:
    view = told(sg.arguments("disable_cuda_graph=True") + sg.begin() + sg.pool(21))
    assert "CUDA graphs" not in states(view)
    assert view.next_expected is not None
    assert view.next_expected.milestone == "HTTP server"


def test_a_second_node_never_says_fired_up() -> None:
    view = told(sg.arguments("nnodes=2, node_rank=1") + sg.begin())
    assert "HTTP server" not in states(view)
    assert view.ranks_expected == 4


def test_a_log_level_that_hides_milestones_proves_nothing() -> None:
    view = told(sg.arguments("log_level='warning', speculative_algorithm='EAGLE3'"))
    assert view.milestones_hidden
    assert view.missing == ()
    assert view.next_expected is None


def test_a_log_whose_middle_was_skipped_misses_nothing() -> None:
    reading = read(sg.OLD)
    reading.reset(LogReset(at=1001.0, why="skipped", offset=10, skipped=1000))
    reading.feed(sg.up(40).encode(), 1002.0)
    assert reading.told(1003.0).missing == ()


def test_the_command_line_tells_what_to_expect_before_the_log_does() -> None:
    reading = Reading()
    argv = (
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "/m",
        "--tp",
        "8",
        "--speculative-algorithm",
        "EAGLE3",
    )
    reading.begin(ServerFound(pid=7, engine="sglang", argv=argv), 1000.0)
    view = reading.told(1001.0)
    assert (view.engine, view.model, view.shape, view.ranks_expected) == ("SGLang", "/m", "tp 8 · EAGLE3", 8)
    assert "draft model load" in states(view)


def test_the_argument_dump_tells_who_is_launched() -> None:
    view = told(sg.OLD)
    assert (view.engine, view.model, view.shape) == ("SGLang", "/models/Kimi-K2.5", "tp 8 · EAGLE3")
    assert view.ranks == tuple(f"TP{rank}" for rank in range(8))


def test_the_rank_that_lacks_what_its_peers_have_is_a_suspect() -> None:
    text = sg.arguments(sg.OLD_ARGS) + sg.begin().replace(
        "10:00:20 TP3] Load weight end.", "10:00:20 TP3] Something else."
    )
    view = told(text, now=1012.0)
    assert [(suspect.rank, suspect.reason) for suspect in view.laggards] == [
        ("TP3", "no “Load weight end” yet, which TP0 had 12 s ago")
    ]
    assert (view.phase, view.phase_running) == ("weights", True)
    assert [phase.note for phase in view.phases if phase.name == "weights"] == ["TP3 not yet"]
    assert [timer.name for timer in view.timers] == ["load barrier"]


def test_a_rank_is_given_some_seconds_before_it_is_a_suspect() -> None:
    text = sg.arguments(sg.OLD_ARGS) + sg.begin().replace("TP3] Load weight end.", "TP3] Something else.")
    assert told(text, now=1002.0).laggards == ()


def test_a_line_that_few_ranks_have_makes_nobody_a_suspect() -> None:
    text = sg.arguments(sg.OLD_ARGS) + sg.every(9, "Init torch distributed begin.")
    text += sg.stamped(12, "Init torch distributed ends. mem usage=0.42 GB", "TP0")
    assert told(text, now=1060.0).laggards == ()


def test_the_load_barrier_ends_when_all_ranks_have_loaded() -> None:
    assert told(sg.OLD).timers == ()


def test_a_second_launch_in_the_same_file_begins_anew() -> None:
    reading = read(sg.NEW)
    assert reading.told(1001.0).ready is not None
    reading.feed(sg.arguments(sg.OLD_ARGS).encode(), 1002.0)
    reading.feed(sg.begin().encode(), 1003.0)
    view = reading.told(1004.0)
    assert view.ready is None
    assert view.phase == "weights"
    assert reading.lines().first == 0, "the lines of the first launch stay"


def test_phases_of_a_log_that_is_read_late_have_the_times_of_the_log() -> None:
    reading = Reading()
    reading.begin(None, 5000.0)
    reading.feed(sg.OLD.encode(), 5000.0, written=4900.0)
    view = reading.told(5001.0)
    # The last line (second 26) was written at 4900.
    weights = phase(view, "weights")
    assert (weights.start, weights.end) == (4887.0, 4894.0)
    assert view.phase_since == 4900.0
    assert view.last_life == 4900.0


def test_a_log_that_is_followed_live_is_timed_by_our_clock_whatever_its_own_says() -> None:
    reading = Reading()
    reading.begin(None, 1000.0)
    lines = sg.OLD.splitlines(keepends=True)
    for index, line in enumerate(lines):
        jump = line.replace("2026-03-04", "2026-03-03") if index > 20 else line
        reading.feed(jump.encode(), 1000.0 + index)
    view = reading.told(2000.0)
    assert view.last_life == 1000.0 + len(lines) - 1
    end = phase(view, "CUDA graphs").end
    assert end == 1000.0 + len(lines) - 1
