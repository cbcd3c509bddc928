"""Our small programs against real processes: flight recorders, the debug server, SIGABRT, RAS with stopped ranks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tuimon.diagnose import abort, collectives, debug_server, recorder
from tuimon.diagnose.targets import Target
from tuimon.hosts.local import LocalHost

RANK = textwrap.dedent(
    """
    import os, pickle, sys, time
    number, prefix, dump = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    path = f"{prefix}{number}.pipe"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    entry = {"process_group": ("0", "default"), "profiling_name": "nccl:all_reduce", "frames": []}
    last = 2 - number
    states = {1: "completed", 2: "started"}
    entries = [{**entry, "collective_seq_id": n, "state": states[n]} for n in range(1, last + 1)]
    print("up", flush=True)
    while True:
        time.sleep(0.02)
        try:
            asked = os.read(pipe, 10)
        except BlockingIOError:
            continue
        if asked:
            with open(f"{dump}{number}", "wb") as file:
                file.write(pickle.dumps({"version": "2.10", "entries": entries}, 4))
    """
)


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes with flight recorders, rank 1 one collective behind."""
    environ = {**os.environ, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "trace_")}
    command = [sys.executable, "-c", RANK]
    started = [
        subprocess.Popen(
            [*command, str(number), str(tmp_path / "fr_"), str(tmp_path / "trace_")],
            env=environ,
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == b"up\n"
    yield started
    for each in started:
        each.kill()
        each.communicate()


def targets(ranks: list[subprocess.Popen[bytes]]) -> list[Target]:
    return [Target(rank.pid, f"TP{number}") for number, rank in enumerate(ranks)]


def test_flight_recorders_are_asked_and_the_rank_that_is_behind_is_named(ranks: list[subprocess.Popen[bytes]]) -> None:
    found = asyncio.run(recorder.ask(LocalHost(), targets(ranks)))
    assert found.unread == ()
    assert found.collectives is not None
    assert [(count.rank, count.pid, count.launched) for count in found.collectives.counts] == [
        ("TP0", ranks[0].pid, 2), ("TP1", ranks[1].pid, 1),
    ]  # fmt: skip
    assert pickle.loads(found.dumps["TP0"])["version"] == "2.10"
    assert all(rank.poll() is None for rank in ranks)


def test_without_asking_only_dumps_that_lie_there_are_read_and_nobody_is_disturbed(
    ranks: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    nothing = asyncio.run(recorder.ask(LocalHost(), targets(ranks), trigger=False))
    assert nothing.dumps == {}
    assert not list(tmp_path.glob("trace_*"))
    asyncio.run(recorder.ask(LocalHost(), targets(ranks)))
    assert set(asyncio.run(recorder.ask(LocalHost(), targets(ranks), trigger=False)).dumps) == {"TP0", "TP1"}


def test_a_stopped_rank_writes_nothing_and_is_not_waited_for(ranks: list[subprocess.Popen[bytes]]) -> None:
    ranks[1].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    found = asyncio.run(recorder.ask(LocalHost(), targets(ranks)))
    assert set(found.dumps) == {"TP0"}
    assert found.unread == ("flight recorder of TP1: it is stopped",)
    assert time.monotonic() - began < recorder.WAIT


class Page(BaseHTTPRequestHandler):
    """What the debug server's front page of stacks looks like."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/stacks" else 404)
        self.end_headers()
        self.wfile.write(b"<html><h2>Rank 0</h2><pre>File &quot;x.py&quot;, line 3 in barrier</pre></html>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    made = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_the_debug_server_is_asked_only_where_our_launch_holds_its_port(server: HTTPServer) -> None:
    ours = asyncio.run(debug_server.ask(LocalHost(), [Target(os.getpid())], server.server_port))
    assert ours == (("Rank 0", 'File "x.py", line 3 in barrier'), "")
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        theirs = asyncio.run(debug_server.ask(LocalHost(), [Target(stranger.pid)], server.server_port))
    finally:
        stranger.kill()
        stranger.wait()
    assert theirs[0] == ()
    assert "there is no debug server" in theirs[1]


@contextlib.contextmanager
def sleeper(code: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", f"import faulthandler, time; {code}; print('up', flush=True); time.sleep(600)"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.communicate()


def test_the_aim_reads_and_sends_nothing_and_the_signal_prints_the_stack() -> None:
    with sleeper("faulthandler.enable()") as process:
        aimed = asyncio.run(abort.aim(LocalHost(), Target(process.pid, "TP0")))
        assert aimed.can
        assert "faulthandler is on" in aimed.consequence
        assert aimed.target.started is not None
        assert process.poll() is None
        said = asyncio.run(abort.fire(LocalHost(), aimed))
        assert said.startswith(f"SIGABRT ended TP0 (pid {process.pid})")
        assert process.stderr is not None
        assert b"Fatal Python error: Aborted" in process.stderr.read()


def test_a_reused_pid_is_never_hit() -> None:
    with sleeper("pass") as process:
        aimed = asyncio.run(abort.aim(LocalHost(), Target(process.pid, "TP0")))
        assert "WITHOUT printing a stack" in aimed.consequence
        assert aimed.target.started is not None
        other = abort.Aim(Target(process.pid, "TP0", aimed.target.started - 1), "", can=True)
        assert "was gone before: nothing was sent" in asyncio.run(abort.fire(LocalHost(), other))
        unknown = abort.Aim(Target(process.pid, "TP0"), "", can=True)
        asyncio.run(abort.fire(LocalHost(), unknown))
        assert process.poll() is None


def test_ras_finds_the_one_rank_that_answers_among_stopped_ones_in_time() -> None:
    """Seven of eight accept and never answer: one question after the other would take 7 s."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        kept: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    if len(kept) == 8:
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        began = time.monotonic()
        found = asyncio.run(collectives.ask(LocalHost(), {}, port=port))
        took = time.monotonic() - began
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for each in kept:
        each.close()
    assert "rank 1 (pid 2)" in (found.text or "")
    assert took < 7


def answer(connection: socket.socket) -> None:
    """One rank's RAS thread, text form."""
    with connection.makefile("rb") as stream:
        for line in stream:
            if line.startswith(b"VERBOSE"):
                connection.sendall(
                    b"NCCL version 2.26.2\n#0-0 (ab12) INCOMPLETE\n  Missing communicator data from 1 rank\n"
                    b"  Rank 1 -- GPU 1 managed by process 2 on node x\n"
                )
                break
            connection.sendall(b"OK\n")
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()
