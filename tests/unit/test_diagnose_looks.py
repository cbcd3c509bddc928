"""Single looks in words: who is behind, what SIGABRT would do, a page of the debug server; and what is kept."""

from __future__ import annotations

import json
import stat
import zlib
from pathlib import Path

import pytest

from tuimon.diagnose import abort, debug_server, kept, recorder, told
from tuimon.diagnose.conclusion import named
from tuimon.diagnose.ladder import Diagnosis
from tuimon.diagnose.preflight import Preflight
from tuimon.diagnose.targets import Target
from tuimon.launch.events import CollectiveCount, Collectives, Finding, Stacks

COUNTS = (
    CollectiveCount("TP0", "0x1", 22, 10), CollectiveCount("TP1", "0x1", 21, 11),
    CollectiveCount("TP0", "0x2", 5, 10), CollectiveCount("TP1", "0x2", 4, 11),
    CollectiveCount("TP2", "0x2", None, 12, missing=True),
)  # fmt: skip
BEHIND = Collectives(source="NCCL RAS", counts=COUNTS, text="0x1 TP0 (pid 10): AllReduce 22")


def test_a_rank_that_is_behind_in_two_communicators_is_named_once() -> None:
    assert [(each.rank, each.reason) for each in named(None, [BEHIND])] == [
        ("TP1", "launched 21 of 22 collectives"), ("TP2", "does not answer"),
    ]  # fmt: skip
    assert told.collectives(BEHIND).startswith("# TP1 launched 21 of 22 collectives, TP2 does not answer\n")


def test_equal_counts_accuse_nobody_and_no_counts_say_why() -> None:
    equal = Collectives(source="NCCL RAS", counts=COUNTS[:1], text="x")
    assert told.collectives(equal).startswith("# All ranks have launched equally many")
    nothing = Collectives(source="NCCL RAS", counts=(), text="nobody listens on port 28028")
    assert "# Nothing was counted" in told.collectives(nothing)
    assert "nobody listens on port 28028" in told.collectives(nothing)


@pytest.mark.parametrize(
    ("seen", "words", "can"),
    [
        ({"SigCgt": "00000000000004ea", "State": "S (sleeping)"}, "faulthandler is on", True),
        ({"SigCgt": "0000000000000002"}, "faulthandler is off: it dies WITHOUT printing a stack", True),
        ({"SigCgt": "0000000000000020"}, "a handler of its own", True),
        ({"SigCgt": "0", "SigIgn": "0000000000000020"}, "it ignores SIGABRT: nothing would happen", False),
        ({"SigCgt": "0", "NSpid": "4711 1"}, "process 1 of a container", False),
        ({"SigCgt": "4ea", "State": "T (stopped)"}, "it is stopped: the signal waits until it goes on", True),
        ({"SigCgt": "4ea", "State": "D (disk sleep)"}, "cannot take the signal now", True),
        ({"SigCgt": "4ea", "core_pattern": "|/usr/lib/apport", "VmRSS": "90 kB"}, "core file may be written", True),
        ({"SigCgt": "4ea", "core_pattern": "core", "core_limit": "unlimited"}, "core file may be written", True),
        ({}, "its signal masks cannot be read", False),
    ],
)
def test_what_sigabrt_would_do_is_read_from_the_masks(seen: dict[str, str], words: str, can: bool) -> None:
    said, possible = abort.consequence(seen, 4711)
    assert words in said
    assert possible is can


def test_without_a_core_file_none_is_spoken_of() -> None:
    assert "core" not in abort.consequence({"SigCgt": "4ea", "core_pattern": "core", "core_limit": "0"}, 1)[0]


def test_the_aim_is_the_suspect_else_the_first_rank() -> None:
    targets = [Target(1, "launcher"), Target(2, "TP0"), Target(3, "TP1")]
    assert abort.choose(targets, {3}) == targets[2]
    assert abort.choose(targets, ()) == targets[1]
    assert abort.choose(targets[:1], ()) == targets[0]
    assert abort.choose([], ()) is None
    assert told.aim(abort.Aim(targets[2], "it dies; the server goes down", can=True)) == (
        "# SIGABRT to TP1 (pid 3)\n\n- it dies\n- the server goes down\n"
    )


def test_a_page_of_the_debug_server_becomes_its_words() -> None:
    page = (
        "<html><head><title>x</title></head><style>p {}</style><script>alert(1)</script>"
        "<h2>Rank 0</h2><pre>  File &quot;a.py&quot;, line 3\x1b[31m</pre></html>"
    )
    assert debug_server.as_lines(page) == ("Rank 0", '  File "a.py", line 3�[31m')
    assert debug_server.as_lines("<script>never closed") == ()
    assert debug_server.read(b'{"absent": true}')[1].startswith("no process of this launch listens")
    assert debug_server.read(b"x")[1] == "the host's answer cannot be read"


def frame(header: dict[str, object], body: bytes = b"") -> bytes:
    return json.dumps({**header, "length": len(body)}).encode() + b"\n" + body


def test_a_damaged_dump_is_told_and_the_others_are_read() -> None:
    packed = zlib.compress(b"no pickle")
    output = frame({"pid": 1, "rank": 0}, packed) + frame({"pid": 2, "rank": 1}, b"no zlib")
    output += frame({"pid": 3, "rank": 2, "error": "it is stopped"}) + frame({"done": True})
    found = recorder.read(output, {1: "TP0"})
    assert found.collectives is None
    assert found.unread[0].startswith("flight recorder of TP0: the dump")
    assert found.unread[1] == "flight recorder of rank 1: the dump broke off on the way"
    assert found.unread[2] == "flight recorder of rank 2: it is stopped"
    assert "# No flight-recorder dump" in told.recorded(found)


def test_where_no_rank_has_a_recorder_it_says_how_to_get_one() -> None:
    (why,) = recorder.read(frame({"done": True}), {}).unread
    assert "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in why


def test_a_diagnosis_is_kept_as_a_folder_without_secrets_and_the_oldest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "KEEP", 2)
    finding = Finding(source="kernel", kind="xid", text="Xid 79 --api-key=sk-very-secret-value-123")
    recorded = recorder.Recorded(None, {"TP0": b"raw"}, ())
    found = Diagnosis(Stacks(), BEHIND, (finding,), (), 0.1, recorded)
    written = [kept.keep("# report", found, "demo:x/../y", 1_800_000_000.0, tmp_path) for _ in range(3)]
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert len(folders) == 2
    assert all(name.startswith("diagnosis-20270115-080000") for name in folders)
    last = [Path(path) for path in written[-1].paths]
    assert [path.name for path in last] == [
        "report.md", "stacks.txt", "stacks.json", "collectives.json", "kernel.json", "flight_recorder_TP0.pickle",
    ]  # fmt: skip
    assert last[0].read_text() == "# report"
    assert last[-1].read_bytes() == b"raw"
    assert not any(b"very-secret" in path.read_bytes() for path in last)
    assert stat.S_IMODE(last[0].parent.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = Diagnosis(Stacks(), BEHIND, (), (), 0.1)
    written = kept.keep("# report", found, "x", 0.0, tmp_path / "file")
    assert written.paths == ()
    assert written.note is not None
    assert "not saved" in written.note


def test_a_draft_that_fits_is_said_in_one_line() -> None:
    found = Preflight("/d", None, "sglang", "0.5.6", version_known=False, format="eagle3", verdict="ok", findings=())
    assert told.checkpoint(found).startswith("# fits: every tensor is where sglang 0.5.6 looks for it\n")
    assert "the server's version is not known" in told.checkpoint(found)
