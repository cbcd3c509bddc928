from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuimon.probe import send
from tuimon.probe.program import tail as program


class RunningTail:
    """A real tail, as a host would run it."""

    def __init__(self, path: Path, offset: int, inode: int | None, python: str, wrapper: tuple[str, ...]) -> None:
        self.program = subprocess.Popen(
            [*wrapper, *send.tail_command(python)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.program.stdin is not None
        self.program.stdin.write(send.tail_payload(os.fspath(path), offset, inode))
        self.program.stdin.flush()

    def close(self) -> None:
        """End it, whatever it does."""
        self.program.kill()
        self.program.wait()
        for pipe in (self.program.stdin, self.program.stdout):
            if pipe is not None:
                pipe.close()

    def frame(self, timeout: float = 10.0) -> tuple[dict[str, Any], bytes]:
        """The next frame."""
        cut = threading.Timer(timeout, self.program.kill)
        cut.start()
        try:
            assert self.program.stdout is not None
            line = self.program.stdout.readline()
            while line == b"\n":
                line = self.program.stdout.readline()
            assert line, "the tail ended or said nothing"
            header = json.loads(line)
            return header, self.program.stdout.read(header["length"])
        finally:
            cut.cancel()

    def text(self, length: int) -> bytes:
        """The next `length` bytes of text, with nothing between them."""
        content = b""
        while len(content) < length:
            header, piece = self.frame()
            assert header["kind"] == "text", header
            content += piece
        return content

    def word(self, kind: str) -> dict[str, Any]:
        """The next frame, which is of this kind."""
        header, _content = self.frame()
        assert header["kind"] == kind, header
        return header


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Callable[..., RunningTail]]:
    running: list[RunningTail] = []

    def start(
        path: Path | None = None, offset: int = 0, inode: int | None = None,
        python: str = sys.executable, wrapper: tuple[str, ...] = (),
    ) -> RunningTail:  # fmt: skip
        running.append(RunningTail(path or tmp_path / "server.log", offset, inode, python, wrapper))
        return running[-1]

    yield start
    for started in running:
        started.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(b"first\n")
    return path


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_gives_what_is_there_and_what_comes(tail: Callable[..., RunningTail], log: Path) -> None:
    following = tail()
    header, content = following.frame()
    assert (header["kind"], header["offset"], content) == ("text", 0, b"first\n")
    append(log, b"\xff\x00second")
    header, content = following.frame()
    assert (header["offset"], content) == (6, b"\xff\x00second")


def test_runs_under_any_python(tail: Callable[..., RunningTail], log: Path, any_python: str) -> None:
    following = tail(python=any_python)
    assert following.text(6) == b"first\n"
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    following.word("rotated")
    assert following.text(4) == b"new\n"


def test_resumes_at_the_last_byte(tail: Callable[..., RunningTail], log: Path) -> None:
    append(log, b"second\n")
    header, content = tail(offset=6).frame()
    assert (header["offset"], content) == (6, b"second\n")


def test_rotation_finishes_the_old_file_first(tail: Callable[..., RunningTail], log: Path) -> None:
    following = tail()
    assert following.text(6) == b"first\n"
    with log.open("ab") as old:
        log.rename(log.with_suffix(".1"))
        old.write(b"last words\n")
        old.flush()
        log.write_bytes(b"new\n")
    assert following.text(11) == b"last words\n"
    assert following.word("rotated")["offset"] == 0
    assert following.text(4) == b"new\n"


def test_rotation_while_nobody_was_connected_is_noticed_by_inode(tail: Callable[..., RunningTail], log: Path) -> None:
    before = log.stat().st_ino
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"a longer new file\n")
    following = tail(offset=6, inode=before)
    following.word("rotated")
    assert following.text(18) == b"a longer new file\n"


def test_truncation_starts_again_at_zero(tail: Callable[..., RunningTail], log: Path) -> None:
    following = tail()
    following.text(6)
    os.truncate(log, 0)
    assert following.word("truncated")["offset"] == 0
    append(log, b"again\n")
    header, content = following.frame()
    assert (header["offset"], content) == (0, b"again\n")


def test_an_offset_beyond_the_file_means_it_was_truncated(tail: Callable[..., RunningTail], log: Path) -> None:
    following = tail(offset=5000)
    following.word("truncated")
    assert following.text(6) == b"first\n"


def test_a_hole_left_by_truncating_under_a_writer_is_skipped(tail: Callable[..., RunningTail], log: Path) -> None:
    log.write_bytes(b"x" * (1 << 20))
    following = tail()
    following.text(1 << 20)
    os.truncate(log, 0)
    following.word("truncated")
    with log.open("r+b") as writer:  # does not append: goes on where it was
        writer.seek(1 << 20)
        writer.write(b"after the hole\n")
    skipped = following.word("skipped")
    assert (skipped["offset"], skipped["skipped"]) == (1 << 20, 1 << 20)
    assert following.text(15) == b"after the hole\n"


def test_a_big_log_starts_with_head_and_tail(tail: Callable[..., RunningTail], log: Path) -> None:
    log.write_bytes(b"h" * (1 << 20) + b"m" * (4 << 20) + b"t" * (1 << 20))
    following = tail(offset=-1)
    assert following.text(256 * 1024) == b"h" * (256 * 1024)
    skipped = following.word("skipped")
    assert (skipped["offset"], skipped["skipped"]) == (5 << 20, (5 << 20) - 256 * 1024)
    assert following.text(1 << 20) == b"t" * (1 << 20)
    append(log, b"and on\n")
    assert following.text(7) == b"and on\n"


def test_a_small_log_starts_at_its_beginning(tail: Callable[..., RunningTail], log: Path) -> None:
    header, content = tail(offset=-1).frame()
    assert (header["offset"], content) == (0, b"first\n")


def test_a_missing_file_is_waited_for(tail: Callable[..., RunningTail], tmp_path: Path) -> None:
    following = tail(tmp_path / "later.log", -1)
    assert following.word("missing")["reason"] == "No such file or directory"
    (tmp_path / "later.log").write_bytes(b"here\n")
    assert following.text(5) == b"here\n"


def test_a_deleted_file_that_comes_back_is_a_new_one(tail: Callable[..., RunningTail], log: Path) -> None:
    following = tail()
    following.text(6)
    log.unlink()
    time.sleep(0.5)
    log.write_bytes(b"back\n")
    following.word("rotated")
    assert following.text(5) == b"back\n"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_no_rights_are_said_and_tried_again(tail: Callable[..., RunningTail], log: Path) -> None:
    log.chmod(0o600)
    for parent in log.parents:
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(0o755)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    following = tail(python="/usr/bin/python3", wrapper=nobody)
    assert following.word("denied")["reason"] == "Permission denied"
    log.chmod(0o644)
    assert following.text(6) == b"first\n"


def test_what_is_no_file_is_refused(tail: Callable[..., RunningTail], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert tail(tmp_path / "fifo").word("denied")["reason"] == "not a regular file"
    assert tail(tmp_path).word("denied")["reason"] == "not a regular file"


def test_a_path_that_is_not_utf8(tail: Callable[..., RunningTail], tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff\xfed 'q\" \n.log"))
    path.write_bytes(b"odd\n")
    assert tail(path).text(4) == b"odd\n"


def test_ends_with_its_stdin_even_when_nobody_reads(tail: Callable[..., RunningTail], log: Path) -> None:
    log.write_bytes(b"x" * (1 << 20))
    following = tail()
    wchan = Path(f"/proc/{following.program.pid}/wchan")
    end = time.monotonic() + 10
    while "pipe_write" not in wchan.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert following.program.stdin is not None
    following.program.stdin.close()
    assert following.program.wait(3) == 0


def test_a_flood_is_held_to_a_rate(tail: Callable[..., RunningTail], log: Path) -> None:
    log.write_bytes(b"x" * (2 << 20))
    following = tail()
    following.frame()
    began = time.monotonic()
    following.text((2 << 20) - 256 * 1024)
    assert 0.3 < time.monotonic() - began < 5


FORGETS = """
import errno, os, sys
real = os.fstat
def fstat(fd):
    if os.path.exists({flag!r}):
        os.unlink({flag!r})
        raise OSError(errno.ESTALE, "Stale file handle")
    return real(fd)
os.fstat = fstat
exec(sys.argv[-1], {{}})
"""


@pytest.fixture
def forgetful(tmp_path: Path) -> tuple[str, Path]:
    """A Python whose file handles turn stale once, as NFS's do, each time the flag is put there."""
    program, flag = tmp_path / "python3", tmp_path / "stale"
    program.write_text(f"#!{sys.executable} -I\n{FORGETS.format(flag=str(flag))}")
    program.chmod(0o755)
    return str(program), flag


def test_a_stale_handle_of_the_same_file_goes_on_at_the_byte(
    tail: Callable[..., RunningTail], log: Path, forgetful: tuple[str, Path]
) -> None:
    following = tail(python=forgetful[0])
    assert following.text(6) == b"first\n"
    forgetful[1].touch()
    append(log, b"second\n")
    header, content = following.frame()
    assert (header["kind"], header["offset"], content) == ("text", 6, b"second\n")


class Looked:
    """The tail look by look, without a clock: its file handle turns stale when it is told to."""

    def __init__(self, log: Path, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stale = False
        self._real = os.fstat
        monkeypatch.setattr(os, "fstat", self._fstat)
        self._told = told.open("w+b", buffering=0)
        self._tail = program.Tail(str(log), 0, None, self._told.fileno())  # type: ignore[no-untyped-call]  # Python 3.6's

    def _fstat(self, fd: int) -> os.stat_result:
        if self.stale:
            self.stale = False
            raise OSError(errno.ESTALE, "Stale file handle")
        return self._real(fd)

    def look(self, *, stale: bool = False) -> list[tuple[str, bytes]]:
        """What one look sends: kinds, and the bytes that came with them."""
        self.stale = stale
        before = self._told.tell()
        self._tail.look()  # type: ignore[no-untyped-call]  # as above
        assert not self.stale
        self._told.seek(before)
        told = self._told.read()
        frames = []
        while told:
            line, _, told = told.partition(b"\n")
            header = json.loads(line)
            frames.append((header["kind"], told[: header["length"]]))
            told = told[header["length"] :]
        return frames

    def close(self) -> None:
        self._told.close()
        if self._tail.fd is not None:
            os.close(self._tail.fd)


def test_a_stale_handle_whose_inode_number_was_given_to_another_file_is_a_rotation(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Looked(log, tmp_path / "told", monkeypatch)
    assert looked.look() == [("text", b"first\n")]
    assert looked.look(stale=True) == []  # opened again, unchanged
    with log.open("r+b") as file:
        file.write(b"another file\n")
    assert looked.look(stale=True) == [("rotated", b""), ("text", b"another file\n")]
    looked.close()
