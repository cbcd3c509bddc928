"""Output that is no file: the stream program against stand-ins for docker, kubectl and journalctl."""

# mypy: allow-untyped-calls

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.probe.test_probe_tail import RunningTail
from tuimon.probe import send
from tuimon.probe.program.containers import ContainerFile, Lines, later, seconds
from tuimon.probe.program.journal import Journal
from tuimon.probe.program.stream import HEAD

STAMPS = [f"2026-11-30T06:22:{second:02}.{fraction}Z" for second in range(60) for fraction in ("1", "25")]


class RunningStream(RunningTail):
    """A real stream, as a host would run it."""

    def __init__(self, name: str, offset: int, mark: str | None, path: str) -> None:
        environment = {**os.environ, "PATH": path}
        self.program = subprocess.Popen(
            send.command(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self.program.stdin is not None
        self.program.stdin.write(send.stream_payload(name, offset, mark))
        self.program.stdin.flush()


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Callable[..., RunningStream]]:
    running: list[RunningStream] = []

    def start(name: str, offset: int = -1, mark: str | None = None, **programs: str) -> RunningStream:
        for program, script in programs.items():
            (tmp_path / program).write_text(f"#!{sys.executable}\nimport sys, time\n{textwrap.dedent(script)}")
            (tmp_path / program).chmod(0o755)
        running.append(RunningStream(name, offset, mark, f"{tmp_path}:/usr/bin:/bin"))
        return running[-1]

    yield start
    for started in running:
        started.close()


LOG = """
    lines = [stamp + " line %d" % number for number, stamp in enumerate(STAMPS)]
    since = [word[8:] for word in sys.argv if word.startswith("--since=")]
    lines = [line for line in lines if not since or line >= since[0]]
    for word in sys.argv:
        if word.startswith("--tail="):
            lines = lines[-int(word[7:]):]
    print("\\n".join(lines), flush=True)
    time.sleep(600 if "-f" in sys.argv else 0)
""".replace("STAMPS", repr(STAMPS))


def test_a_containers_log_is_read_and_goes_on_after_its_mark(stream: Callable[..., Any]) -> None:
    first = stream("docker:one", docker=LOG)
    text = b""
    while b"line 119\n" not in text:
        header, piece = first.frame()
        assert (header["kind"], header["offset"]) == ("text", len(text))
        text += piece
    assert header["mark"] == STAMPS[-1]
    assert text == b"".join(b"line %d\n" % number for number in range(120))
    again = stream("docker:one", len(text), STAMPS[116], docker=LOG)
    assert again.text(27) == b"line 117\nline 118\nline 119\n"


AGED = """
    def stamp(ago):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - ago)) + ".5Z "
    if "-f" in sys.argv:
        time.sleep(0.2)
        print(stamp(-2) + "new", flush=True)
        time.sleep(600)
    print(stamp(400) + "old")
    print(stamp(300) + "last")
"""


def test_what_was_there_before_tells_its_age_and_what_comes_then_needs_none(stream: Callable[..., Any]) -> None:
    running = stream("docker:one", docker=AGED)
    header, text = running.frame()
    assert text == b"old\nlast\n"
    assert 298 <= header["age"] <= 302
    header, text = running.frame()
    assert text == b"new\n"
    assert "age" not in header


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2026-11-30T06:22:00Z", 1796019720.0),
        ("2026-11-30T06:22:00.25Z", 1796019720.25),
        ("2026-11-30T07:22:00.250000000+01:00", 1796019720.25),
        ("2026-11-30T01:52:00-04:30", 1796019720.0),
        ("2026-99-30T06:22:00Z", None),
        ("yesterday", None),
    ],
)
def test_a_time_of_a_line_is_an_instant(stamp: str, at: float | None) -> None:
    assert seconds(stamp) == at


def test_a_record_of_the_journal_tells_when_it_was_written() -> None:
    journal = Journal("sglang.service")
    assert journal.written(None) is None
    record = {"__CURSOR": "c", "MESSAGE": "m", "__REALTIME_TIMESTAMP": "1796019720250000"}
    journal.take(json.dumps(record).encode(), None)
    assert journal.written("c") == 1796019720.25
    journal.take(json.dumps({**record, "__REALTIME_TIMESTAMP": ["?"]}).encode(), None)
    assert journal.written("c") is None


def test_the_program_it_runs_ends_with_it(stream: Callable[..., Any]) -> None:
    running = stream("docker:one", docker=LOG)
    running.frame()
    children: list[int] = []
    for _ in range(200):
        children = [
            int(entry.name)
            for entry in Path("/proc").glob("[0-9]*")
            if f"{running.program.pid}" in _ancestors(int(entry.name))
        ]
        if children:
            break
        subprocess.run(["sleep", "0.02"], check=True)
    assert children
    running.program.kill()
    running.program.wait()
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in children):
            return
        subprocess.run(["sleep", "0.02"], check=True)
    pytest.fail("it was left behind")


def _ancestors(pid: int) -> list[str]:
    found = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
        found.append(str(pid))
    return found


def test_a_log_longer_than_the_head_skips_to_its_end(stream: Callable[..., Any]) -> None:
    running = stream("docker:one", docker=LOG.replace('" line %d" % number', f'" " + "x" * {HEAD // 30}'))
    kinds = [running.frame()[0] for _ in range(12)]
    assert [header["kind"] for header in kinds if header["kind"] != "text"][:1] == ["skipped"]


def test_the_way_that_works_is_taken_and_why_none_does_is_said(stream: Callable[..., Any]) -> None:
    refusing = 'sys.exit("permission denied while trying to connect to the Docker daemon socket")'
    running = stream("docker:one", docker=refusing, podman=LOG)
    assert running.frame()[1].startswith(b"line 0\n")
    header, _ = stream("docker:one", docker=refusing, podman="sys.exit(3)").frame()
    assert header["kind"] == "denied"
    assert "permission denied" in header["reason"]


def test_a_units_journal_is_read_by_cursor(stream: Callable[..., Any]) -> None:
    records: list[dict[str, object]] = [{"__CURSOR": f"s={number}", "MESSAGE": f"line {number}"} for number in range(3)]
    records += [{"__CURSOR": "s=3", "MESSAGE": list(b"bar\r\x1b[1m")}, {"__CURSOR": "s=4", "MESSAGE": None}]
    journal = f"""
        assert "_SYSTEMD_UNIT=sglang.service" in sys.argv, sys.argv
        after = [int(word[17:]) for word in sys.argv if word.startswith("--after-cursor=s=")]
        for number, record in enumerate({[json.dumps(record) for record in records]!r}):
            if not after or number > after[0]:
                print(record, flush=True)
        time.sleep(600 if "-f" in sys.argv else 0)
    """
    running = stream("journal:sglang.service", journalctl=journal)
    assert running.text(31) == b"line 0\nline 1\nline 2\nbar\r\x1b[1m\n\n"
    assert stream("journal:sglang.service", 7, "s=2", journalctl=journal).text(10) == b"bar\r\x1b[1m\n\n"


@pytest.mark.parametrize("name", ["journal:-x", "journal:a b.service", "docker:--help", "journal:x"])
def test_what_is_no_name_never_becomes_an_argument(name: str) -> None:
    done = subprocess.run(
        send.command(sys.executable), input=send.stream_payload(name, 0, None), capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"is no" in done.stderr


def test_times_compare_whatever_their_fractions() -> None:
    assert later("2026-11-30T06:22:00.25Z", "2026-11-30T06:22:00.1Z")
    assert later("2026-11-30T06:22:00.5Z", "2026-11-30T06:22:00Z")
    assert not later("2026-11-30T06:22:00.10Z", "2026-11-30T06:22:00.1Z")
    assert later("2026-11-30T06:22:00Z", "@1796020234.25")


def test_a_launchs_start_is_told_in_each_programs_own_way() -> None:
    docker = Lines(["docker", "logs"], "--since=", ["one"])
    assert docker.head("@1796020234.25") == ["docker", "logs", "--since=2026-11-30T06:30:34.25Z", "one"]
    assert Lines(["kubectl", "logs"], "--since-time=", ["one"]).head("@1.5") == ["kubectl", "logs", "one"]
    assert "--since=@1796020234.25" in Journal("sglang.service").head("@1796020234.25")
    assert "_SYSTEMD_USER_UNIT=sglang.service" in Journal("user/sglang.service").head(None)


def test_the_runtimes_own_files_are_understood() -> None:
    file = ContainerFile("abc")
    json_line = b'{"log":"hello\\n","stream":"stderr","time":"2026-11-30T06:22:00.5Z"}'
    assert file.take(json_line, None) == (b"hello\n", "2026-11-30T06:22:00.5Z")
    assert file.take(json_line, "2026-11-30T06:22:00.5Z") == (b"", "2026-11-30T06:22:00.5Z")
    assert file.take(b"2026-11-30T06:22:00.5Z stdout F hello", None)[0] == b"hello\n"
    assert file.take(b"2026-11-30T06:22:00.5Z stderr P hel", None)[0] == b"hel"
    for line in (b"", b"{}", b'{"log":1,"time":2}', b"\xff", b"tail: cannot open"):
        with pytest.raises(ValueError):  # noqa: PT011  its text is the line
            file.take(line, None)
