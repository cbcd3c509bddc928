"""Several watches as one: who is asked, what is told, and that 64 of them begin and end as fast as one."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.ui.…

from tests.ui import launches
from tests.ui.nodes import node, sixteen, spins, stops
from tests.ui.stage import Cranked
from tuimon.alerts.herald import Herald
from tuimon.config import Settings
from tuimon.headless import attended_nodes
from tuimon.headless.attended_nodes import AttendedNodes, Relief, told
from tuimon.launch.nodes import together
from tuimon.launch.view import LaunchView
from tuimon.recording.shelf import Limits
from tuimon.watch.live import LiveWatch
from tuimon.watch.nodes import NodesWatch, Whole

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"


class Slow(Cranked):
    """Its link takes long to close."""

    def __init__(self, view: LaunchView, seconds: float = 0.2) -> None:
        super().__init__(view)
        self.seconds = seconds
        self.begun = threading.Event()

    def start(self) -> None:
        super().start()
        self.begun.set()

    def stop(self) -> None:
        time.sleep(self.seconds)
        super().stop()


class Turned:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_chosen_node_is_seen_and_asked_and_no_other() -> None:
    hosts = [Cranked(view) for view in sixteen()]
    watching = NodesWatch(hosts)
    watching.chosen = 11
    assert watching.view.host == "node12"
    watching.ask("stacks")
    assert [place for place, host in enumerate(hosts) if host.asked] == [11]
    hosts[11].busy = "stacks"
    assert watching.busy == "stacks"
    watching.chosen = 3
    assert watching.busy is None


def test_what_they_tell_is_the_same_object_until_one_of_them_tells_something_new() -> None:
    clock = Turned()
    hosts = [Cranked(view) for view in sixteen()]
    watching = NodesWatch(hosts, clock=clock)
    first = watching.nodes
    clock.now = 1.0
    assert watching.nodes is first
    hosts[4].view = node(4, launches.serving(), 16)
    assert watching.nodes is first
    clock.now = 2.0
    assert watching.nodes.at(4).state == "serving"
    assert Whole(watching).view is watching.nodes.whole


def test_all_are_started_and_all_are_stopped_at_once() -> None:
    hosts = [Slow(view) for view in sixteen()]
    watching = NodesWatch(hosts)
    watching.start()
    assert all(host.begun.wait(5) for host in hosts)
    began = time.monotonic()
    watching.stop()
    assert time.monotonic() - began < 1.5
    assert not any(host.started for host in hosts)


def test_one_that_cannot_be_started_says_so_and_holds_no_other_up() -> None:
    class Full(Slow):
        def start(self) -> None:
            raise OSError(24, "Too many open files")

    hosts = [Full(view) if place == 3 else Slow(view) for place, view in enumerate(sixteen())]
    clock = Turned()
    watching = NodesWatch(hosts, clock=clock)
    watching.start()
    assert all(host.begun.wait(5) for place, host in enumerate(hosts) if place != 3)
    clock.now = 1.0
    assert watching.nodes.at(3).note == "not judged: tuimon's own error: OSError: [Errno 24] Too many open files"
    watching.stop()


def test_none_is_started_after_the_end() -> None:
    class Turning(Slow):
        def start(self) -> None:
            self.begun.set()
            time.sleep(0.05)
            self.started = True

    hosts = [Turning(view, 0.0) for view in sixteen()]
    watching = NodesWatch(hosts)
    watching.start()
    assert hosts[2].begun.wait(5)
    watching.stop()
    begun = [host.begun.is_set() for host in hosts]
    assert not all(begun)
    time.sleep(0.15)
    assert [host.begun.is_set() for host in hosts] == begun
    assert not any(host.started for host in hosts)


def test_one_that_does_not_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.watch.nodes.STOP_WITHIN", 0.3)
    watching = NodesWatch([Slow(view, 2.0 if place == 3 else 0.0) for place, view in enumerate(sixteen())])
    began = time.monotonic()
    watching.stop()
    assert time.monotonic() - began < 1.0


def test_one_change_of_the_whole_launch_is_one_alert_with_the_node_that_decides(tmp_path: Path) -> None:
    kept = tmp_path / "changes"
    program = tmp_path / "keep"
    program.write_text(f"#!/bin/sh\ncat >> {kept}\n")
    program.chmod(0o755)
    views = [node(number, stops() if number == 2 else spins(), 4) for number in range(4)]
    nodes = together(views)
    written: list[str] = []
    settings = Settings(on_change=str(program), notify="osc9")
    herald = Herald(settings, written.append, written.append, lambda: told(("a", "b", "c", "d"), nodes))
    for second in range(4):
        herald.look(replace(nodes.whole, now=nodes.now + second))
    herald.stop()
    (line,) = kept.read_text().splitlines()
    document = json.loads(line)
    jsonschema.validate(document, json.loads((SCHEMAS / "change.json").read_text()))
    assert (document["schema"], document["host"], document["node"]) == ("tuimon.change/1", "a b c d", "c")
    assert document["verdict"]["state"] == "stalled"
    assert document["verdict"]["suspects"][0]["rank"] == "node3"
    assert [one["state"] for one in document["nodes"]] == ["spinning", "spinning", "stalled", "spinning"]
    assert len(written) == 1
    assert "node3, 4 hosts STALLED: node3: in “weights”: nothing alive · 3 others spin" in written[0]


def test_a_red_node_that_cannot_be_seen_any_more_is_not_told_as_well_again() -> None:
    seen: list[str] = []
    relief = Relief(lambda view: seen.append(view.verdict.state))
    works = node(0, launches.starting(), 2)
    for other in (launches.crashed(), launches.unreachable(), launches.unreachable(), launches.starting()):
        relief.look(together([works, node(1, other, 2)]))
    assert seen == ["crashed", "starting"]
    relief.look(together([works, node(1, launches.crashed(), 2)]))
    relief.look(together([node(0, launches.serving(), 2), node(1, launches.unreachable(), 2)]))
    assert seen[2:] == ["crashed", "serving"]


def test_recordings_of_many_hosts_keep_to_the_total_together() -> None:
    assert Limits(2_000_000_000, 30.0).part == 250_000_000
    assert Limits(2_000_000_000, 30.0, 64).part * 64 <= 250_000_000


def test_a_host_that_is_named_twice_is_watched_once() -> None:
    watching = AttendedNodes(("node1", "node2", "node1"), Settings(record=False))
    assert [node.host for node in watching.nodes.nodes] == ["node1", "node2"]


def test_a_passphrase_is_given_to_all_hosts_that_want_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, str | None]] = []

    class Wanting(LiveWatch):
        @property
        def secret_wanted(self) -> str | None:
            key = "id_rsa" if self.view.host == "node3" else "id_ed25519"
            return f"Passphrase of {key} for {self.view.host}"

        def give_secret(self, secret: str | None) -> None:
            given.append((self.view.host, secret))

    monkeypatch.setattr(attended_nodes, "LiveWatch", Wanting)
    watching = AttendedNodes(("node1", "node2", "node3"), Settings(record=False))
    assert watching.secret_wanted == "Passphrase of id_ed25519 for node1"
    watching.give_secret("open sesame")
    assert given == [("node1", "open sesame"), ("node2", "open sesame")]


def test_a_passphrase_answers_the_question_that_was_read_whoever_has_asked_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: dict[str, str] = {"node3": "Passphrase of id_rsa for node3"}
    given: list[str] = []

    class Wanting(LiveWatch):
        @property
        def secret_wanted(self) -> str | None:
            return wanted.get(self.view.host)

        def give_secret(self, secret: str | None) -> None:
            given.append(self.view.host)
            del wanted[self.view.host]

    monkeypatch.setattr(attended_nodes, "LiveWatch", Wanting)
    watching = AttendedNodes(("node1", "node2", "node3"), Settings(record=False))
    assert watching.secret_wanted == "Passphrase of id_rsa for node3"
    wanted["node1"] = "Passphrase of id_ed25519 for node1"
    assert watching.secret_wanted == "Passphrase of id_rsa for node3"
    watching.give_secret("open sesame")
    assert given == ["node3"]
    assert watching.secret_wanted == "Passphrase of id_ed25519 for node1"
    del wanted["node1"]  # it gave up
    wanted["node2"] = "Passphrase of id_ecdsa for node2"
    watching.give_secret("for a key that nobody wants any more")
    assert given == ["node3"]
