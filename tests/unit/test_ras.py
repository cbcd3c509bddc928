"""What NCCL RAS says: invalid JSON, old text, and who is behind; a client that survives stopped ranks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.diagnose import collectives, ras
from tuimon.hosts.local import LocalHost

RECORDINGS = Path(__file__).resolve().parents[2].parent / "shared" / "recordings"
needs_recordings = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside the repository")


def recorded(name: str, form: str) -> str:
    text = (RECORDINGS / name / "diagnosis.txt").read_text()
    return text.partition(f"--- RAS {form}\n")[2].partition("\n--- ")[0]


@needs_recordings
def test_the_json_of_2_28_9_lacks_a_comma_and_is_read_all_the_same() -> None:
    text = (RECORDINGS / "sglang-tp2-sigstop-serving" / "ras.txt").read_text()
    event = ras.as_event(ras.parse(text) or ras.Report(None, ()), {849: "TP0", 850: "TP1"})

    assert [(count.rank, count.launched, count.missing) for count in event.counts] == [
        ("TP0", 864, False), ("TP1", None, True), ("TP0", 109, False), ("TP1", None, True),
    ]  # fmt: skip
    assert event.text is not None
    assert "TP1 (pid 850): missing, unresponsive" in event.text


@needs_recordings
@pytest.mark.parametrize("form", ["verbose", "json"])
def test_a_rank_that_launched_less_is_behind_in_both_forms(form: str) -> None:
    report = ras.parse(recorded("torch-nccl-missing-rank", form))
    assert report is not None
    (group,) = report.communicators
    assert (report.version, group.name) == ("2.28.9", "0xaddb5c45bf3e1548")
    assert [(each.rank, each.pid) for each in ras.laggards(group)] == [(1, 1008)]
    assert ras.disagreement(group) == ""


@needs_recordings
@pytest.mark.parametrize("form", ["verbose", "json"])
def test_ranks_in_different_collectives_disagree_and_nobody_is_behind(form: str) -> None:
    report = ras.parse(recorded("torch-nccl-mismatch", form))
    assert report is not None
    (group,) = report.communicators
    assert ras.laggards(group) == ()
    assert ras.disagreement(group) == "rank 0 launched AllReduce 3, rank 1 launched Broadcast 1, AllGather 1"
    assert {count.launched for count in ras.as_event(report).counts} == {None}


def report_of(*pids: int) -> str:
    ranks = [{"rank": n, "pid": pid, "collective_counts": {"AllReduce": 5 - n}} for n, pid in enumerate(pids)]
    return json.dumps(
        {"nccl_version": "2.30.7", "communicators": [{"hash": f"0x{pids[0]}", "size": 2, "ranks": ranks}]}
    )


def test_another_jobs_communicators_on_the_same_port_are_left_out() -> None:
    ours, theirs = ras.parse(report_of(1, 2)), ras.parse(report_of(8, 9))
    assert ours is not None
    assert theirs is not None
    both = ras.Report("2", ours.communicators + theirs.communicators)
    assert [count.pid for count in ras.as_event(both, {1: "TP0", 2: "TP1"}).counts] == [1, 2]
    assert "none of these processes is one of ours" in (ras.as_event(theirs, {1: "TP0"}).text or "")


def test_ranks_in_a_container_are_known_by_their_inner_pids_and_given_the_hosts() -> None:
    answer = {"report": report_of(1, 2), "inner": {"1": 4001, "2": 4002, "x": 3, "9": None}}
    event = collectives.read(json.dumps(answer).encode(), {4001: "TP0", 4002: "TP1"})
    assert [(count.rank, count.pid, count.launched) for count in event.counts] == [("TP0", 4001, 5), ("TP1", 4002, 4)]
    assert "none of these processes is one of ours" not in (event.text or "")


class Ranks:
    """Ranks that share a port, some of them stopped: those accept (the kernel does it for them) and never answer."""

    def __init__(self, stopped: int, json_form: bool) -> None:
        self.json_form = json_form
        self.stopped = stopped
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.kept: list[socket.socket] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.kept.append(connection)
                if self.stopped:
                    self.stopped -= 1
                else:
                    self.answer(connection)

    def answer(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        for line in stream:
            if line.startswith(b"CLIENT"):
                connection.sendall(b"SERVER PROTOCOL 2\n")
            elif line.startswith(b"SET FORMAT") and not self.json_form:
                connection.sendall(b"ERROR: Unknown command SET FORMAT json\n")
            elif line.startswith(b"VERBOSE"):
                connection.sendall(report_of(1, 2).encode() if self.json_form else TEXT)
                break
            else:
                connection.sendall(b"OK\n")
        stream.close()
        connection.close()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for each in self.kept:
            each.close()
        self.thread.join(5)


TEXT = b"""NCCL version 2.26.2 compiled with CUDA 12.8
#0-0 (addb5c45bf3e1548) MISMATCH
  Communicator ranks have different AllReduce operation counts
  1 ranks have launched up to operation 5
    Rank 0 -- GPU 0 managed by process 1 on node 192.0.2.2
  1 ranks have launched up to operation 4
    Rank 1 -- GPU 1 managed by process 2 on node 192.0.2.2
"""


@pytest.fixture(params=[(0, True), (1, True), (0, False)], ids=["answers", "one is stopped", "old text form"])
def ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    made = Ranks(*request.param)
    yield made
    made.close()


def test_the_client_finds_a_rank_that_answers(ranks: Ranks) -> None:
    event = asyncio.run(collectives.ask(LocalHost(), {1: "TP0", 2: "TP1"}, port=ranks.port))
    assert [(count.rank, count.launched) for count in event.counts] == [("TP0", 5), ("TP1", 4)]
    assert "TP1 is behind its peers" in (event.text or "")


def test_where_nobody_listens_it_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    event = asyncio.run(collectives.ask(LocalHost(), {}, port=port))
    assert event.counts == ()
    assert "older than 2.24" in (event.text or "")


@given(st.text(max_size=300), st.binary(max_size=100))
def test_any_text_is_survived(text: str, output: bytes) -> None:
    ras.parse(text)
    ras.parse_text("NCCL version 1\n#0-0 (ab) X\n" + text)
    collectives.read(output, {})


KEYS = ["rank", "pid", "ranks", "missing_ranks", "collective_counts", "status", "hash", "async_error"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)


@given(st.lists(values, max_size=3))
def test_any_json_becomes_an_event(found: list[object]) -> None:
    report = ras.parse(json.dumps({"communicators": found}))
    assert report is not None
    ras.as_event(report, {1: "TP0"})
