"""What kind of hang, who is suspect, and what to press."""

from __future__ import annotations

import pytest

from tests.judging import Rank, hung
from tuimon.launch.events import CollectiveCount, Collectives, Thread
from tuimon.launch.view import Missing, Suspect, Verdict
from tuimon.ui.pressing import pressing


def _suspects(verdict: Verdict) -> list[str | None]:
    return [suspect.rank for suspect in verdict.suspects]


def test_everybody_asleep_is_a_host_deadlock() -> None:
    verdict = hung().runs(25)
    assert (verdict.state, verdict.kind) == ("stalled", "host deadlock")
    assert verdict.suspects == ()


def test_a_spinning_collective_names_the_rank_whose_gpu_is_idle() -> None:
    story = hung(4, does="spins", gpus="spins")
    story.ranks[2].does = "sleeps"
    assert story.gpus is not None
    story.gpus[2] = "idle"
    verdict = story.runs(25)
    assert (verdict.state, verdict.kind) == ("spinning", "collective spin")
    assert _suspects(verdict) == ["TP2"]
    assert "GPUs 0-1,3 spin" in verdict.headline
    assert "c" in pressing(verdict.advice)


def test_the_rank_whose_gpu_is_idle_is_behind_whatever_its_host_does() -> None:
    story = hung(3, does="spins", gpus="spins")
    story.ranks[1].more = {"cpu": 0.4, "state": "R"}
    assert story.gpus is not None
    story.gpus[1] = "idle"
    verdict = story.runs(25)
    assert _suspects(verdict) == ["TP1"]
    assert "its GPU 1 is at 0 %" in verdict.suspects[0].reason


def test_all_spin_so_all_disagree() -> None:
    verdict = hung(2, does="spins", gpus="spins").runs(25)
    assert verdict.kind == "collective spin"
    assert _suspects(verdict) == ["TP0", "TP1"]


def test_a_busy_host_without_gpu_work_spins() -> None:
    story = hung(does="spins")
    story.tells(phase="CUDA graphs")
    verdict = story.runs(25)
    assert (verdict.state, verdict.kind) == ("spinning", "busy wait")


def test_a_busy_host_in_communicator_init() -> None:
    story = hung(does="spins")
    story.ranks[1].does = "sleeps"
    story.tells(phase="distributed init", phase_running=True)
    verdict = story.runs(25)
    assert (verdict.state, verdict.kind) == ("spinning", "communicator init wait")
    assert _suspects(verdict) == ["TP1"]


def test_a_rendezvous_waits_for_the_rank_that_does_not_poll() -> None:
    story = hung(does="polls")
    story.ranks[1].does = "sleeps"
    story.tells(phase="distributed init", phase_running=True)
    verdict = story.runs(25)
    assert (verdict.state, verdict.kind) == ("stalled", "rendezvous wait")
    assert _suspects(verdict) == ["TP1"]


def test_polling_outside_init_waits_for_a_rank() -> None:
    story = hung(does="polls")
    story.ranks[1].does = "sleeps"
    story.tells(phase="CUDA graphs")
    verdict = story.runs(25)
    assert verdict.kind == "waiting for a rank"
    assert _suspects(verdict) == ["TP1"]


def test_dead_storage_is_a_rank_in_d_without_a_byte() -> None:
    story = hung()
    story.ranks[1].does = "dies on storage"
    verdict = story.runs(25)
    assert verdict.kind == "dead storage"
    assert _suspects(verdict) == ["TP1"]


def test_a_thread_in_d_is_enough() -> None:
    story = hung()
    story.ranks[1].more = {"busy_threads": (Thread(tid=7, state="D", wchan="folio_wait_bit_common"),)}
    verdict = story.runs(25)
    assert verdict.kind == "dead storage"
    assert _suspects(verdict) == ["TP1"]


def test_a_fifo_without_a_writer_is_dead_storage_in_s() -> None:
    story = hung()
    story.ranks[0].more = {"wchan": "wait_for_partner"}
    verdict = story.runs(25)
    assert verdict.kind == "dead storage"
    assert _suspects(verdict) == ["TP0"]
    assert "FIFO" in verdict.headline


def test_the_nvidia_driver_is_not_storage() -> None:
    story = hung()
    story.ranks[0].more = {"state": "D", "wchan": "os_acquire_rwlock_write"}
    assert story.runs(25).kind == "driver"


def test_fewer_collectives_make_a_suspect() -> None:
    story = hung(3)
    counts = tuple(CollectiveCount(f"TP{i}", "world", 41 if i == 1 else 42, pid=101 + i) for i in range(3))
    story.apply(Collectives(at=story.now, source="NCCL RAS", counts=counts))
    verdict = story.runs(25)
    assert _suspects(verdict) == ["TP1"]
    assert "41 collectives, its peers 42" in verdict.suspects[0].reason


def test_a_rank_that_does_not_answer_is_a_suspect() -> None:
    story = hung(3)
    counts = (CollectiveCount("TP0", "world", 42), CollectiveCount("TP2", "world", None, missing=True))
    story.apply(Collectives(at=story.now, source="NCCL RAS", counts=counts))
    assert _suspects(story.runs(25)) == ["TP2"]


def test_a_laggard_of_the_log_is_a_suspect_and_gets_its_pid() -> None:
    story = hung(3)
    story.tells(laggards=(Suspect("TP2", None, "no “weights loaded” line, its peers have it"),))
    verdict = story.runs(25)
    assert [(s.rank, s.pid) for s in verdict.suspects] == [("TP2", 103)]


def test_the_odd_stack_is_a_suspect() -> None:
    story = hung(3)
    common = [("wait", 1), ("barrier", 2), ("main", 3)]
    story.runs(15)
    for _ in range(3):
        story.looks(common, [("acquire", 9), ("load", 8), ("main", 3)], common)
        story.runs(3)
    verdict = story.runs(5)
    assert _suspects(verdict) == ["TP1"]
    assert "stands in acquire, 2 others in wait" in verdict.suspects[0].reason


@pytest.mark.parametrize("peers", ["sleeps", "polls"])
def test_the_only_busy_one_is_a_suspect_where_all_others_wait(peers: str) -> None:
    story = hung(8, does=peers)
    story.ranks[5].does = "spins"
    assert [suspect.rank for suspect in story.runs(25).suspects] == ["TP5"]


def test_the_only_one_that_sleeps_elsewhere_is_a_suspect() -> None:
    story = hung(8)
    story.ranks[5].more = {"wchan": "wait_for_partner"}
    assert story.runs(25).suspects[0].reason.startswith("waits")
    story = hung(8)
    story.ranks[5].more = {"wchan": "wait_woken"}
    suspects = story.runs(25).suspects
    assert [suspect.rank for suspect in suspects] == ["TP5"]
    assert suspects[0].reason == "waits in socket while its 7 peers wait in futex"


def test_half_and_half_is_no_odd_one() -> None:
    story = hung(2)
    story.runs(15)
    story.looks([("wait", 1), ("main", 3)], [("acquire", 9), ("main", 3)])
    assert story.runs(10).suspects == ()


def test_unread_sockets_make_a_suspect() -> None:
    story = hung(3)
    story.ranks[0].more = {"unread_bytes": 0}
    story.ranks[1].more = {"unread_bytes": 4096}
    story.ranks[2].more = {"unread_bytes": 0}
    assert _suspects(story.runs(25)) == ["TP1"]


def test_one_rank_with_two_reasons_is_one_suspect() -> None:
    story = hung(3)
    story.tells(laggards=(Suspect("TP1", None, "no line"),))
    story.ranks[1].more = {"unread_bytes": 4096}
    for i in (0, 2):
        story.ranks[i].more = {"unread_bytes": 0}
    verdict = story.runs(25)
    assert len(verdict.suspects) == 1
    assert verdict.suspects[0].reason == "no line; 4096 bytes wait unread in its sockets"


def test_the_only_rank_at_the_end_of_the_line_is_suspect() -> None:
    assert _suspects(hung(1).runs(25)) == ["TP0"]


def test_a_missing_draft_model_sends_to_the_checkpoint() -> None:
    story = hung()
    story.tells(missing=(Missing("draft model load", "expected (speculative_algorithm=EAGLE3), not seen"),))
    verdict = story.runs(25)
    assert pressing(verdict.advice).startswith("Press p to check the draft model")
    assert verdict.missing[0].milestone == "draft model load"


@pytest.mark.parametrize("does", ["sleeps", "polls", "spins", "dies on storage", "stops", "zombie"])
def test_every_kind_has_an_advice(does: str) -> None:
    story = hung()
    story.ranks[1].does = does
    verdict = story.runs(25)
    assert verdict.advice


def test_compilers_under_a_sleeping_server_are_quiet_and_say_so() -> None:
    story = hung()
    story.others = [Rank(700, None, ppid=101, name="cicc", does="spins")]
    verdict = story.runs(40)
    assert (verdict.state, verdict.kind) == ("quiet", "compiling")
    assert "cicc" in verdict.headline
