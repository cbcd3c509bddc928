"""The machine itself: load, memory, OOM kills, and what the server's network received."""

import os

from . import procfs


def load(guard, pid):
    """events.HostLoad as a dictionary; `pid` names the network namespace (the server's root, or ourselves)."""
    found = {"cpus": os.cpu_count()}
    try:
        found["load"] = os.getloadavg()[0]
    except OSError:
        pass
    memory = content(guard, "/proc/meminfo")
    for key, name in (("mem_available", b"MemAvailable:"), ("mem_total", b"MemTotal:")):
        value = procfs.number_after(memory, name)
        if value is not None:
            found[key] = value * 1024
    kills = procfs.number_after(content(guard, "/proc/vmstat", 131072, whole=True), b"\noom_kill ")
    if kills is not None:
        found["oom_kills"] = kills
    received = network(content(guard, "/proc/%s/net/dev" % (pid or "self"), 131072, whole=True))
    if received is not None:
        found["net_rx"] = received
    boot = content(guard, "/proc/sys/kernel/random/boot_id")
    if boot:
        found["boot_id"] = boot.decode("ascii", "replace").strip()
    return found


def network(table):
    """Bytes received by all interfaces but loopback, None where the table cannot be read."""
    total = None
    for line in table.splitlines():
        name, colon, numbers = line.partition(b":")
        if not colon or name.strip() == b"lo":
            continue
        try:
            total = (total or 0) + int(numbers.split(None, 1)[0])
        except (IndexError, ValueError):
            continue
    if total is None and table:
        return 0  # a namespace with loopback only
    return total


def content(guard, path, limit=65536, whole=False):
    """The file's bytes, none where it cannot be read."""
    try:
        return guard.read(path, limit, whole)
    except OSError:
        return b""


def log_stat(guard, path):
    """events.LogStat as a dictionary, None where the file is not there (or its storage does not answer)."""
    if not path:
        return None
    try:
        stat = guard.stat(path)
    except (OSError, ValueError):
        return None
    return {"path": path, "size": stat.st_size, "mtime": stat.st_mtime, "inode": stat.st_ino}
