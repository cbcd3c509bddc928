"""Looks at the stacks are kept, private and bounded; a disk that refuses never stops a diagnosis."""

from __future__ import annotations

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tuimon.diagnose import kept, saved
from tuimon.diagnose.ladder import Diagnosis
from tuimon.launch.events import Collectives, Frame, RankStack, Stacks, ThreadStack, Unread

AT = 1_800_000_000.0
LOOK = Stacks(
    ranks=(
        RankStack(
            7, "TP0", (ThreadStack("MainThread", (Frame("barrier", "/x/sglang/a.py", 5),), tid=7),), "S", "futex"
        ),
    ),
    unread=(Unread(8, "TP1", "the process is gone"),),
)


def test_a_look_is_kept_as_text_and_json_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "stacks"
    kept = saved.save(LOOK, "root@gpu-17:2222", AT, {"verdict": "stalled"}, folder)

    assert kept.note is None
    assert kept.text == str(folder / "stacks-20270115-080000-root_gpu-17_2222.txt")
    text = Path(kept.text).read_text()
    assert "TP0  (1 rank, pid 7)  waits in a collective: barrier  state S" in text
    assert "TP1 (pid 8): the process is gone" in text
    assert "verdict: stalled" in text
    assert kept.json is not None
    document = json.loads(Path(kept.json).read_text())
    assert document["schema"] == "tuimon.stacks/1"
    assert document["event"]["ranks"][0]["threads"][0]["frames"][0]["name"] == "barrier"
    assert [path.stat().st_mode & 0o777 for path in (folder, Path(kept.text), Path(kept.json))] == [0o700, 0o600, 0o600]


def test_two_looks_in_one_second_do_not_overwrite_each_other(tmp_path: Path) -> None:
    first, second = saved.save(LOOK, "h", AT, folder=tmp_path), saved.save(LOOK, "h", AT, folder=tmp_path)
    assert first.text != second.text
    assert len(list(tmp_path.iterdir())) == 4


def test_twenty_looks_at_the_same_moment_are_all_kept(tmp_path: Path) -> None:
    """Twenty `tuimon wait` on a host whose launch stalls."""
    together = threading.Barrier(20)

    def look(_: int) -> tuple[str | None, tuple[str, ...]]:
        together.wait()
        found = Diagnosis(LOOK, Collectives(source="ras", counts=()), (), (), 0.1)
        return saved.save(LOOK, "h", AT, folder=tmp_path).text, kept.keep("report", found, "h", AT, tmp_path).paths

    with ThreadPoolExecutor(20) as pool:
        looks = list(pool.map(look, range(20)))
    assert len({text for text, _ in looks}) == 20
    assert len({paths[0] for _, paths in looks}) == 20
    assert all(text and Path(text).read_text() for text, _ in looks)


def test_secrets_do_not_reach_the_disk(tmp_path: Path) -> None:
    kept = saved.save(LOOK, "h", AT, {"command": "sglang --api-key sk-verysecret123456789 --tp 8"}, tmp_path)
    assert kept.text is not None
    assert kept.json is not None
    assert "verysecret" not in Path(kept.text).read_text() + Path(kept.json).read_text()


def test_only_the_newest_looks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "KEEP", 2)
    (tmp_path / "mine.txt").touch()
    kept = [saved.save(LOOK, "h", AT + n, folder=tmp_path) for n in range(4)]
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".txt"} == {
        "mine.txt",
        *(Path(look.text or "").name for look in kept[2:]),
    }


def test_a_full_disk_is_said_and_leaves_no_torn_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    kept = saved.save(LOOK, "h", AT, folder=tmp_path)

    assert kept.text is None
    assert kept.note == f"not saved: {tmp_path}: No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = saved.save(LOOK, "h", AT, folder=tmp_path / "file" / "stacks")
    assert kept.text is None
    assert kept.note is not None
    assert "Not a directory" in kept.note
