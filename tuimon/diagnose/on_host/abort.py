"""SIGABRT to one process: first only what it would do, then, when told to, the signal. Standard library, Python 3.6.

stdin: one line of JSON: `{"pid", "started", "fire"}`; `started` (clock ticks since boot) must still be the process's.
stdout: one line of JSON.
"""

import json
import os
import signal
import sys
import time


def text(path):
    """A small file, empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace")
    except OSError:
        return ""


def started(pid):
    """Start time in clock ticks since boot; None where the process is gone."""
    line = text("/proc/%d/stat" % pid)
    return int(line[line.rindex(")") + 2 :].split()[19]) if line else None


def look(pid):
    """What tells what the signal would do."""
    lines = [line.split(":", 1) for line in text("/proc/%d/status" % pid).split("\n") if ":" in line]
    status = {name: value.strip() for name, value in lines}
    limits = [line for line in text("/proc/%d/limits" % pid).split("\n") if line.startswith("Max core file size")]
    seen = {name: status.get(name) for name in ("State", "SigCgt", "SigIgn", "SigBlk", "NSpid", "Uid", "VmRSS")}
    seen["core_limit"] = limits[0][26:].split()[0] if limits else None
    seen["core_pattern"] = text("/proc/sys/kernel/core_pattern").strip()
    seen["stderr"] = target("/proc/%d/fd/2" % pid)
    seen["me"] = os.getuid()
    return seen


def target(path):
    """Where a link leads."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def fire(pid):
    """Send the signal and see what comes of it, for 2 s at most."""
    try:
        os.kill(pid, signal.SIGABRT)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    until = time.monotonic() + 2
    while time.monotonic() < until:
        state = text("/proc/%d/stat" % pid).rpartition(")")[2].split()
        if not state or state[0] in ("Z", "X"):
            return {"ended": True}
        time.sleep(0.05)
    return {"ended": False}


def main():
    """Look, then fire where that was asked for."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    signal.alarm(8)
    pid, known = options["pid"], options["started"]
    now = started(pid)
    answer = {"gone": now is None or (known is not None and now != known), "started": now}
    if not answer["gone"]:
        answer["seen"] = look(pid)
        if options["fire"] and known is not None:
            answer.update(fire(pid))
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
