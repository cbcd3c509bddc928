"""Keeps the demo's launch, and ends all of it: when its stdin ends, however the program at the other end died.

stdin: a JSON line {tools, argv, environ, plan, log}, then `+PID` and `-PID` lines (process groups started and ended for
SSH sessions). stdout: one JSON line {folder, launcher}. Leaves no process and no file.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Start the launch, wait for the end of stdin, clean up."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.mkdtemp(prefix="tuimon-demo-")
    sessions: set[int] = set()
    try:
        # Orphans of the launch come to us instead of to init: nothing can slip away.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        launcher = _launch(json.loads(sys.stdin.buffer.readline()), folder)
        signal.signal(signal.SIGCHLD, lambda *_: _reap())
        sys.stdout.write(json.dumps({"folder": folder, "launcher": launcher}) + "\n")
        sys.stdout.flush()
        _keep(sessions)
    finally:
        _end(sessions)
        shutil.rmtree(folder, ignore_errors=True)


def _launch(order: dict, folder: str) -> int:  # type: ignore[type-arg]  # JSON
    plan = {**order["plan"], "folder": folder, "start": time.monotonic()}
    log = os.open(os.path.join(folder, order["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(os.devnull, "rb") as nothing:
        process = subprocess.Popen(
            [_environment(folder, order["tools"]), *order["argv"]],
            stdin=nothing,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**order["environ"], "TUIMON_DEMO": json.dumps(plan)},
        )
    os.close(log)
    return process.pid


def _environment(folder: str, tools: dict[str, str]) -> str:
    """A server's own environment, as discovery and py-spy look for it; returns its interpreter."""
    programs = os.path.join(folder, "venv", "bin")
    os.makedirs(programs)
    for name, target in tools.items():
        os.symlink(target, os.path.join(programs, name))
    packages = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    os.makedirs(os.path.join(folder, "venv", "lib", packages, "site-packages", "sglang-0.5.6.dist-info"))
    return os.path.join(programs, "python")


def _keep(sessions: set[int]) -> None:
    for line in sys.stdin.buffer:
        sign, pid = line[:1], int(line[1:])
        if sign == b"+":
            sessions.add(pid)
        else:
            sessions.discard(pid)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _end(sessions: set[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for group in sessions:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and (pids := _descendants()):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        _reap()
        time.sleep(0.01)


def _descendants() -> list[int]:
    """Everything below us, zombies that only their parent can bury included."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


if __name__ == "__main__":
    main()
