"""All processes of the host (cheaply: only new pids are read), and which of them belong to the server."""

from . import procfs, recognise, redact

RECHECK = (1, 2, 5, 10, 20, 40, 60)
"""Ages (s since first seen) at which a command line is read again: exec and setproctitle change it without a sign."""
AT_ONCE = 500
"""New pids read per look; a build that starts thousands of compilers a second must not make the probe dear.

The first look reads all: a server among 10,000 processes would be found 20 s late."""
REAPERS = (
    "systemd",
    "init",
    "tini",
    "dumb-init",
    "docker-init",
    "containerd-shim",
    "conmon",
    "s6-svscan",
    "catatonit",
)


class Entry:
    """What is kept of a process that was seen once."""

    __slots__ = ("argv", "checks", "comm", "pgid", "pid", "ppid", "seen", "session", "start", "title", "told")

    def __init__(self, pid, stat, now):
        self.pid = pid
        self.seen = now
        self.argv = None
        self.title = None
        self.checks = 0
        self.told = None
        self.update(stat)

    def update(self, stat):
        """Take over what may change: the parent (orphans), the group, the name."""
        self.comm = stat.comm
        self.ppid = stat.ppid
        self.pgid = stat.pgid
        self.session = stat.session
        self.start = stat.start


class Table:
    """The host's processes by pid."""

    def __init__(self, guard, keep=None):
        self.guard = guard
        self.keep = keep  # the pid that the user named: its arguments are kept whatever it is
        self.entries = {}

    def look(self, now):
        """Drop those that ended, read those that are new; returns the new pids."""
        present = set(procfs.pids(self.guard.names("/proc")))
        for pid in [pid for pid in self.entries if pid not in present]:
            del self.entries[pid]
        fresh = sorted(present.difference(self.entries))[-AT_ONCE if self.entries else 0 :]
        return [pid for pid in fresh if self.refresh(pid, now) is not None]

    def refresh(self, pid, now):
        """Read a process's stat: its Stat, None where it is gone (or its pid belongs to nobody we can see)."""
        try:
            stat = procfs.Stat(self.guard.read("/proc/%d/stat" % pid, 4096))
        except (OSError, ValueError, IndexError):
            self.entries.pop(pid, None)
            return None
        entry = self.entries.get(pid)
        if entry is None or entry.start != stat.start:
            self.entries[pid] = Entry(pid, stat, now)
            return stat
        if entry.comm != stat.comm:  # exec, or a new title
            entry.argv = None
        entry.update(stat)
        return stat

    def argv(self, entry, now):
        """The command line, read once and again while it may still change."""
        age = now - entry.seen
        if entry.argv is None or (entry.checks < len(RECHECK) and age >= RECHECK[entry.checks]):
            while entry.checks < len(RECHECK) and age >= RECHECK[entry.checks]:
                entry.checks += 1
            try:
                fresh = procfs.arguments(self.guard.read("/proc/%d/cmdline" % entry.pid, 32768))
                if entry.pid != self.keep and recognise.launch(fresh) is None:
                    fresh = [argument[:300] for argument in fresh[:8]]  # enough for a title
            except OSError:
                fresh = entry.argv or []
            if fresh or entry.argv is None:  # a zombie's is empty: keep what it was
                if fresh != entry.argv:
                    entry.told, entry.title = None, None
                entry.argv = fresh
        return entry.argv

    def title(self, entry, now):
        """The command line as one text of 300 characters, secrets replaced (costs 30 µs, so it is kept)."""
        argv = self.argv(entry, now)
        if entry.title is None:
            entry.title = " ".join(redact.arguments(argv[:256]))[:300]
        return entry.title

    def told(self, entry, now):
        """(engine, index of the first argument, True for a title) of a server's process, else None."""
        argv = self.argv(entry, now)
        if entry.told is None:
            found = recognise.launch(argv)
            named = recognise.title(argv) if found is None else None
            entry.told = found + (False,) if found else (named, 0, True) if named else ()
        return entry.told or None

    def ancestors(self, pid):
        """The living parents of a process, nearest first."""
        seen = {pid}
        entry = self.entries.get(pid)
        while entry is not None and entry.ppid not in seen and entry.ppid > 0:
            seen.add(entry.ppid)
            entry = self.entries.get(entry.ppid)
            if entry is not None:
                yield entry


class Members:
    """The server's processes: its root, all descendants, and orphans of its session. Remembered once seen."""

    def __init__(self, table, root):
        self.table = table
        self.root = root
        entry = table.entries.get(root)
        self.start = entry.start if entry else 0
        self.session = entry.session if entry else -1
        self.pgid = entry.pgid if entry else -1
        self.pids = {root: self.start}
        self.adopt(list(table.entries))

    def adopt(self, fresh):
        """Take in new processes that belong to the tree; a child may come before its parent in the list."""
        waiting = [pid for pid in fresh if pid not in self.pids]
        grew = True
        while grew:
            left = []
            for pid in waiting:
                entry = self.table.entries.get(pid)
                if entry is not None and self.belongs(entry):
                    self.pids[pid] = entry.start
                else:
                    left.append(pid)
            grew = len(left) < len(waiting)
            waiting = left

    def oldest(self, most):
        """So many pids at most, in their order: the root, then who started first (ranks come before compilers)."""
        if len(self.pids) <= most:
            return sorted(self.pids)
        return sorted(sorted(self.pids, key=lambda pid: (pid != self.root, self.pids[pid], pid))[:most])

    def belongs(self, entry):
        """True for a child of a member, and for an orphan of the root's job (started later, adopted by init)."""
        if entry.ppid in self.pids and entry.start >= self.pids[entry.ppid]:
            return True
        if entry.start < self.start or not (entry.session == self.session or entry.pgid == self.pgid):
            return False
        titled = bool(entry.argv) and recognise.title(entry.argv) is not None
        return (titled or entry.pgid == self.pgid) and self.orphaned(entry)

    def orphaned(self, entry):
        """True where init (or a stand-in for it) is the parent."""
        parent = self.table.entries.get(entry.ppid)
        return entry.ppid == 1 or (parent is not None and parent.comm in REAPERS)
