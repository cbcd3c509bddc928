"""Real processes in real trouble, as the probe sees them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuimon.launch.events import Sample, ServerGone

Launch = Callable[..., subprocess.Popen[bytes]]
Probe = Callable[..., Any]


def test_deadlock_sleeps_in_futex_without_moving(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import threading, time
        one, two, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
        def other():
            with two:
                both.wait()
                one.acquire()
        threading.Thread(target=other, daemon=True).start()
        with one:
            both.wait()
            two.acquire()
        """
    )
    watching = probe(pid=target.pid)
    first = watching.process(target.pid, lambda p: "futex" in (p.wchan or "") and p.thread_states == {"S": 2})
    later = watching.process(target.pid)
    later = watching.process(target.pid)
    assert (later.cpu, later.voluntary, later.minor_faults) == (first.cpu, first.voluntary, first.minor_faults)
    assert later.read_bytes == first.read_bytes is not None


def test_busy_loop_runs_without_faults_or_voluntary_switches(probe: Probe, launch: Launch) -> None:
    target = launch("while True: pass")
    watching = probe(pid=target.pid)
    first = watching.process(target.pid, lambda p: p.state == "R")
    later = watching.process(target.pid, lambda p: p.cpu > first.cpu + 0.2)
    assert later.state == "R"
    assert later.voluntary == first.voluntary
    assert later.involuntary is not None
    assert later.minor_faults - first.minor_faults < 50


def test_stopped_process_is_told_by_its_state(probe: Probe, launch: Launch) -> None:
    target = launch("import time\nwhile True: time.sleep(0.01)")
    watching = probe(pid=target.pid)
    watching.process(target.pid, lambda p: p.state == "S")
    os.kill(target.pid, signal.SIGSTOP)
    stopped = watching.process(target.pid, lambda p: p.state == "T")
    assert stopped.wchan == "do_signal_stop"


def test_dead_rank_that_nobody_reaps_stays_in_the_tree_as_a_zombie(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import os, signal, time
        child = os.fork()
        if child == 0:
            signal.pause()
        print(child, flush=True)
        time.sleep(1000)
        """,
        stdout=subprocess.PIPE,
    )
    assert target.stdout is not None
    child = int(target.stdout.readline())
    watching = probe(pid=target.pid)
    watching.process(child, lambda p: p.state == "S")
    os.kill(child, signal.SIGKILL)
    dead = watching.process(child, lambda p: p.state == "Z")
    assert dead.ppid == target.pid
    assert dead.title  # what it was, though its command line is empty now


def test_vanished_rank_is_missing_from_the_tree(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import os, signal, sys
        child = os.fork()
        if child == 0:
            signal.pause()
        print(child, flush=True)
        os.waitpid(child, 0)
        signal.pause()
        """,
        stdout=subprocess.PIPE,
    )
    assert target.stdout is not None
    child = int(target.stdout.readline())
    watching = probe(pid=target.pid)
    watching.process(child)
    os.kill(child, signal.SIGKILL)
    sample = watching.until(Sample, lambda s: child not in [p.pid for p in s.processes or ()])
    assert [p.pid for p in sample.processes] == [target.pid]


def test_compilers_are_seen_alive_and_when_they_have_come_and_gone(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import os, subprocess, sys
        burn = "import time; end = time.process_time() + 0.05\\nwhile time.process_time() < end: pass"
        while True:
            subprocess.run([sys.executable, "-c", burn])
        """
    )
    watching = probe(pid=target.pid)
    first = watching.process(target.pid, lambda p: p.children_cpu > 0)
    watching.process(target.pid, lambda p: p.children_cpu > first.children_cpu + 0.1)
    sample = watching.until(Sample, lambda s: len(s.processes or ()) == 2)
    child = next(p for p in sample.processes if p.pid != target.pid)
    assert child.ppid == target.pid


def test_blocked_on_storage_is_uninterruptible(probe: Probe, launch: Launch, tmp_path: Path) -> None:
    """posix_spawn opening a FIFO: the parent waits in the kernel, uninterruptible, until somebody writes to it."""
    os.mkfifo(tmp_path / "fifo")
    target = launch(
        """
        import os, sys
        actions = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=actions)
        """,
        str(tmp_path / "fifo"),
    )
    watching = probe(pid=target.pid)
    blocked = watching.process(target.pid, lambda p: p.state == "D")
    assert blocked.wchan not in (None, "0")
    with (tmp_path / "fifo").open("w"):  # let it go: D cannot be killed
        target.wait(5)


def test_a_blocked_thread_is_named_though_the_main_thread_sleeps(probe: Probe, launch: Launch, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    target = launch(
        """
        import os, sys, threading, time
        def load():
            actions = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
            os.posix_spawn("/bin/true", ["true"], {}, file_actions=actions)
        threading.Thread(target=load).start()
        time.sleep(1000)
        """,
        str(tmp_path / "fifo"),
    )
    watching = probe(pid=target.pid)
    # posix_spawn keeps the GIL, so the main thread waits for it, asleep but for a moment each 5 ms.
    process = watching.process(target.pid, lambda p: bool(p.busy_threads) and p.state == "S")
    assert process.thread_states == {"S": 1, "D": 1}
    (thread,) = process.busy_threads
    assert (thread.state, thread.wchan is not None) == ("D", True)
    with (tmp_path / "fifo").open("w"):
        time.sleep(0.1)


def test_page_ins_and_reads_are_told_apart(probe: Probe, launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(bytes(1 << 20))
    target = launch(
        """
        import sys, time
        while True:
            open(sys.argv[1], "rb").read()
            time.sleep(0.01)
        """,
        str(tmp_path / "weights"),
    )
    watching = probe(pid=target.pid)
    first = watching.process(target.pid, lambda p: p.rchar is not None)
    later = watching.process(target.pid, lambda p: p.rchar > first.rchar + (1 << 20))
    assert later.read_bytes == first.read_bytes  # all from the page cache


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_without_rights_unknown_is_unknown(probe: Probe, launch: Launch) -> None:
    target = launch("import time\ntime.sleep(1000)")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    watching = probe(python="/usr/bin/python3", pid=target.pid, wrapper=nobody)
    process = watching.process(target.pid)
    assert process.state == "S"
    assert process.cpu is not None
    assert process.voluntary is not None
    assert process.rss
    assert (process.read_bytes, process.rchar, process.wchan, process.syscall) == (None, None, None, None)


def test_syscall_is_read_when_the_launch_is_quiet(probe: Probe, launch: Launch) -> None:
    target = launch("import time\ntime.sleep(1000)")
    watching = probe(pid=target.pid)
    assert watching.process(target.pid).syscall is None
    watching.request(do="quiet", on=True)
    process = watching.process(target.pid, lambda p: p.syscall is not None)
    assert process.syscall.isdigit()


def test_unread_bytes_are_counted_when_the_launch_is_quiet(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import socket, time
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        peer = server.accept()[0]
        client.sendall(b"x" * 24)
        time.sleep(1000)
        """
    )
    watching = probe(pid=target.pid)
    assert watching.process(target.pid).unread_bytes is None
    watching.request(do="quiet", on=True)
    assert watching.process(target.pid, lambda p: p.unread_bytes is not None).unread_bytes == 24


def test_a_tree_with_many_threads_takes_turns(probe: Probe, launch: Launch) -> None:
    target = launch(
        """
        import os, threading, time
        for _ in range(3):
            if os.fork() == 0:
                break
        for _ in range(60):
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        time.sleep(1000)
        """
    )
    watching = probe(pid=target.pid)
    full = watching.until(Sample, lambda s: [p.threads for p in s.processes or ()] == [61] * 4)
    looked = set()
    for _turn in range(6):
        sample = watching.until(Sample)
        counted = [p.pid for p in sample.processes if p.thread_states is not None]
        assert 1 <= len(counted) <= 2
        looked.update(counted)
    assert looked == {p.pid for p in full.processes}


def test_started_and_title_tell_who_it_is(probe: Probe, launch: Launch) -> None:
    target = launch("import time\ntime.sleep(1000)", "--api-key", "s3cret", "x" * 500)
    process = probe(pid=target.pid).process(target.pid)
    assert process.started == int(Path(f"/proc/{target.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    assert process.title.startswith(sys.executable)
    assert "s3cret" not in process.title
    assert len(process.title) <= 300
    assert process.name
    assert process.sigcgt is not None


def test_the_end_of_all_processes_is_told_once_with_what_could_be_seen(probe: Probe, launch: Launch) -> None:
    target = launch("import sys\nsys.stdin.read()\nsys.exit(7)", stdin=subprocess.PIPE)
    watching = probe(pid=target.pid)
    watching.process(target.pid)
    assert target.stdin is not None
    target.stdin.close()  # it stays a zombie: nobody waits for it
    gone = watching.until(ServerGone)
    assert (gone.pid, gone.exit) == (target.pid, 7)
    assert [p.state for p in watching.events[-2].processes] == ["Z"]
    assert watching.until(Sample).processes is None


def test_a_signal_that_ended_the_server_is_its_exit(probe: Probe, launch: Launch) -> None:
    target = launch("import time\ntime.sleep(1000)")
    watching = probe(pid=target.pid)
    watching.process(target.pid)
    os.kill(target.pid, signal.SIGKILL)
    assert watching.until(ServerGone).exit == -9


def test_host_and_log_are_in_every_sample(probe: Probe, launch: Launch, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("hello\n")
    target = launch("import time\ntime.sleep(1000)")
    sample = probe(pid=target.pid, log=str(log)).until(Sample)
    assert sample.host.cpus == os.cpu_count()
    assert sample.host.mem_total > sample.host.mem_available > 0
    assert sample.host.oom_kills is not None
    assert sample.host.net_rx is not None
    assert sample.host.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    stat = log.stat()
    assert (sample.log.size, sample.log.mtime, sample.log.inode) == (6, stat.st_mtime, stat.st_ino)


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.skipif(not os.access(FREEZER / "cgroup.procs", os.W_OK), reason="no writable freezer (cgroup v1) here")
def test_a_frozen_cgroup_is_told(probe: Probe, launch: Launch) -> None:
    target = launch("import time\nwhile True: time.sleep(0.01)")
    watching = probe(pid=target.pid)
    assert not watching.process(target.pid).frozen
    group = FREEZER / f"tuimon-test-{target.pid}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(target.pid))
        (group / "freezer.state").write_text("FROZEN")
        watching.process(target.pid, lambda p: p.frozen is True)
        (group / "freezer.state").write_text("THAWED")
        watching.process(target.pid, lambda p: p.frozen is False)
    finally:
        (group / "freezer.state").write_text("THAWED")
        target.kill()
        target.wait()
        group.rmdir()
