"""A launch over several nodes is judged as one: what counts, who decides, who is named, and what is never red."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.ui.…

from tests.ui import launches
from tests.ui.launches import NOW
from tuimon.launch.nodes import together
from tuimon.launch.view import LaunchView, PhaseView, ServerView, Suspect
from tuimon.ui.pressing import pressing


def on(host: str, moment: Callable[[], LaunchView] = launches.starting, **verdict: object) -> LaunchView:
    """This moment on this host of several; `verdict` replaces fields of its verdict."""
    view = replace(moment(), host=host)
    if view.server is not None:
        view = replace(view, server=replace(view.server, argv=(*view.server.argv, "--nnodes", "4")))
    return replace(view, verdict=replace(view.verdict, **verdict))


def at(view: LaunchView, done: int, share: float = 0.0) -> LaunchView:
    """So many phases are done, and the next one has come so far."""
    names = ("arguments", "distributed init", "weights", "KV cache", "CUDA graphs")
    phases = tuple(PhaseView(name, "done") for name in names[:done])
    return replace(view, phases=(*phases, PhaseView(names[done], "running", count=share * 100, total=100)))


def silent(host: str, seconds: float = 40.0, **verdict: object) -> LaunchView:
    """Nothing alive, as far as this host can tell; it waits for nobody that is behind."""
    return at(on(host, launches.stall, since=NOW - seconds, **{"suspects": (), "missing": (), **verdict}), 2, 0.5)


def spins(host: str, seconds: float = 48.0) -> LaunchView:
    return on(host, launches.spinning, since=NOW - seconds)


def no_server(host: str, seconds: float = 30.0) -> LaunchView:
    view = replace(launches.waiting(), host=host)
    return replace(view, verdict=replace(view.verdict, since=NOW - seconds))


def lost(host: str) -> LaunchView:
    return replace(launches.unreachable(), host=host)


def order(*views: LaunchView) -> list[str]:
    return [node.host for node in together(views).nodes]


def test_one_dead_node_makes_the_launch_red_and_its_name_stands_before_the_rank() -> None:
    dead = on("node2", launches.crashed)
    nodes = together([on("node1", launches.serving), dead, on("node3")])
    assert (nodes.verdict.state, nodes.verdict.certain, nodes.decides) == ("crashed", True, 1)
    assert nodes.verdict.headline == "node2: TP0 exited with 1 · 1 other serves · 1 other starts"
    assert nodes.verdict.suspects == (Suspect("node2 TP0", 41300, "exited with 1"),)
    assert pressing(nodes.verdict.advice) == "on node2: lower --mem-fraction-static"
    assert [node.host for node in nodes.nodes if node.suspect] == ["node2"]


@pytest.mark.parametrize(
    ("states", "decides"),
    [
        (("frozen", "crashed", "stalled"), "crashed"),
        (("spinning", "frozen", "stalled"), "frozen"),
        (("failing", "spinning", "stalled"), "stalled"),
        (("failing", "spinning", "ready"), "spinning"),
        (("serving", "failing"), "failing"),
    ],
)
def test_what_is_certain_goes_before_silence_and_silence_before_spinning(states: tuple[str, ...], decides: str) -> None:
    views = [on(f"node{number}", launches.stall, state=state) for number, state in enumerate(states)]
    nodes = together(views)
    assert nodes.verdict.state == decides
    assert nodes.nodes[0].host == f"node{states.index(decides)}"


def test_those_that_spin_wait_for_the_silent_one_and_accuse_nobody() -> None:
    nodes = together([spins("node1"), silent("node2"), spins("node3"), spins("node4")])
    assert nodes.verdict.state == "stalled"
    assert nodes.verdict.headline == "node2: after “CUDA graphs”, nothing alive · 3 others spin"
    assert nodes.verdict.suspects == (
        Suspect("node2", None, "does nothing while 3 others spin, waiting for it"),
    )  # fmt: skip
    assert not nodes.verdict.certain
    assert all(reason.text.startswith("node2: ") for reason in nodes.verdict.evidence)


def test_where_all_spin_their_own_suspects_are_named() -> None:
    nodes = together([spins("node1"), spins("node2", 60.0)])
    assert nodes.verdict.headline == "node2: in “CUDA graphs”: GPUs busy without work · 1 other spins"
    assert [one.rank for one in nodes.verdict.suspects] == ["node2 TP5", "node1 TP5"]


def test_a_node_that_accuses_all_of_its_ranks_accuses_nobody() -> None:
    everybody = tuple(Suspect(f"TP{number}", 41300 + number, "all ranks spin") for number in range(8))
    nodes = together([on("node1", launches.spinning, suspects=everybody), spins("node2")])
    assert [one.rank for one in nodes.verdict.suspects] == ["node2 TP5"]


def test_silences_that_began_in_the_same_moment_stand_in_the_order_of_the_names() -> None:
    assert order(silent("node1", 40.2), silent("node2", 41.1), silent("node3", 40.9)) == ["node1", "node2", "node3"]


def test_of_several_silent_nodes_the_longest_silent_one_decides() -> None:
    nodes = together([silent("node1", 30.0), silent("node2", 70.0), silent("node3", 50.0)])
    assert [node.host for node in nodes.nodes] == ["node2", "node3", "node1"]
    assert nodes.verdict.since == NOW - 70.0
    assert nodes.verdict.headline.endswith(" · 2 others are silent too")


def test_a_silent_node_waits_while_another_one_that_is_behind_it_still_works() -> None:
    behind = at(on("node1"), 2, 0.4)
    nodes = together([behind, silent("node2"), silent("node3", 45.0)])
    assert nodes.verdict.state == "quiet"
    assert nodes.verdict.headline == "node3 and node2 are silent, while node1 still works"
    assert [(node.host, node.state, node.note) for node in nodes.nodes] == [
        ("node3", "quiet", "silent here, while node1 still works"),
        ("node2", "quiet", "silent here, while node1 still works"),
        ("node1", "starting", None),
    ]  # fmt: skip
    assert nodes.at(1).view.verdict.suspects == ()


def test_a_silent_node_that_is_behind_all_that_work_is_what_they_will_wait_for() -> None:
    ahead = at(on("node1"), 2, 0.6)
    assert together([ahead, silent("node2")]).verdict.state == "stalled"
    assert together([at(ahead, 3), silent("node2")]).verdict.state == "stalled"


@pytest.mark.parametrize("state", ["starting", "quiet"])
def test_a_node_that_tells_nothing_any_more_explains_no_silence(state: str) -> None:
    behind = at(on("node1", state=state), 1)
    assert together([behind, silent("node2")]).verdict.state == "quiet"
    hanging = replace(behind, data_age=12.0)  # its link holds, its /proc does not answer
    assert together([hanging, silent("node2")]).verdict.state == "stalled"
    assert together([hanging, silent("node2")]).at(0).silent is None, "unknown"
    old = replace(behind, now=NOW - 12.0)  # its collector stands still
    assert together([old, silent("node2")]).verdict.state == "stalled"
    unseen = replace(behind, data_age=None, signs=())  # neither its log nor its processes can be read
    assert together([unseen, silent("node2")]).verdict.state == "stalled"


def test_a_certain_death_is_not_explained_by_others_that_work() -> None:
    dead = silent("node2", certain=True, headline="TP3 is dead, the others wait for it")
    assert together([at(on("node1"), 1), dead]).verdict.state == "stalled"


@pytest.mark.parametrize(
    ("more", "state"),
    [((), "stalled"), (("--nnodes", "2", "--node-rank", "1"), "quiet"), (("--config", "launch.yaml"), "quiet")],
)
def test_the_silence_of_a_launch_of_its_own_is_not_explained_by_another_launch(
    more: tuple[str, ...], state: str
) -> None:
    server = silent("node2").server
    assert server is not None
    argv = ("python3", "-m", "sglang.launch_server", "--tp", "8", *more)
    replica = replace(silent("node2"), server=replace(server, engine="SGLang", argv=argv))
    assert together([at(on("node1"), 1), replica]).verdict.state == state


def test_when_the_last_one_that_worked_falls_silent_the_launch_is_red() -> None:
    behind = at(on("node1"), 2, 0.4)
    quiet = on("node1", launches.quiet, wants_stacks=True, headline="no sign of life")
    assert together([behind, silent("node2")]).verdict.state == "quiet"
    assert together([at(quiet, 2, 0.4), silent("node2")]).verdict.state == "stalled"


def test_a_node_without_a_server_is_named_but_by_itself_it_is_amber_at_most() -> None:
    quiet = on("node1", launches.quiet)
    nodes = together([quiet, on("node2", launches.quiet), no_server("node3", 3600.0)])
    assert nodes.verdict.state == "quiet"
    assert nodes.verdict.headline == "no server on node3; the others may wait for it"
    assert nodes.nodes[0].note == "no server here; the others may wait for it"


def test_a_node_without_a_server_is_said_beside_others_that_work_or_serve() -> None:
    starting = together([on("node1"), on("node2"), no_server("node3")])
    assert starting.verdict.state == "starting"
    assert starting.verdict.alarms == ("no server on node3; the others may wait for it",)
    serving = together([on("node1", launches.serving), no_server("node3")])
    assert (serving.verdict.state, serving.verdict.alarms) == ("serving", ("no server on node3",))


def test_beside_others_that_hang_the_node_without_a_server_is_the_first_suspect() -> None:
    nodes = together([silent("node1"), no_server("node2")])
    assert nodes.verdict.state == "stalled"
    assert nodes.verdict.suspects == (Suspect("node2", None, "no server there, the others may wait for it"),)


def test_a_launch_need_not_begin_on_all_nodes_in_the_same_second() -> None:
    young: ServerView = replace(launches.SERVER, started=NOW - 5)
    nodes = together([replace(on("node1"), server=young), no_server("node2", 3600.0)])
    assert (nodes.verdict.state, nodes.verdict.alarms) == ("starting", ())


def test_what_cannot_be_seen_is_unknown_and_never_a_reason_for_red() -> None:
    nodes = together([on("node1"), lost("node2"), lost("node3")])
    assert (nodes.verdict.state, nodes.whole.link.state) == ("starting", "up")
    assert nodes.verdict.alarms == ("node2 and node3 cannot be seen: link lost",)
    assert [(node.host, node.state, node.silent) for node in nodes.nodes if node.unseen] == [
        ("node2", "unreachable", None),
        ("node3", "unreachable", None),
    ]


def test_a_red_verdict_of_before_the_link_was_lost_counts_no_more() -> None:
    stale = replace(silent("node2"), link=launches.unreachable().link)
    assert together([on("node1"), stale]).verdict.state == "starting"
    broken = replace(silent("node2"), broken="ImportError: bug")
    assert together([on("node1"), broken]).verdict.alarms == (
        "node2 cannot be seen: not judged: tuimon's own error: ImportError: bug",
    )


def test_what_was_told_long_ago_is_told_no_more() -> None:
    old = replace(on("node2", launches.serving), now=NOW - 60.0)
    nodes = together([on("node1", launches.serving), old])
    assert nodes.at(1).unseen
    assert nodes.verdict.alarms[0].startswith("node2 cannot be seen: not judged: tuimon's own error: what collects")
    late = replace(old, now=NOW - 3.0)
    assert not together([on("node1", launches.serving), late]).at(1).unseen


def test_where_all_that_is_seen_spins_the_unseen_node_may_be_what_they_wait_for() -> None:
    nodes = together([spins("node1"), spins("node2"), lost("node3")])
    assert nodes.verdict.alarms == ("node3 cannot be seen: link lost; the others may wait for it",)
    assert "node3" not in [one.rank for one in nodes.verdict.suspects]


def test_where_no_host_can_be_seen_nothing_is_judged() -> None:
    nodes = together([lost("node1"), lost("node2")])
    assert (nodes.verdict.state, nodes.whole.link.state, nodes.decides) == ("unreachable", "lost", None)
    fresh = together([launches.nothing("node1"), lost("node2")])
    assert fresh.whole.link.state == "connecting"


def test_ready_is_what_the_node_that_serves_says_while_no_other_one_is_red() -> None:
    waits = on("node2", launches.quiet, headline="waits as it may: for the first node")
    assert together([on("node1", launches.serving), waits]).verdict.state == "serving"
    assert together([waits, on("node1", launches.serving, state="ready")]).verdict.state == "ready"
    assert together([on("node1", launches.serving), silent("node2")]).verdict.state == "stalled"
    assert together([on("node1"), waits]).verdict.state == "starting"


def test_the_slowest_node_tells_how_far_the_launch_is() -> None:
    nodes = together([at(on("node1"), 2, 0.9), at(on("node2"), 2, 0.3), at(on("node3"), 3)])
    assert (nodes.decides, nodes.verdict.state) == (1, "starting")
    assert nodes.verdict.headline == "loads weights: 41 of 64 shards on all 3 nodes"


def test_a_server_that_was_asked_to_end_takes_its_followers_along_without_an_alarm() -> None:
    ended = on("node1", launches.starting, state="finished", headline="it ended as asked", since=NOW - 5)
    fell = on("node2", launches.crashed, since=NOW - 3)
    assert together([ended, fell]).verdict.state == "finished"
    fell_before = on("node2", launches.crashed, since=NOW - 9)
    assert together([ended, fell_before]).verdict.state == "crashed"
    assert together([ended, silent("node2", 4.0)]).verdict.state == "finished"


def test_what_hangs_long_after_the_first_node_ended_or_began_after_it_is_no_follower_on_its_way_out() -> None:
    ended = on("node1", launches.starting, state="finished", headline="it ended as asked", since=NOW - 120)
    assert together([ended, silent("node2")]).verdict.state == "stalled", "left behind, and still there"
    fell = on("node2", launches.crashed, since=NOW - 3)
    assert together([ended, fell]).verdict.state == "finished"
    assert fell.server is not None
    again = replace(fell, server=replace(fell.server, started=NOW - 60))
    nodes = together([ended, fell, replace(again, host="node3")])
    assert (nodes.verdict.state, nodes.decides) == ("crashed", 2), "the next launch"


def test_rows_go_red_then_longest_silent_then_without_server_then_unseen_then_as_named() -> None:
    views = (
        on("node10"), lost("node9"), no_server("node8"), silent("node7", 30.0), on("node1"),
        on("node6", launches.crashed), silent("node5", 90.0),
    )  # fmt: skip
    assert order(*views) == ["node6", "node5", "node7", "node8", "node9", "node10", "node1"]


def test_rows_stay_where_they_are_while_time_passes() -> None:
    views = [on(f"node{number}") for number in range(20)]
    noisy = [
        replace(view, signs=launches.signs(number * 7 % 5), now=NOW + number * 0.1)
        for number, view in enumerate(views)
    ]  # fmt: skip
    assert order(*views) == order(*noisy) == [view.host for view in views]


def test_a_node_tells_phase_ranks_working_gpus_and_its_last_own_line() -> None:
    line = launches.line(99, "15:31:09", None, "GET /health 200", "info")
    view = replace(launches.starting(), lines=launches.Window([*launches.story(6), replace(line, ours=True)]))
    cards = (*launches.gpus(0.4, count=6), *launches.gpus(0.0, count=2))
    node = together([replace(view, gpus=cards), on("node2")]).at(0)
    assert (node.phase, len(node.ranks), node.gpus) == ("weights 64 %", 8, (6, 8))
    assert node.last_line is not None
    assert node.last_line.text.startswith("Loading safetensors checkpoint shards:  64%")
    assert together([replace(view, gpus=launches.gpus(None)), view]).at(0).gpus is None
