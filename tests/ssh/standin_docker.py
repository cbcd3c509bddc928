"""A stand-in for `docker` and `kubectl`: containers are processes in namespaces, their logs files of stamped lines.

Called as either; TUIMON_CONTAINERS names the folder with, for each container, NAME.pid and NAME.log, and NAME.exit
where the engine knows how it ended (NAME.death where only its events tell).
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(os.environ["TUIMON_CONTAINERS"])
DOCKER = Path(sys.argv[0]).name == "docker"


def fail(words: str, status: int = 1) -> None:
    sys.stderr.write(words + "\n")
    raise SystemExit(status)


def pid_of(name: str) -> int:
    if (FOLDER / "denied").exists():
        daemon = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
        fail(daemon if DOCKER else 'Error from server (Forbidden): pods "x" is forbidden: User "u" cannot create')
    if not (FOLDER / f"{name}.log").exists():
        missing = f"Error response from daemon: No such container: {name}"
        fail(missing if DOCKER else f'Error from server (NotFound): pods "{name}" not found')
    pid = int((FOLDER / f"{name}.pid").read_text() or 0)
    if not pid or not Path(f"/proc/{pid}").exists():
        completed = "error: cannot exec into a container in a completed pod; current phase is Failed"
        fail(f"Error response from daemon: container {name} is not running" if DOCKER else completed)
    return pid


def execute(words: list[str]) -> None:
    words.remove("-i")
    if not DOCKER:
        assert words.pop(0) == "-n"
        assert words.pop(0) == "web"
    name = words.pop(0)
    if not DOCKER:
        assert words.pop(0) == "--"
    os.execvp("nsenter", ["nsenter", "-t", str(pid_of(name)), "-m", "-p", "-n", "--", *words])


def logs(words: list[str]) -> None:
    name = next(word for word in reversed(words) if not word.startswith("-"))
    options = dict(word.partition("=")[::2] for word in words if word.startswith("--") and "=" in word)
    since = options.get("--since", options.get("--since-time", ""))
    if not (FOLDER / f"{name}.log").exists():
        pid_of(name)
    with (FOLDER / f"{name}.log").open("rb") as file:
        lines = [line for line in file if line.split(b" ", 1)[0].decode() >= since]
        tail = int(options.get("--tail", 0))
        show(lines[-tail:] if tail else lines)
        while "-f" in words and Path(f"/proc/{(FOLDER / f'{name}.pid').read_text()}").exists():
            show(file.readlines())
            time.sleep(0.02)
        time.sleep(0.1)  # what it said last is written by then; the real one ends after that too
        show(file.readlines())


def inspect(name: str) -> None:
    status, begun = FOLDER / f"{name}.exit", FOLDER / f"{name}.pid"
    if begun.exists() and Path(f"/proc/{begun.read_text()}").exists():
        state: dict[str, object] = {"Status": "running", "ExitCode": 0, "OOMKilled": False}
    elif status.exists():
        state = {"Status": "exited", "ExitCode": int(status.read_text()), "OOMKilled": False}
        state |= {"StartedAt": changed(begun), "FinishedAt": changed(status)}
    else:
        fail("Cannot connect to the Docker daemon")
    argv = ["-m", "sglang.launch_server", "--port", "30000", "--api-key", "hush"]
    show([json.dumps([state, "python3", argv]).encode()])


def status(name: str) -> None:
    """`kubectl get pod` of its containers' states."""
    end = {"exitCode": int((FOLDER / f"{name}.exit").read_text()), "reason": "Error"}
    end |= {"startedAt": changed(FOLDER / f"{name}.pid"), "finishedAt": changed(FOLDER / f"{name}.exit")}
    show([json.dumps([{"name": "vllm", "state": {"terminated": end}, "lastState": {}}]).encode()])


def changed(path: Path) -> str:
    """As engines write times."""
    return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


def events(words: list[str]) -> None:
    assert "--until=0s" in words  # else it never ends
    name = next(word.rpartition("=")[2] for word in words if word.startswith("--filter=container="))
    death = FOLDER / f"{name}.death"
    if death.exists():
        show([json.dumps({"exitCode": death.read_text(), "image": "vllm", "name": name}).encode() + b"\n"])


def show(lines: list[bytes]) -> None:
    for line in lines:
        os.write(1, line)


if __name__ == "__main__":
    verb = sys.argv[1]
    if verb == "exec":
        execute(sys.argv[2:])
    elif verb == "logs":
        assert "--timestamps" in sys.argv
        logs(sys.argv[2:])
    elif verb == "inspect":
        inspect(sys.argv[-1])
    elif verb == "get" and (FOLDER / f"{sys.argv[5]}.exit").exists():
        status(sys.argv[5])
    elif verb == "events":
        events(sys.argv)
    else:
        fail(f"{verb}: not in this stand-in", 125)
