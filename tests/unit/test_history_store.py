"""What is remembered of launches; the file survives other tuimons, other versions, damage and missing rights."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tuimon.cli import cli
from tuimon.history.errors import HistoryError, HistoryTooNew
from tuimon.history.file import MIGRATIONS, HistoryFile
from tuimon.history.launched import Launched
from tuimon.history.remembering import Remembering
from tuimon.history.store import Store
from tuimon.launch.events import AnyEvent, Finding, UsualTimes
from tuimon.launch.state import Launch
from tuimon.launch.usual import with_usual
from tuimon.launch.view import EarlierLaunch, HealthView, LaunchView, LinkView, PhaseView, ServerView, State, Verdict

BEGAN = 1_000_000.0
ONE = Launched(
    host="gpu-17", pid=7, started=BEGAN, engine="SGLang", model="/m", flags={"tp_size": "8"}, ready=True, ready_s=60.0,
    outcome="ready", seen=BEGAN + 60, phases={"weights": 40.0, "CUDA graphs": 10.0},
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.sqlite"


@pytest.fixture
def store(path: Path) -> Store:
    return Store(HistoryFile(path))


def other(pid: int, **changes: object) -> Launched:
    return replace(ONE, pid=pid, started=BEGAN + 1000 * pid, **changes)


def test_what_was_kept_comes_back_whole_and_in_order(store: Store) -> None:
    store.keep(ONE)
    store.keep(other(8))
    assert store.launches() == [other(8), ONE]
    assert store.launches("gpu-17", most=1) == [other(8)]
    assert store.launches("elsewhere") == []


def test_several_tuimons_that_watch_one_launch_make_one_row(store: Store) -> None:
    store.keep(replace(ONE, ready=False, ready_s=None, outcome="unfinished", phases={"weights": 40.0}))
    store.keep(replace(ONE, started=BEGAN + 0.8))
    store.keep(replace(ONE, ready=False, ready_s=None, outcome="unfinished", phases={}, model=None))
    assert store.launches() == [ONE]


def test_a_pid_that_comes_back_later_is_another_launch(store: Store) -> None:
    store.keep(ONE)
    store.keep(replace(ONE, started=BEGAN + 3600))
    assert len(store.launches()) == 2


def test_the_last_word_on_a_launch_holds(store: Store) -> None:
    store.keep(ONE)
    store.keep(replace(ONE, outcome="failing", kind="hang while serving"))
    [launch] = store.launches()
    assert (launch.outcome, launch.kind, launch.ready, launch.ready_s) == ("failing", "hang while serving", True, 60.0)


def test_usual_is_the_median_of_launches_like_this_one(store: Store) -> None:
    for pid, seconds in enumerate((10.0, 20.0, 60.0), start=10):
        store.keep(other(pid, phases={"weights": seconds}))
    store.keep(other(20, phases={"weights": 999.0}, flags={"tp_size": "1"}))
    store.keep(other(21, phases={"weights": 999.0}, ready=False, outcome="stalled"))
    store.keep(other(22, phases={"weights": 999.0}, host="elsewhere"))
    assert store.usual(other(30)) == UsualTimes(phases={"weights": 20.0}, launches=3)
    elsewise = store.usual(other(30, flags={"tp_size": "4"}))
    assert elsewise is not None  # no launch had these flags: those of the same model tell more than nothing
    assert elsewise.launches == 4
    assert store.usual(other(30, model="/another")) is None


def test_the_file_stays_small(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.history.store.KEEP", 3)
    for pid in range(10):
        store.keep(other(pid))
    assert [launch.pid for launch in store.launches()] == [9, 8, 7]
    with store.file.open() as db:
        assert db.execute("SELECT count(DISTINCT launch) FROM phases").fetchone() == (3,)


WRITERS = """
import os, sys, traceback
from pathlib import Path
from tuimon.history.file import HistoryFile
from tuimon.history.launched import Launched
from tuimon.history.store import Store

def write(number):
    for n in range(25):
        store = Store(HistoryFile(Path(sys.argv[1])))
        store.keep(Launched(f"host-{number}", n, 1000.0 * n, phases={"weights": 1.0 * n}))
        assert store.file.notes == []

children = []
for number in range(20):
    child = os.fork()
    if child == 0:
        try:
            write(number)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def test_twenty_writers_at_once_lose_no_row(path: Path, store: Store) -> None:
    done = subprocess.run([sys.executable, "-c", WRITERS, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(store.launches(most=1000)) == 20 * 25


def test_an_older_file_is_migrated_once_and_keeps_its_rows(path: Path, store: Store) -> None:
    store.keep(ONE)
    newer = HistoryFile(path, (*MIGRATIONS, "ALTER TABLE launches ADD COLUMN note TEXT"))
    for _ in range(2):
        with newer.open() as db:
            assert db.execute("PRAGMA user_version").fetchone() == (2,)
            assert db.execute("SELECT pid, note FROM launches").fetchall() == [(7, None)]
    assert newer.notes == []


def test_a_migration_that_fails_changes_nothing(path: Path, store: Store) -> None:
    store.keep(ONE)
    bad = HistoryFile(path, (*MIGRATIONS, "ALTER TABLE launches ADD COLUMN note TEXT; SELECT nonsense"))
    with pytest.raises(HistoryError), bad.open():
        pass
    assert Store(HistoryFile(path)).launches() == [ONE]


def test_a_file_of_a_newer_tuimon_is_left_alone(path: Path, store: Store) -> None:
    store.keep(ONE)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(HistoryTooNew, match="newer tuimon"):
        Store(HistoryFile(path)).keep(other(8))
    assert list(path.parent.glob("*corrupt*")) == []


@pytest.mark.parametrize("damage", ["no database", "a page"])
def test_a_corrupted_file_is_moved_aside_and_said(path: Path, store: Store, damage: str) -> None:
    with store.file.open() as db:
        rows = [(pid, "x" * 300) for pid in range(200)]
        db.executemany(
            "INSERT INTO launches (host, pid, started, model, outcome, seen) VALUES ('h', ?, 0, ?, 'ready', 0)", rows
        )
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    content = bytearray(path.read_bytes())
    content[:100] = os.urandom(100) if damage == "no database" else content[:100]
    content[8192:16384] = b"\xff" * 8192
    path.write_bytes(content)
    again = Store(HistoryFile(path))
    again.keep(ONE)
    assert again.launches() == [ONE]
    [aside] = path.parent.glob("*corrupt*")
    assert aside.read_bytes() == content
    assert again.file.notes == [f"The history was corrupted; it was moved to {aside} and begun anew"]


def test_damage_while_it_is_in_use_is_noticed_at_the_next_use(path: Path, store: Store) -> None:
    store.keep(ONE)
    path.write_bytes(b"garbage" * 1000)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    with pytest.raises(HistoryError):
        store.keep(other(8))
    store.keep(other(9))
    assert store.launches() == [other(9)]
    assert len(store.file.notes) == 1


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError, match="cannot be used"):
        Store(HistoryFile(tmp_path / "file" / "history.sqlite")).keep(ONE)


# What a watching remembers


def ignore(event: AnyEvent) -> None:
    """Nobody listens."""


def view(
    state: State = "starting", *, at: float = 0.0, ready: bool = False, pid: int = 7, launch: int = 1
) -> LaunchView:
    server = ServerView(
        pid=pid, engine="SGLang", version="0.5.6", model="/m", log=None, log_note=None, address=None, port=None,
        started=BEGAN, shape=None, ranks=(), launch=launch,
        argv=("python", "-m", "sglang.launch_server", "--tp", "8", "--api-key", "***", "--model-path", "/m"),
    )  # fmt: skip
    return replace(
        Launch("gpu-17").snapshot(BEGAN + at),
        now=BEGAN + at,
        link=LinkView(state="up", since=BEGAN),
        server=server,
        health=HealthView(None, None, None, None, None, None, (), ready_at=BEGAN + at if ready else None),
        phases=(PhaseView("weights", "done", seconds=40.0), PhaseView("draft", "running", start=BEGAN)),
        verdict=Verdict(state=state, since=BEGAN, headline="", kind="host deadlock" if state == "stalled" else None),
    )


def test_a_launch_is_remembered_when_something_is_new(store: Store) -> None:
    posted: list[AnyEvent] = []
    memory = Remembering("gpu-17", posted.append, store)
    memory.look(view(at=1))
    memory.look(view("ready", at=50, ready=True))
    memory.look(view("ready", at=50.5, ready=True))
    [launch] = store.launches()
    assert (launch.outcome, launch.ready_s, launch.phases) == ("ready", 50.0, {"weights": 40.0})
    assert launch.flags == {"tp_size": "8"}
    assert posted == []


def test_a_stall_is_remembered_with_its_kind(store: Store) -> None:
    memory = Remembering("gpu-17", ignore, store)
    memory.look(view())
    memory.look(view("stalled"))
    [launch] = store.launches()
    assert (launch.outcome, launch.kind, launch.ready_s) == ("stalled", "host deadlock", None)


def test_who_came_after_ready_has_not_measured_it(store: Store) -> None:
    Remembering("gpu-17", ignore, store).look(view("ready", at=9999, ready=True))
    [launch] = store.launches()
    assert (launch.ready, launch.ready_s) == (True, None)


def test_the_launch_is_told_once_what_is_usual_here(store: Store) -> None:
    store.keep(replace(ONE, pid=1, started=BEGAN - 5000))
    posted: list[AnyEvent] = []
    memory = Remembering("gpu-17", posted.append, store)
    memory.look(view())
    memory.look(view(at=1))
    assert posted == [UsualTimes(phases=ONE.phases, launches=1)]


def test_how_a_launch_ended_is_remembered_at_the_relaunch(store: Store) -> None:
    memory = Remembering("gpu-17", ignore, store)
    memory.look(view())
    earlier = EarlierLaunch(
        launch=1, pid=7, began=BEGAN, ended=BEGAN + 9, ready_at=None, state="crashed", headline="out of memory"
    )
    memory.look(replace(view(at=10, pid=8, launch=2), earlier=(earlier,)))
    assert [launch.outcome for launch in store.launches()] == ["unfinished", "crashed"]


def test_a_history_that_cannot_be_kept_is_said_once_and_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    posted: list[AnyEvent] = []
    memory = Remembering("gpu-17", posted.append, Store(HistoryFile(tmp_path / "file" / "h.sqlite")))
    for at in range(100):
        memory.look(view(at=at))
    [finding] = posted
    assert isinstance(finding, Finding)
    assert "goes on without it" in finding.text
    (tmp_path / "file").unlink()
    memory.look(view(at=200))
    assert (tmp_path / "file" / "h.sqlite").exists()


def test_phases_are_compared_with_their_usual_time() -> None:
    usual = UsualTimes(phases={"weights": 20.0, "draft": 30.0, "quick": 0.1}, launches=3)
    phases = (
        PhaseView("weights", "done", seconds=45.0), PhaseView("draft", "running", start=BEGAN),
        PhaseView("quick", "done", seconds=0.9), PhaseView("new", "running", start=BEGAN),
    )  # fmt: skip
    weights, draft, quick, new = with_usual(phases, usual, BEGAN + 10)
    assert (weights.usual, weights.note) == (20.0, "2.2× its usual time")
    assert (draft.usual, draft.eta, draft.note) == (30.0, 20.0, None)
    assert (quick.usual, quick.note) == (0.1, None)
    assert new == phases[3]
    late = with_usual(phases, usual, BEGAN + 90)[1]
    assert (late.eta, late.note) == (None, "3.0× its usual time")
    assert with_usual(phases, None, BEGAN) == phases


def test_the_judge_is_given_what_is_usual() -> None:
    launch = Launch("gpu-17")
    launch.apply(UsualTimes(at=BEGAN, phases={"weights": 20.0}, launches=3))
    assert launch.snapshot(BEGAN).usual_launches == 3


def test_the_command_lists_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path))
    assert "No launch is remembered yet" in CliRunner().invoke(cli, ["history"]).stdout
    Store().keep(replace(ONE, model="/m\x1b[31m\n"))
    said = CliRunner().invoke(cli, ["history", "gpu-17"]).stdout
    assert "ready after 1 m 00 s  gpu-17  SGLang /m·[31m·" in said
    assert "weights 40 s, CUDA graphs 10 s" in said
