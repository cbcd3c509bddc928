"""Finding a launch and its log, with real processes and real pipes."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tuimon.launch.events import Finding, Launches, Sample, ServerFound, ServerGone

Probe = Callable[..., Any]
Server = Callable[..., subprocess.Popen[bytes]]
Find = Callable[..., ServerFound]
TICKING = "import sys, time\nwhile True: print('line', flush=True); time.sleep(0.1)"


@contextlib.contextmanager
def piped(*commands: list[str], stdout: IO[bytes] | None = None) -> Iterator[tuple[int, list[subprocess.Popen[bytes]]]]:
    """`| command | command`: the descriptor to write to, and the commands."""
    running = []
    read, first = os.pipe()
    for position, command in enumerate(commands):
        last = position == len(commands) - 1
        next_read, write = (-1, -1) if last else os.pipe()
        out = (stdout or subprocess.DEVNULL) if last else write
        running.append(subprocess.Popen(command, stdin=read, stdout=out))
        os.close(read)
        if not last:
            os.close(write)
            read = next_read
    try:
        yield first, running
    finally:
        with contextlib.suppress(OSError):
            os.close(first)
        for program in running:
            program.kill()
            program.wait()


def test_a_launch_is_found_with_all_that_its_command_line_says(found: Find, sglang: Server, tmp_path: Path) -> None:
    with (tmp_path / "server.log").open("wb") as log:
        server = sglang(
            TICKING, "--model-path", "/models/kimi", "--host", "0.0.0.0", "--port", "31234", "--tp-size", "8",
            "--api-key", "s3cret", stdout=log, stderr=log,
        )  # fmt: skip
    seen = found()
    assert (seen.pid, seen.engine, seen.model) == (server.pid, "sglang", "/models/kimi")
    assert (seen.address, seen.port) == ("127.0.0.1", 31234)
    assert (seen.log, seen.log_note) == (str(tmp_path / "server.log"), "stderr of the server")
    assert seen.argv[1:3] == ("-m", "sglang.launch_server")
    assert seen.argv[-2:] == ("--api-key", "***")
    assert (seen.ppid, seen.user) == (os.getpid(), "root" if os.geteuid() == 0 else seen.user)
    assert seen.age is not None
    assert 0 <= seen.age < 30
    assert seen.started is not None
    assert abs(seen.started - time.time()) < 30


def test_a_pipe_leads_to_the_file_of_tee(found: Find, sglang: Server, tmp_path: Path) -> None:
    with piped(["tee", str(tmp_path / "tee.log")]) as (write, _programs):
        sglang(TICKING, stdout=write, stderr=subprocess.STDOUT)
        seen = found(lambda found: found.log is not None)
    assert seen.log == str(tmp_path / "tee.log")
    assert seen.log_note == "written by `tee`, which reads the server's stderr"


def test_a_chain_of_pipes_is_followed_to_its_end(found: Find, sglang: Server, tmp_path: Path) -> None:
    log = tmp_path / "chain.log"
    with (
        log.open("wb") as out,
        piped(["cat", "-u"], ["sed", "-u", "s/a/b/"], ["cat"], stdout=out) as (write, _programs),
    ):
        sglang(TICKING, stdout=write, stderr=subprocess.STDOUT)
        assert found(lambda found: found.log is not None).log == str(log)


def test_a_reader_that_writes_no_file_is_named(found: Find, sglang: Server) -> None:
    with piped(["cat"]) as (write, programs):
        sglang(TICKING, stdout=write, stderr=subprocess.STDOUT)
        seen = found()
        assert seen.log is None
        note = f"its stderr is read by `cat` (pid {programs[0].pid}), which writes to no file; give --log"
        assert seen.log_note == note


def test_a_parent_that_reads_the_pipe_itself_leads_to_its_file(probe: Probe, launch: Server, tmp_path: Path) -> None:
    (tmp_path / "lib" / "sglang").mkdir(parents=True)
    (tmp_path / "lib" / "sglang" / "launch_server.py").write_text(TICKING)
    launch(
        """
        import os, subprocess, sys
        out = open(sys.argv[1], "ab", buffering=0)
        environment = dict(os.environ, PYTHONPATH=sys.argv[2])
        server = subprocess.Popen([sys.executable, "-m", "sglang.launch_server"], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in server.stdout:
            out.write(line)
        """,
        str(tmp_path / "own.log"), str(tmp_path / "lib"),
    )  # fmt: skip
    seen = probe().until(ServerFound, lambda found: found.log is not None)
    assert seen.log == str(tmp_path / "own.log")


def test_a_terminal_says_what_to_do(found: Find, sglang: Server) -> None:
    master, slave = pty.openpty()
    sglang(TICKING, stdout=slave, stderr=slave)
    seen = found()
    assert seen.log is None
    assert seen.log_note is not None
    assert seen.log_note.startswith("its output goes to a terminal (/dev/pts/")
    assert seen.log_note.endswith("relaunch it with `> server.log 2>&1` or `2>&1 | tee server.log`, or give --log")
    os.close(slave)
    os.close(master)


def test_output_that_is_thrown_away_says_so(found: Find, sglang: Server) -> None:
    sglang(TICKING, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = found()
    assert seen.log is None
    assert "thrown away (/dev/null)" in (seen.log_note or "")


def test_the_file_wins_over_a_terminal_or_nothing(found: Find, sglang: Server, tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as out:
        sglang(TICKING, stdout=out, stderr=subprocess.DEVNULL)
    assert found().log == str(tmp_path / "out.log")


def test_two_files_take_the_one_that_this_engine_logs_to(found: Find, sglang: Server, tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as out, (tmp_path / "err.log").open("wb") as err:
        sglang(TICKING, stdout=out, stderr=err)
    seen = found()
    assert seen.log == str(tmp_path / "err.log")
    assert str(tmp_path / "out.log") in (seen.log_note or "")


def test_a_deleted_log_is_read_where_it_is_still_open(found: Find, sglang: Server, tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    with path.open("wb") as out:
        server = sglang(TICKING, stdout=out, stderr=out)
    path.unlink()
    seen = found()
    assert seen.log == f"/proc/{server.pid}/fd/2"
    assert Path(seen.log).read_bytes().startswith(b"line\n")
    assert f"{path} was deleted" in (seen.log_note or "")


def test_what_only_mentions_a_server_is_none(probe: Probe, launch: Server, sglang: Server, tmp_path: Path) -> None:
    """A shell, an editor, grep, tail, ssh, docker: the words are in their arguments, they are not the program."""
    words = ["sglang serve", "-m sglang.launch_server", "vllm serve"]
    scripts = [
        launch("import time\ntime.sleep(1000)", *words),
        subprocess.Popen(["sh", "-c", "sleep 1000 # vllm serve /models/x; sglang.launch_server"]),
        subprocess.Popen(["tail", "-f", "/dev/null", "vllm"], stderr=subprocess.DEVNULL),
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", "-m", "sglang.launch_server"]),
    ]
    watching = probe()
    watching.until(Sample)
    assert watching.until(Sample).processes is None
    assert not [event for event in watching.events if isinstance(event, ServerFound)]
    for program in scripts[1:]:
        program.kill()
        program.wait()


def test_it_waits_for_a_launch_and_notices_the_next_one(probe: Probe, sglang: Server) -> None:
    watching = probe()
    assert watching.until(Sample).processes is None
    first = sglang()
    assert watching.until(ServerFound).pid == first.pid
    first.kill()
    first.wait()
    assert watching.until(ServerGone).pid == first.pid
    second = sglang()
    assert watching.until(ServerFound).pid == second.pid


def test_the_newest_launch_is_chosen_and_the_other_one_mentioned(probe: Probe, sglang: Server) -> None:
    sglang()
    time.sleep(0.05)  # start times count in 10 ms
    newer = sglang()
    watching = probe()
    assert watching.until(ServerFound).pid == newer.pid
    other = watching.until(Finding, lambda finding: finding.kind == "other_launch")
    assert other.source == "discovery"


def test_several_launches_are_listed_and_the_one_that_is_asked_for_is_taken(probe: Probe, sglang: Server) -> None:
    older = sglang(TICKING, "--model-path", "/models/older", "--port", "11", "--api-key", "secret")
    time.sleep(0.05)  # start times count in 10 ms
    newer = sglang()
    watching = probe()
    told = watching.until(Launches)
    assert [one.pid for one in told.found] == [newer.pid, older.pid]
    assert (told.found[1].engine, told.found[1].model, told.found[1].port) == ("sglang", "/models/older", 11)
    assert told.found[1].age > told.found[0].age
    watching.request(do="pid", pid=1)  # no launch: nothing changes
    watching.request(do="pid", pid=older.pid)
    seen = watching.until(ServerFound, lambda found: found.pid != newer.pid)
    assert seen.pid == older.pid
    assert watching.until(Sample, lambda sample: sample.processes and sample.processes[0].pid == older.pid)
    assert not [event for event in watching.events if isinstance(event, ServerGone)]
    newer.kill()
    newer.wait()
    assert watching.until(Launches).found == ()  # one is no choice


def test_a_probe_that_is_started_anew_begins_with_the_launch_that_was_chosen(probe: Probe, sglang: Server) -> None:
    older = sglang()
    time.sleep(0.05)  # as above
    newer = sglang()
    assert probe(prefer=older.pid).until(ServerFound).pid == older.pid
    assert probe(prefer=1).until(ServerFound).pid == newer.pid


RANKS = """
import ctypes, os, signal, sys, time
import setproctitle
for rank in range(int(sys.argv[1])):
    if os.fork() == 0:
        setproctitle.setproctitle("sglang::scheduler_TP%d" % rank)
        signal.pause()
signal.pause()
"""


def test_ranks_come_from_titles(probe: Probe, sglang: Server) -> None:
    server = sglang(RANKS, "4")
    sample = probe().until(Sample, lambda s: [p.rank for p in s.processes or ()] == [None, "TP0", "TP1", "TP2", "TP3"])
    assert sample.processes[0].pid == server.pid
    assert {p.ppid for p in sample.processes[1:]} == {server.pid}


def test_ranks_that_outlive_their_launcher_stay_in_the_tree(probe: Probe, sglang: Server) -> None:
    server = sglang(RANKS, "2")
    watching = probe()
    watching.until(Sample, lambda s: len(s.processes or ()) == 3)
    server.kill()
    server.wait()
    left = watching.until(Sample, lambda s: len(s.processes or ()) == 2)
    assert [p.rank for p in left.processes] == ["TP0", "TP1"]
    watching.until(Sample)
    assert not [event for event in watching.events if isinstance(event, ServerGone)]


def test_orphaned_ranks_are_found_without_their_launcher(probe: Probe, sglang: Server) -> None:
    server = sglang(RANKS, "2")
    watching = probe()
    ranks = [p.pid for p in watching.until(Sample, lambda s: len(s.processes or ()) == 3).processes[1:]]
    watching.end()
    server.kill()
    server.wait()
    again = probe(pid=ranks[0])
    assert [p.pid for p in again.until(Sample, lambda s: s.processes is not None).processes][:1] == ranks[:1]


def test_processes_born_later_join_the_tree(probe: Probe, sglang: Server) -> None:
    sglang(
        """
        import os, signal, time
        time.sleep(1)
        if os.fork() == 0 and os.fork() == 0:
            pass
        signal.pause()
        """
    )
    sample = probe().until(Sample, lambda s: len(s.processes or ()) == 3)
    assert sample.processes[2].ppid == sample.processes[1].pid


def test_training_ranks_come_from_torchruns_environment(probe: Probe, launch: Server) -> None:
    launch(
        """
        import os, signal, subprocess, sys
        for rank in range(2):
            code = "import time; time.sleep(1000)"
            subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank)))
        signal.pause()
        """,
        "--nproc-per-node", "2", "train.py", module="torch.distributed.run",
    )  # fmt: skip
    watching = probe()
    seen = watching.until(ServerFound)
    assert (seen.engine, seen.port) == ("torchrun", None)
    watching.until(Sample, lambda s: [p.rank for p in s.processes or ()] == [None, "rank0", "rank1"])


def test_a_log_that_appears_later_is_told(probe: Probe, sglang: Server, tmp_path: Path) -> None:
    sglang(
        """
        import os, sys, time
        time.sleep(1)
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
        os.dup2(fd, 1); os.dup2(fd, 2)
        time.sleep(1000)
        """,
        str(tmp_path / "late.log"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    watching = probe()
    assert watching.until(ServerFound).log is None
    assert watching.until(ServerFound).log == str(tmp_path / "late.log")


def test_a_port_told_by_the_log_is_taken_and_told(probe: Probe, sglang: Server) -> None:
    sglang()
    watching = probe()
    assert watching.until(ServerFound).port == 1
    watching.request(do="port", port=31999)
    assert watching.until(ServerFound).port == 31999


def test_what_the_user_gives_wins(probe: Probe, sglang: Server, launch: Server, tmp_path: Path) -> None:
    sglang()
    chosen = launch("import time\ntime.sleep(1000)", "--port", "5")
    seen = probe(pid=chosen.pid, port=7, log=str(tmp_path / "x"), engine="vllm").until(ServerFound)
    assert (seen.pid, seen.port, seen.log, seen.engine) == (chosen.pid, 7, str(tmp_path / "x"), "vllm")


def test_a_pid_that_is_not_there_is_said(probe: Probe) -> None:
    finding = probe(pid=4_194_303).until(Finding)
    assert (finding.kind, finding.text) == ("no_such_pid", "No process 4194303 on this host")


def test_within_can_come_from_the_hosts_environment(probe: Probe, sglang: Server) -> None:
    server = sglang()
    watching = probe(within=None, wrapper=("env", f"TUIMON_WITHIN={os.getpid()}"))
    assert watching.until(ServerFound).pid == server.pid
    nothing = probe(within=None, wrapper=("env", f"TUIMON_WITHIN={server.pid}"))
    nothing.until(Sample)
    assert nothing.until(Sample).processes is None


def test_the_version_comes_from_the_servers_own_environment(probe: Probe, sglang: Server, tmp_path: Path) -> None:
    packages = tmp_path / "venv/lib/python3.11/site-packages/sglang-0.5.23.dist-info"
    packages.mkdir(parents=True)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/sglang").write_text("import time\ntime.sleep(1000)")
    server = subprocess.Popen([sys.executable, str(tmp_path / "venv/bin/sglang"), "serve", "/models/x", "--port=9"])
    try:
        seen = probe().until(ServerFound)
        assert (seen.engine, seen.model, seen.port, seen.version) == ("sglang", "/models/x", 9, "0.5.23")
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a mount namespace needs root")
def test_a_log_inside_a_container_is_reached_through_its_root(found: Find, sglang: Server, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("mount namespaces cannot be made here")
    (tmp_path / "inner").mkdir()
    server = sglang(
        """
        import os, subprocess, sys, time
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(0x20000) == 0
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", sys.argv[1]], check=True)
        fd = os.open(sys.argv[1] + "/server.log", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"inside\\n")
        os.dup2(fd, 1); os.dup2(fd, 2)
        time.sleep(1000)
        """,
        str(tmp_path / "inner"),
    )
    seen = found(lambda found: bool(found.log) and found.log.endswith("inner/server.log"))
    assert seen.log == f"/proc/{server.pid}/root{tmp_path}/inner/server.log"
    assert Path(seen.log).read_bytes() == b"inside\n"


def test_a_log_whose_name_is_not_utf8_is_read_through_its_descriptor(
    found: Find, sglang: Server, tmp_path: Path
) -> None:
    name = os.fsencode(tmp_path) + b"/log-\xff"
    with open(name, "wb") as out:
        server = sglang(TICKING, "--model-path", "/m", stdout=out, stderr=out)
    seen = found()
    assert seen.log == f"/proc/{server.pid}/fd/2"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_without_rights_the_log_is_unknown_and_the_reason_is_said(found: Find, sglang: Server, tmp_path: Path) -> None:
    with (tmp_path / "server.log").open("wb") as out:
        server = sglang(TICKING, "--model-path", "/m", stdout=out, stderr=out)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    seen = found(python="/usr/bin/python3", wrapper=nobody)
    assert (seen.pid, seen.model, seen.log) == (server.pid, "/m", None)
    assert (seen.log_note or "").startswith("no rights to see where its output goes")
