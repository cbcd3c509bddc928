"""The recorder keeps everything, without secrets, within bounds; what the disk does never reaches the watching."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tuimon.launch.events import (
    AnyEvent,
    CommandRun,
    Finding,
    Gap,
    Linked,
    LogReset,
    LogText,
    Process,
    Sample,
    ServerFound,
)
from tuimon.recording import recorder as module
from tuimon.recording.backlog import Backlog
from tuimon.recording.form import Judged, Recorded
from tuimon.recording.reader import RecordingFile
from tuimon.recording.recorder import Recorder
from tuimon.recording.secrets import Censor
from tuimon.recording.series import Series
from tuimon.recording.shelf import Limits, Shelf
from tuimon.recording.writer import Writer
from tuimon.watch.later import nothing_yet

START = 1_800_000_000.0
LIMITS = Limits(10**9, 30)
PROMISED = 2.0 * 2
"""Seconds; twice what is promised, because tests share their machine."""
LINKED = Linked(at=START, host="gpu-17")


def found(pid: int, at: float, **more: object) -> ServerFound:
    return structs.replace(ServerFound(at=at, pid=pid, engine="sglang", started=float(pid), age=5.0), **more)


def sample(second: int) -> Sample:
    return Sample(at=START + second, mono=float(second), processes=(Process(pid=7, ppid=1, state="S"),))


def text(second: float, offset: int, content: bytes) -> LogText:
    return LogText(at=START + second, offset=offset, text=content)


def recordings(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tuimon"))


def read(path: Path) -> list[Recorded]:
    file = RecordingFile.open(path)
    return [event for index in range(len(file.frames)) for event in file.read(index)]


def until(true: Callable[[], object], seconds: float = 8.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def recorded(folder: Path, events: list[AnyEvent], **more: object) -> list[AnyEvent]:
    """Record these events; what the recorder said."""
    said: list[AnyEvent] = []
    recorder = Recorder(folder, "gpu-17", LIMITS, say=said.append, **more)  # type: ignore[arg-type]
    recorder.start()
    for event in events:
        recorder.take(event)
    recorder.stop()
    return said


def test_every_event_is_kept_in_a_file_named_after_host_engine_and_start(tmp_path: Path) -> None:
    events: list[AnyEvent] = [LINKED, sample(1), found(7, START + 2), text(2, 0, b"hello\n"), sample(3)]
    assert recorded(tmp_path / "new", events) == []
    (path,) = recordings(tmp_path / "new")
    assert path.name == "gpu-17_sglang_2027-01-15T08-00-00Z.tuimon"
    assert read(path) == events
    assert RecordingFile.open(path).header.engine == "sglang"
    assert path.stat().st_mode & 0o077 == 0


def test_what_was_taken_can_soon_be_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=lambda _: None)
    recorder.start()
    recorder.take(LINKED)
    until(lambda: recordings(tmp_path) and read(recordings(tmp_path)[0]) == [LINKED], PROMISED)
    recorder.take(sample(1))
    until(lambda: len(read(recordings(tmp_path)[0])) == 2, PROMISED)
    recorder.stop()


def test_it_is_put_onto_the_disk_soon_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    monkeypatch.setattr("tuimon.recording.writer.os.fsync", lambda _file: synced.set())
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=lambda _: None)
    recorder.start()
    recorder.take(LINKED)
    assert synced.wait(PROMISED)
    recorder.stop()


def test_each_launch_has_a_file_that_is_complete_in_itself(tmp_path: Path) -> None:
    events: list[AnyEvent] = [
        LINKED, found(7, START + 1), sample(2), found(7, START + 3), found(8, START + 9), sample(10),
    ]  # fmt: skip
    recorded(tmp_path, events)
    first, second = recordings(tmp_path)
    assert read(first) == events[:4]
    assert read(second) == [structs.replace(LINKED, at=START + 9), *events[4:]]


def test_the_verdict_of_the_time_is_kept(tmp_path: Path) -> None:
    view = nothing_yet("gpu-17", START)
    verdict = structs.replace(view.verdict, state="stalled", kind="host deadlock", headline="nothing alive")
    recorded(tmp_path, [LINKED], view=lambda: structs.replace(view, verdict=verdict))
    assert read(recordings(tmp_path)[0])[-1] == Judged(
        at=START, state="stalled", kind="host deadlock", headline="nothing alive"
    )


# Secrets.


def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    key = "sk-verysecretverysecret"
    process = Process(pid=7, ppid=1, state="S", title=f"python -m sglang.launch_server --api-key {key}")
    events: list[AnyEvent] = [
        LINKED,
        found(7, START, argv=("python", "--api-key", key)),
        text(1, 0, f"server_args=ServerArgs(api_key='{key}')\n".encode()),
        CommandRun(at=START + 2, command=f"curl -H 'Authorization: Bearer {key}'", why="health"),
        Finding(at=START + 2, source="x", kind="y", text=f"api_key={key}"),
        Sample(at=START + 3, mono=1.0, processes=(process,), strangers={9: f"other --token {key}"}),
    ]
    recorded(tmp_path, events)
    kept = read(recordings(tmp_path)[0])
    assert len(kept) == len(events)
    assert key not in repr(kept)


def test_a_secret_across_two_pieces_of_the_log_is_hidden_too() -> None:
    line = b"args: api_key='sk-verysecretverysecret' tp=8\n"
    for cut in range(1, len(line)):
        censor = Censor()
        first = list(censor.clean([text(1, 0, line[:cut])]))
        second = list(censor.clean([text(2, cut, line[cut:])]))
        kept = b"".join(event.text for event in [*first, *second] if isinstance(event, LogText))
        assert b"verysecret" not in kept
        assert kept.startswith(b"args:")
        assert kept.endswith(b"tp=8\n")


def test_an_unfinished_line_waits_for_one_batch_only() -> None:
    censor = Censor()
    assert list(censor.clean([text(1, 0, b"done\nLoading: 12 %")])) == [text(1, 0, b"done\n")]
    assert list(censor.clean([sample(2)])) == [sample(2), text(1, 5, b"Loading: 12 %")]
    assert list(censor.clean([sample(3)], last=True)) == [sample(3)]


# Bounds.


def test_a_launch_that_grows_too_large_goes_on_in_a_part_that_tells_its_beginning_again(tmp_path: Path) -> None:
    series = Series(Shelf(tmp_path, Limits(0, 30)), "gpu-17")  # 1 MB a part
    series.write([LINKED, found(7, START), text(1, 0, b"Load weight begin\n")])
    for number in range(6):
        series.write([text(2 + number, 18 + number * 400_000, os.urandom(400_000))])
    series.close()
    last = recordings(tmp_path)[-1]
    assert "_part" in last.name
    kept = read(last)
    assert [type(event) for event in kept[:3]] == [Linked, ServerFound, LogText]
    assert isinstance(kept[1], ServerFound)
    assert kept[1].age == pytest.approx(5.0 + kept[1].at - START)
    assert isinstance(kept[2], LogText)
    assert kept[2].text == b"Load weight begin\n"
    assert any(isinstance(event, LogReset) for event in kept)


def test_old_and_many_recordings_go_the_oldest_first_and_never_one_that_is_written(tmp_path: Path) -> None:
    now = 2_000_000_000.0
    for days, name in ((40, "old"), (3, "third"), (2, "second"), (1, "first")):
        path = tmp_path / f"{name}.tuimon"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (now - days * 86_400, now - days * 86_400))
    other = tmp_path / "notes.txt"
    other.write_bytes(b"x" * 10_000)
    series = Series(Shelf(tmp_path, LIMITS), "gpu-17")
    series.write([LINKED])
    assert series.path is not None
    os.utime(series.path, (0, 0))
    Shelf(tmp_path, Limits(3600, 30)).tidy(now)
    assert {path.name for path in recordings(tmp_path)} == {"first.tuimon", "second.tuimon", series.path.name}
    assert other.exists()
    series.close()


def test_two_watches_of_one_host_in_one_second_do_not_share_a_file(tmp_path: Path) -> None:
    two = [Series(Shelf(tmp_path, LIMITS), "gpu-17") for _ in range(2)]
    for series in two:
        series.write([LINKED, found(7, START)])
    assert len({series.path for series in two}) == 2
    for series in two:
        series.close()


def test_a_hosts_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    path = Shelf(tmp_path, LIMITS).path("../../etc/passwd\n\x1b[31m", "sg/lang", START)
    assert path.parent == tmp_path
    assert path.name.isprintable()


def test_what_does_not_fit_into_memory_is_counted_and_told() -> None:
    backlog = Backlog(most=3000)
    told: list[AnyEvent] = [sample(0), text(1, 0, b"a" * 5000), sample(2), LINKED]
    for event in told:
        backlog.put(event)
    events, lost = backlog.take()
    assert events == [sample(0), LINKED]
    assert lost is not None
    assert (lost.events, lost.text, lost.offset, lost.since) == (2, 5000, 5000, START + 1)


# The disk.


class SlowDisk:
    """fsync and pwrite wait until the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.waiting = threading.Event()
        write = os.pwrite

        def slow(file: int, content: bytes, offset: int) -> int:
            self.waiting.set()
            self.go_on.wait(10)
            return write(file, content, offset)

        monkeypatch.setattr("tuimon.recording.writer.os.pwrite", slow)


def test_a_slow_disk_holds_nobody_and_what_it_lost_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SlowDisk(monkeypatch)
    said: list[AnyEvent] = []
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=said.append, most=20_000)
    recorder.start()
    recorder.take(LINKED)
    assert disk.waiting.wait(5)
    began = time.monotonic()
    for second in range(1, 1000):
        recorder.take(sample(second))
    assert time.monotonic() - began < 0.5
    disk.go_on.set()
    until(lambda: said)
    recorder.take(sample(2000))
    recorder.stop()
    assert isinstance(said[0], Finding)
    assert "too slow" in said[0].text
    kept = read(recordings(tmp_path)[0])
    (gap,) = [event for event in kept if isinstance(event, Gap)]
    samples = [event for event in kept if isinstance(event, Sample)]
    assert f"{1000 - len(samples)} events missing" in gap.reason
    assert gap.of == "tuimon"
    assert samples[-1] == sample(2000)


def test_a_disk_that_never_answers_does_not_hold_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SlowDisk(monkeypatch)
    monkeypatch.setattr(module, "STOP_WITHIN", 0.2)
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=lambda _: None)
    recorder.start()
    recorder.take(LINKED)
    assert disk.waiting.wait(5)
    began = time.monotonic()
    recorder.stop()
    assert time.monotonic() - began < 2.0
    disk.go_on.set()


def test_a_full_disk_is_said_once_and_recording_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = threading.Event()
    write = os.pwrite

    def maybe(file: int, content: bytes, offset: int) -> int:
        if not full.is_set():
            return write(file, content, offset)
        if len(content) > 20:
            return write(file, content[:20], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tuimon.recording.writer.os.pwrite", maybe)
    monkeypatch.setattr(module, "RETRY", 0.05)
    said: list[AnyEvent] = []
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=said.append)
    recorder.start()
    for event in (LINKED, found(7, START), text(1, 0, b"one\n")):
        recorder.take(event)
    until(lambda: recordings(tmp_path) and len(read(recordings(tmp_path)[0])) == 3)
    full.set()
    recorder.take(sample(2))
    until(lambda: said)
    recorder.take(text(3, 4, b"two\n"))
    time.sleep(0.7)  # a try that fails again is not said again
    full.clear()
    recorder.take(sample(60))
    until(lambda: len(said) > 1)
    recorder.stop()
    assert [getattr(event, "text", "").split(":")[0] for event in said] == [
        "This watch is not being recorded", "Recording goes on",
    ]  # fmt: skip
    assert "No space left on device" in getattr(said[0], "text", "")
    first, second = recordings(tmp_path)
    assert RecordingFile.open(first).notes == []
    kept = read(second)
    assert [type(event) for event in kept] == [Linked, ServerFound, LogText, LogText, Gap, Sample]
    assert "2 events missing" in next(event.reason for event in kept if isinstance(event, Gap))


def test_a_recording_that_somebody_removes_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.05)
    said: list[AnyEvent] = []
    recorder = Recorder(tmp_path, "gpu-17", LIMITS, say=said.append)
    recorder.start()
    recorder.take(LINKED)
    until(lambda: recordings(tmp_path))
    recordings(tmp_path)[0].unlink()
    recorder.take(sample(1))
    until(lambda: said)
    recorder.take(sample(2))
    until(lambda: recordings(tmp_path))
    recorder.stop()
    assert "the recording was removed" in getattr(said[0], "text", "")
    assert read(recordings(tmp_path)[0])[-1] == sample(2)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (finding,) = recorded(tmp_path / "file" / "recordings", [LINKED])
    assert isinstance(finding, Finding)
    assert finding.severity == "warning"
    assert "Not a directory" in finding.text
    assert "--no-record" in (finding.fix or "")


def test_an_error_of_our_own_ends_in_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr(Writer, "write", broken)
    (finding,) = recorded(tmp_path, [LINKED])
    assert isinstance(finding, Finding)
    assert "no idea" in finding.text
