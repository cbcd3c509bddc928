"""Asks torch's flight recorders for their dumps and fetches them. Standard library, Python 3.6.

A rank that was started with TORCH_NCCL_DEBUG_INFO_PIPE_FILE reads a pipe `PREFIX<rank>.pipe`; any byte makes it write
its dump to a file. Dumps that are there already (a timeout's) are fetched without asking.
stdin: one line of JSON: `{"pids", "ask", "wait"}`. stdout: frames, each a line of JSON and then `length` bytes (zlib).
"""

import errno
import json
import os
import re
import signal
import stat
import sys
import time
import zlib

LIMIT = 32 << 20  # bytes of one dump; 2,000 entries with stacks are 0.9 MB
FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE")


def environ(pid):
    """The process's environment; empty where a title has overwritten it."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            items = file.read(1 << 20).split(b"\0")
    except OSError:
        return {}
    pairs = [item.decode("utf-8", "replace").partition("=") for item in items if b"=" in item]
    return {name: value for name, _, value in pairs}


def pipes(pid):
    """Pipes of a flight recorder that the process holds open: path → rank."""
    found = {}
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)[:4096]
    except OSError:
        return found
    for name in names:
        try:
            path = os.readlink(folder + "/" + name)
        except OSError:
            continue
        match = re.match(r".*?(\d{1,6})\.pipe$", path)
        if match and path.startswith("/"):
            found["/proc/%d/root%s" % (pid, path)] = int(match.group(1))
    return found


def state(pid):
    """The state letter, None where it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return None


def ring(path):
    """Write one byte; in words why that was not possible, else empty."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        return "nobody reads its pipe" if error.errno == errno.ENXIO else error.strerror or str(error)
    try:
        if not stat.S_ISFIFO(os.fstat(handle).st_mode):
            return "its pipe is no pipe"
        os.write(handle, b"1")
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(handle)
    return ""


def prefixes(known):
    """Where dumps may lie, as the server sees it."""
    found = [known[name] for name in FILES if known.get(name)]
    caches = [known.get("XDG_CACHE_HOME"), os.path.join(known.get("HOME") or os.path.expanduser("~"), ".cache")]
    found += [os.path.join(cache, "torch", "comm_lib_trace_rank_") for cache in caches if cache]
    return found + ["/tmp/nccl_trace_rank_"]


class Rank:
    """One rank with a flight recorder."""

    def __init__(self, pid, number, places, pipe):
        self.pid, self.number, self.pipe = pid, number, pipe
        self.places = ["/proc/%d/root%s%d" % (pid, place, number) for place in places if place.startswith("/")]
        self.why, self.size, self.fetched = "", -1, False

    def newest(self, since):
        """The newest dump that was written since then: path, size."""
        found = []
        for place in self.places:
            try:
                seen = os.stat(place)
            except OSError:
                continue
            if seen.st_mtime >= since and seen.st_size and stat.S_ISREG(seen.st_mode):
                found.append((seen.st_mtime, place, seen.st_size))
        return max(found)[1:] if found else None

    def look(self, since):
        """Fetch the dump once it has stopped growing; True when done."""
        seen = self.newest(since)
        if seen is None or seen[1] != self.size:
            self.size = seen[1] if seen else -1
            return False
        try:
            with open(seen[0], "rb") as file:
                tell({"pid": self.pid, "rank": self.number, "path": seen[0]}, file.read(LIMIT))
        except OSError as error:
            self.why = error.strerror or str(error)
        return True


def ranks(pids):
    """Ranks among these processes; what their own environment no longer tells, the others' does."""
    shared = {}
    for pid in reversed(pids):
        shared.update({name: value for name, value in environ(pid).items() if name in FILES + PIPES})
    found = []
    for pid in pids:
        own = environ(pid)
        held = pipes(pid)
        known = dict(shared, **own)
        number = min(held.values()) if held else int(own["RANK"]) if own.get("RANK", "").isdigit() else None
        if number is not None:
            found.append(Rank(pid, number, prefixes(known), next(iter(held), None)))
    return found


def began(pid):
    """When the process began, by the host's wall clock; 0 where that cannot be told."""
    try:
        with open("/proc/stat") as file:
            booted = int(re.search(r"^btime (\d+)", file.read(1 << 22), re.MULTILINE).group(1))
        with open("/proc/%d/stat" % pid, "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return booted + float(ticks) / os.sysconf("SC_CLK_TCK") - 1
    except (OSError, AttributeError, ValueError, IndexError):
        return 0.0


def tell(header, payload=b""):
    """One frame."""
    packed = zlib.compress(payload, 1) if payload else b""
    header["length"] = len(packed)
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + packed)
    sys.stdout.buffer.flush()


def main():
    """Ring, wait, fetch."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    signal.alarm(int(options["wait"]) + 5)
    waiting = ranks(options["pids"])
    since = {rank.pid: began(rank.pid) for rank in waiting}
    if options["ask"]:
        for rank in waiting:
            before = rank.newest(0)
            since[rank.pid] = os.stat(before[0]).st_mtime + 0.001 if before else 0.0
            rank.why = ring(rank.pipe) if rank.pipe else "it was started without a pipe"
            if state(rank.pid) in ("T", "t"):
                rank.why = "it is stopped"
    deadline = time.monotonic() + (options["wait"] if options["ask"] else 0.3)
    while waiting and time.monotonic() < deadline and not all(rank.why for rank in waiting):
        time.sleep(0.1)
        waiting = [rank for rank in waiting if not rank.look(since[rank.pid])]
    for rank in waiting:
        tell({"pid": rank.pid, "rank": rank.number, "error": rank.why or "no dump was written in time"})
    tell({"done": True})


if __name__ == "__main__":
    main()
