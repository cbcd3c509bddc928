"""Bounded reads of /proc, and the few of its formats that we need. Malformed content raises ValueError."""

import os

TICK = float(os.sysconf("SC_CLK_TCK"))
PAGE = os.sysconf("SC_PAGE_SIZE")


def read(path, limit=65536, whole=False):
    """The file's bytes up to `limit`; `whole` reads on where the kernel gives a page at a time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        content = os.read(fd, limit)
        while whole and len(content) < limit:
            piece = os.read(fd, limit - len(content))
            if not piece:
                break
            content += piece
        return content
    finally:
        os.close(fd)


class Stat:
    """/proc/PID/stat, the fields in use."""

    __slots__ = ("comm", "fields", "pgid", "ppid", "session", "start", "state")

    def __init__(self, content):
        end = content.rindex(b")")
        self.comm = content[content.index(b"(") + 1 : end].decode("utf-8", "replace")
        self.fields = content[end + 2 :].split()
        if len(self.fields) < 32:
            raise ValueError("short stat")
        self.state = self.fields[0].decode("ascii", "replace")
        self.ppid = int(self.fields[1])
        self.pgid = int(self.fields[2])
        self.session = int(self.fields[3])
        self.start = int(self.fields[19])

    def number(self, index):
        """Field by its index after the command name (state = 0)."""
        return int(self.fields[index])

    def exit_status(self):
        """A zombie's exit status (negative = signal), where the kernel shows it to us; else None."""
        if len(self.fields) < 50 or self.state != "Z":
            return None
        code = self.number(49)
        return -(code & 0x7F) if code & 0x7F else code >> 8


def number_after(content, key):
    """The integer that follows `key` in a "key value" file; None where the key is not there."""
    at = content.find(key)
    if at < 0:
        return None
    rest = content[at + len(key) : at + len(key) + 40].split(None, 1)
    try:
        return int(rest[0])
    except (IndexError, ValueError):
        return None


def arguments(content):
    """The argument list in /proc/PID/cmdline; a process title comes out as one argument."""
    text = content.decode("utf-8", "replace").rstrip("\0")
    return text.split("\0") if text else []


def pids(names):
    """The numbers among the names of a folder."""
    return [int(name) for name in names if name.isdigit()]


def uptime():
    """Seconds since boot, on the clock that process start times use; None where unreadable."""
    try:
        return float(read("/proc/uptime").split()[0])
    except (OSError, ValueError, IndexError):
        return None
