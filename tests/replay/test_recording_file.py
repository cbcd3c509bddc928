"""A recording is read as far as it goes, whatever happened to the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tuimon.launch.events import AnyEvent, Gap, Linked, LogReset, LogText, Process, Sample, ServerFound
from tuimon.recording import form
from tuimon.recording.errors import UnreadableRecording
from tuimon.recording.form import Header, Recorded, block_bytes, header_bytes, line
from tuimon.recording.reader import RecordingFile
from tuimon.recording.writer import Writer

START = 1_800_000_000.0


def story(seconds: int) -> list[AnyEvent]:
    """A launch of so many seconds: a line of the log and a sample in each."""
    events: list[AnyEvent] = [Linked(at=START, host="gpu-17"), ServerFound(at=START, pid=7, engine="sglang")]
    for second in range(seconds):
        at = START + second + 0.1
        events.append(LogText(at=at, offset=second * 10, text=b"line %04d\n" % second))
        processes = (Process(pid=7, ppid=1, state="S", cpu=float(second)),)
        events.append(Sample(at=at, host_time=at, mono=float(second), processes=processes))
    return events


def written(folder: Path, events: list[AnyEvent]) -> Path:
    """A file with a block for each event."""
    path = folder / "one.tuimon"
    writer = Writer(path, Header(form.VERSION, "gpu-17", START, "sglang"))
    for event in events:
        writer.write([line(event)], event.at, event.at)
    writer.close()
    return path


def read(path: Path) -> tuple[list[Recorded], list[str]]:
    """All events, and what is wrong with the file."""
    file = RecordingFile.open(path)
    events = [event for index in range(len(file.frames)) for event in file.read(index)]
    return events, file.notes


def test_what_was_written_is_read(tmp_path: Path) -> None:
    events = story(200)
    path = written(tmp_path, events)
    file = RecordingFile.open(path)
    assert read(path) == (events, [])
    assert (file.header.host, file.header.engine, len(file.frames)) == ("gpu-17", "sglang", 4)


def test_a_minute_can_be_read_without_what_is_before_it(tmp_path: Path) -> None:
    events = story(200)
    file = RecordingFile.open(written(tmp_path, events))
    assert file.read(2) == [event for event in events if START + 120 <= event.at < START + 180]


def test_the_first_line_says_what_it_is(tmp_path: Path) -> None:
    first = written(tmp_path, story(1)).read_bytes().splitlines()[0]
    assert json.loads(first)["format"] == "tuimon.recording"


@pytest.mark.parametrize("cut", [1, 10, 60, 300])
def test_a_torn_file_is_read_up_to_the_tear_and_says_so(tmp_path: Path, cut: int) -> None:
    events = story(20)
    path = written(tmp_path, events)
    path.write_bytes(path.read_bytes()[:-cut])
    kept, notes = read(path)
    assert kept == events[: len(kept)]
    assert len(events) - 8 < len(kept) < len(events)
    assert "torn" in notes[0]


def test_damage_in_the_middle_costs_its_minute_and_is_a_gap(tmp_path: Path) -> None:
    events = story(300)
    path = written(tmp_path, events)
    text = bytearray(path.read_bytes())
    block = RecordingFile.open(path).frames[1].blocks[40]
    text[block.offset + 3] ^= 0xFF
    path.write_bytes(text)
    kept, notes = read(path)
    gaps = [event for event in kept if isinstance(event, Gap)]
    resets = [event for event in kept if isinstance(event, LogReset)]
    rest = [event for event in kept if not isinstance(event, Gap | LogReset)]
    assert len(gaps) == 1
    assert START + 70 < gaps[0].at <= START + 121
    assert [reset.offset for reset in resets] == [1200]
    assert 0 < len(events) - len(rest) <= 100
    assert all(event in events for event in rest)
    assert rest[-1] == events[-1]
    assert any("damaged" in note for note in notes)


def test_garbage_between_blocks_is_stepped_over(tmp_path: Path) -> None:
    events = story(180)
    path = written(tmp_path, events)
    text = path.read_bytes()
    cut = RecordingFile.open(path).frames[1].blocks[10].offset - form.HEAD.size
    path.write_bytes(text[:cut] + b"garbage" + form.MAGIC + b"more" + text[cut:])
    kept, notes = read(path)
    assert kept[-1] == events[-1]
    assert "damaged: read on behind them" in notes[0]


def test_a_damaged_first_line_loses_only_the_names(tmp_path: Path) -> None:
    events = story(5)
    path = written(tmp_path, events)
    path.write_bytes(b"x" * 500 + path.read_bytes()[500:])
    kept, notes = read(path)
    assert kept == events
    assert "first line is damaged" in notes[0]


def test_a_file_with_nothing_but_its_first_line_is_an_empty_recording(tmp_path: Path) -> None:
    assert read(written(tmp_path, [])) == ([], [])


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"format":"other","version":1}\n', b"\x28\xb5\x2f\xfd" * 99])
def test_another_file_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UnreadableRecording, match=r"notes\.txt is no recording"):
        RecordingFile.open(path)


def test_a_missing_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match="No such file"):
        RecordingFile.open(tmp_path / "none")


def test_a_file_of_a_later_version_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "later"
    path.write_bytes(header_bytes(Header(99, "gpu-17", START, tuimon="9.0")))
    with pytest.raises(UnreadableRecording, match="version 99"):
        RecordingFile.open(path)


def test_a_file_of_an_older_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def upgrade(raw: dict[str, object]) -> dict[str, object]:
        """Version 0 called `at` `when`."""
        return {**raw, "at": raw["when"]}

    monkeypatch.setattr("tuimon.recording.form.UPGRADES", {0: upgrade})
    monkeypatch.setattr("tuimon.recording.reader.UPGRADES", {0: upgrade})
    old = b'{"event":"Linked","when":1800000000.5,"host":"gpu-17"}\n'
    path = tmp_path / "old"
    frame = zstandard.compress(old)
    block = block_bytes(frame, form.STARTS, len(old), (START + 0.5, START + 0.5))
    path.write_bytes(header_bytes(Header(0, "gpu-17", START)) + block)
    assert read(path) == ([Linked(at=START + 0.5, host="gpu-17")], [])


def test_what_a_later_tuimon_recorded_beside_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "new.tuimon"
    writer = Writer(path, Header(form.VERSION, "gpu-17", START))
    known = Linked(at=START, host="gpu-17")
    writer.write([b'{"event":"Telepathy","at":1800000000.0}\n', line(known)[:-2] + b',"more":1}\n'], START, START)
    writer.close()
    assert read(path) == ([known], ["some lines mean nothing to this version of tuimon"])


def test_instants_never_go_back(tmp_path: Path) -> None:
    events = story(3)
    events.append(structs.replace(events[2], at=START - 100))
    kept, _ = read(written(tmp_path, events))
    assert [event.at for event in kept] == sorted(event.at for event in kept)
    assert len(kept) == len(events)


def test_a_small_block_that_unpacks_to_gigabytes_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tuimon"
    bomb = zstandard.compress(b"\n" * (256 * 1024 * 1024))
    path.write_bytes(
        header_bytes(Header(form.VERSION, "h", START)) + block_bytes(bomb, form.STARTS, 1000, (START, START))
    )
    assert read(path)[0] == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), min_size=1, max_size=20))
def test_any_bytes_are_read_without_a_traceback(tmp_path: Path, places: list[tuple[int, int]]) -> None:
    path = tmp_path / "one.tuimon"
    if not path.exists():
        written(tmp_path, story(90))
    text = bytearray(path.read_bytes())
    for place, value in places:
        text[place % len(text)] = value
    spoiled = tmp_path / "spoiled.tuimon"
    spoiled.write_bytes(text)
    try:
        read(spoiled)
    except UnreadableRecording as error:
        assert error.sentence()  # noqa: PT017  either it is read or it is refused in words
