"""Which process stands for a launch, on made-up process tables."""

# The program has no annotations that Python 3.6 would not understand:
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, NamedTuple

from tuimon.probe.program.discover import Discovery
from tuimon.probe.program.tree import Members, Table


class Row(NamedTuple):
    pid: int
    ppid: int
    line: str
    session: int = 0
    start: int = 0
    state: str = "S"
    comm: str = "python3"


class FakeHost:
    """A /proc of rows."""

    def __init__(self, *rows: Row) -> None:
        self.rows = {row.pid: row for row in rows}

    def names(self, path: str) -> list[str]:
        if path != "/proc":
            raise FileNotFoundError(path)
        return ["self", *map(str, self.rows)]

    def read(self, path: str, limit: int = 0, whole: bool = False) -> bytes:
        _, _, pid, name = path.split("/", 3)
        row = self.rows.get(int(pid)) if pid.isdigit() else None
        if row is None or name not in ("stat", "cmdline"):
            raise FileNotFoundError(path)
        if name == "cmdline":
            return row.line.replace(" ", "\0").encode() + b"\0"
        start = row.start or row.pid
        session = row.session or 1
        fields = [row.state, row.ppid, session, session, *[0] * 15, start, *[0] * 32]
        return f"{row.pid} ({row.comm}) {' '.join(map(str, fields))}".encode()

    def link(self, path: str) -> str:
        raise FileNotFoundError(path)

    stat = link


class Silence:
    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def say(self, event: str, **fields: Any) -> None:  # noqa: ANN401  (any event's fields)
        self.said.append((event, fields))


def roots(*rows: Row, **options: object) -> dict[int, str]:
    discovery = discover(FakeHost(*rows), **options)[0]
    return {pid: engine for pid, (engine, _start) in discovery.roots(0.0).items()}


def discover(host: FakeHost, **options: object) -> tuple[Any, Silence]:
    table, said = Table(host), Silence()
    table.look(0.0)
    return Discovery(host, table, options, said), said


SYSTEMD = Row(1, 0, "/sbin/init", comm="systemd")


def test_ranks_belong_to_their_launcher() -> None:
    launcher = Row(10, 1, "python3 -m sglang.launch_server --tp 2")
    ranks = [Row(11, 10, "sglang::scheduler_TP0"), Row(12, 10, "sglang::scheduler_TP1")]
    assert roots(SYSTEMD, launcher, *ranks) == {10: "sglang"}


def test_a_server_that_is_pid_1_of_its_container() -> None:
    assert roots(Row(1, 0, "python3 /usr/bin/vllm serve m"), Row(9, 1, "VLLM::EngineCore")) == {1: "vllm"}


def test_a_script_that_embeds_the_engine_is_the_root_of_its_ranks() -> None:
    shell, script = Row(8, 1, "bash run.sh", comm="bash"), Row(9, 8, "python3 my_engine.py")
    assert roots(SYSTEMD, shell, script, Row(10, 9, "sglang::scheduler_TP0")) == {9: "sglang"}


def test_orphaned_ranks_are_one_launch_with_the_oldest_as_its_root() -> None:
    ranks = [Row(20 + rank, 1, f"sglang::scheduler_TP{rank}", session=5, start=100 - rank) for rank in range(3)]
    assert roots(SYSTEMD, *ranks) == {22: "sglang"}
    host = FakeHost(SYSTEMD, *ranks)
    table = Table(host)
    table.look(0.0)
    for entry in table.entries.values():
        table.argv(entry, 0.0)
    assert sorted(Members(table, 22).pids) == [20, 21, 22]


def test_torchrun_stands_above_its_workers() -> None:
    torchrun = Row(10, 1, "python3 /usr/bin/torchrun --nproc-per-node 2 train.py")
    assert roots(SYSTEMD, torchrun, Row(11, 10, "python3 train.py")) == {10: "torchrun"}


def test_dead_and_outside_processes_are_no_launch() -> None:
    dead = Row(10, 1, "python3 -m sglang.launch_server", state="Z")
    outside = Row(11, 1, "python3 -m sglang.launch_server")
    inside = Row(13, 12, "python3 -m sglang.launch_server")
    assert roots(SYSTEMD, dead, outside, Row(12, 1, "bash", comm="bash"), inside, within=12) == {13: "sglang"}


def test_the_probe_never_finds_itself(monkeypatch: Any) -> None:  # noqa: ANN401  (pytest's)
    monkeypatch.setattr("os.getpid", lambda: 10)
    assert roots(SYSTEMD, Row(10, 1, "python3 -m sglang.launch_server")) == {}


def test_a_new_launch_is_taken_when_only_orphans_of_the_old_one_are_left() -> None:
    launcher = Row(10, 1, "python3 -m sglang.launch_server", session=10)
    rank = Row(11, 10, "sglang::scheduler_TP0", session=10)
    host = FakeHost(SYSTEMD, launcher, rank)
    discovery, said = discover(host)
    discovery.look(0.0, [])
    assert said.said[-1][1]["pid"] == 10
    del host.rows[10]
    host.rows[11] = rank._replace(ppid=1)
    host.rows[20] = Row(20, 1, "python3 -m sglang.launch_server", session=20)
    fresh = discovery.table.look(3.0)
    discovery.server.members.pids.pop(10)  # as the sampler does
    discovery.look(3.0, fresh)
    assert said.said[-1][1]["pid"] == 20


def test_a_reused_pid_is_somebody_else() -> None:
    host = FakeHost(SYSTEMD, Row(10, 1, "python3 -m sglang.launch_server"), Row(11, 10, "sglang::scheduler_TP0"))
    table = Table(host)
    table.look(0.0)
    members = Members(table, 10)
    host.rows[11] = Row(11, 1, "sleep 1", start=500)
    stat = table.refresh(11, 1.0)
    assert stat.start != members.pids[11]
    assert table.argv(table.entries[11], 1.0) == ["sleep", "1"]


def test_unrelated_processes_do_not_join_the_tree() -> None:
    host = FakeHost(
        SYSTEMD,
        Row(5, 1, "bash", comm="bash", session=5),
        Row(10, 5, "python3 -m sglang.launch_server", session=5),
        Row(11, 5, "tee server.log", session=5, comm="tee"),
        Row(12, 1, "cron", session=12),
        Row(13, 10, "python3 -c spawn_main", session=5),
        Row(14, 13, "cicc", session=5, comm="cicc"),
    )
    table = Table(host)
    table.look(0.0)
    assert sorted(Members(table, 10).pids) == [10, 13, 14]


def test_a_title_set_later_is_noticed() -> None:
    host = FakeHost(SYSTEMD, Row(10, 1, "python3 -c spawn_main"))
    table = Table(host)
    table.look(0.0)
    assert table.argv(table.entries[10], 0.0) == ["python3", "-c", "spawn_main"]
    host.rows[10] = Row(10, 1, "sglang::scheduler_TP0")
    assert table.argv(table.entries[10], 0.5) == ["python3", "-c", "spawn_main"]
    assert table.argv(table.entries[10], 1.5) == ["sglang::scheduler_TP0"]
    host.rows[10] = Row(10, 1, "other", comm="other")  # much later, by its name
    table.refresh(10, 1000.0)
    assert table.argv(table.entries[10], 1000.0) == ["other"]
