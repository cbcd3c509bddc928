"""One sample of each process of the server's tree: what /proc tells without stopping or slowing anybody."""

from . import procfs, recognise

THREADS = 100
"""Threads looked at per sample; 15 µs each, so eight ranks of 100 take turns over 8 s."""
THREADS_QUIET = 800
"""When a launch has gone quiet, threads matter more than 1 % of a core."""
MOST = 1000
"""Processes of the tree that are told of: 0.4 MB and 20 ms a sample."""
DENIED_AGAIN = 30
"""Samples after which a refused file is tried again."""


class Sampler:
    """Reads the members of a tree; remembers only what makes the next look cheaper."""

    def __init__(self, guard, table):
        self.guard = guard
        self.table = table
        self.count = 0
        self.denied = {}
        self.groups = {}
        self.ranks = {}
        self.turn = 0
        self.quiet = False
        self.root_exit = None

    def look(self, members, now, quiet, engine):
        """The tree as dictionaries of events.Process; members that are gone are dropped from `members`.

        Of more than MOST the oldest are looked at.
        """
        self.count += 1
        frozen = {}
        rows = []
        self.quiet = quiet
        for pid in members.oldest(MOST):
            stat = self.table.refresh(pid, now)
            if stat is None or stat.start != members.pids[pid]:
                del members.pids[pid]
                self.groups.pop(pid, None)
                self.ranks.pop(pid, None)
                continue
            if pid == members.root and stat.state in "ZX":
                self.root_exit = stat.exit_status()
            rows.append((pid, stat, self.process(pid, stat, now, engine, frozen)))
        self.threads(rows, THREADS_QUIET if quiet else THREADS)
        if self.count % 300 == 0:
            self.denied.clear()
        return [row for _pid, _stat, row in rows]

    def process(self, pid, stat, now, engine, frozen):
        """One process without its other threads."""
        entry = self.table.entries[pid]
        argv = self.table.argv(entry, now)
        row = {
            "pid": pid,
            "ppid": stat.ppid,
            "state": stat.state,
            "name": stat.comm,
            "title": self.table.title(entry, now) or None,
            "rank": recognise.rank(argv[0]) if argv else None,
            "started": stat.start,
            "cpu": (stat.number(11) + stat.number(12)) / procfs.TICK,
            "system": stat.number(12) / procfs.TICK,
            "children_cpu": (stat.number(13) + stat.number(14)) / procfs.TICK,
            "minor_faults": stat.number(7),
            "major_faults": stat.number(9),
            "threads": stat.number(17),
        }
        if stat.state in "ZX":
            return slim(row)
        row["rss"] = stat.number(21) * procfs.PAGE
        row["sigcgt"] = stat.number(31)
        if row["rank"] is None and engine in ("torchrun", "accelerate"):
            row["rank"] = self.training_rank(pid, argv)
        self.waits(pid, stat, row)
        self.switches(pid, row)
        self.io(pid, row)
        row["frozen"] = self.frozen(pid, frozen)
        return slim(row)

    def waits(self, pid, stat, row):
        """What the main thread sleeps in (without rights the kernel says "0", as for a running one: then unknown).

        The system call adds little to that, so it is read only when a launch has gone quiet.
        """
        content = self.try_read("/proc/%d/wchan" % pid, 128)
        if content is not None:
            wchan = content.decode("ascii", "replace").strip() or "0"
            if wchan != "0" or stat.state == "R":
                row["wchan"] = wchan
        content = self.try_read("/proc/%d/syscall" % pid, 256) if self.quiet else None
        if content:
            row["syscall"] = content.split(None, 1)[0].decode("ascii", "replace")

    def switches(self, pid, row):
        """Context switches of the main thread, at the end of status."""
        content = self.try_read("/proc/%d/status" % pid, 8192)
        if content:
            tail = content[content.rfind(b"\nvoluntary_ctxt_switches") :]
            row["voluntary"] = procfs.number_after(tail, b"\nvoluntary_ctxt_switches:")
            row["involuntary"] = procfs.number_after(tail, b"nonvoluntary_ctxt_switches:")

    def io(self, pid, row):
        """Bytes asked for and really fetched; needs the server's own user or root."""
        content = self.try_read("/proc/%d/io" % pid, 1024)
        if content:
            row["rchar"] = procfs.number_after(content, b"rchar:")
            row["read_bytes"] = procfs.number_after(content, b"\nread_bytes:")
            row["write_bytes"] = procfs.number_after(content, b"\nwrite_bytes:")

    def try_read(self, path, limit):
        """The bytes, None without rights (remembered: a refusal costs as much as a read)."""
        if self.denied.get(path, -DENIED_AGAIN) + DENIED_AGAIN > self.count:
            return None
        try:
            return self.guard.read(path, limit)
        except PermissionError:
            self.denied[path] = self.count
        except OSError:
            pass
        return None

    def frozen(self, pid, known):
        """Whether its cgroup (or one above) is frozen, None where that cannot be read."""
        files = self.groups.get(pid)
        if files is None or self.count % 10 == 0:
            content = self.try_read("/proc/%d/cgroup" % pid, 8192)
            files = self.groups[pid] = freezers(content or b"")
        answer = None
        for path in files:
            if path not in known:
                known[path] = self.try_read(path, 512)
            content = known[path]
            if content is None:
                continue
            if b"frozen 1" in content or content.startswith((b"FROZEN", b"FREEZING")):
                return True
            answer = False
        return answer

    def training_rank(self, pid, argv):
        """`rank3` from the environment that torchrun gives its workers; read once per command line."""
        known = self.ranks.get(pid)
        if known is None or known[0] != argv:
            content = self.try_read("/proc/%d/environ" % pid, 131072) or b""
            number = None
            for item in content.split(b"\0"):
                if item.startswith(b"RANK=") and item[5:].isdigit():
                    number = item[5:].decode("ascii")
            known = self.ranks[pid] = (argv, "rank" + number if number else None)
        return known[1]

    def threads(self, rows, budget):
        """States of all threads, in turns where there are many; a process not looked at has no thread_states."""
        living = [(pid, stat, row) for pid, stat, row in rows if stat.state not in "ZX"]
        for step in range(len(living)):
            pid, stat, row = living[(self.turn + step) % len(living)]
            count = stat.number(17)
            if count > budget and step > 0:
                self.turn = (self.turn + step) % len(living)
                return
            budget -= count
            self.threads_of(pid, stat, row, max(THREADS_QUIET, count))
        self.turn = 0

    def threads_of(self, pid, stat, row, limit):
        """Count one process's thread states and name those in D or R."""
        states = {stat.state: 1}
        busy = []
        if stat.number(17) > 1:
            try:
                names = self.guard.names("/proc/%d/task" % pid)[: min(limit, 2000)]
            except OSError:
                return
            for tid in procfs.pids(names):
                if tid == pid:
                    continue
                try:
                    thread = procfs.Stat(self.guard.read("/proc/%d/task/%d/stat" % (pid, tid), 4096))
                except (OSError, ValueError, IndexError):
                    continue
                states[thread.state] = states.get(thread.state, 0) + 1
                if thread.state in "DR" and len(busy) < 16:
                    busy.append(self.busy(pid, tid, thread))
        row["thread_states"] = states
        if busy:
            row["busy_threads"] = busy

    def busy(self, pid, tid, thread):
        """A thread in D or R, with what it waits in."""
        found = {"tid": tid, "state": thread.state, "name": thread.comm}
        content = self.try_read("/proc/%d/task/%d/wchan" % (pid, tid), 128)
        wchan = (content or b"").decode("ascii", "replace").strip()
        if wchan and (wchan != "0" or thread.state == "R"):
            found["wchan"] = wchan
        return found


def slim(row):
    """The row without unknowns: None is what the other side assumes."""
    return {key: value for key, value in row.items() if value is not None}


def freezers(content):
    """The files that say whether a cgroup is frozen (v2 and the v1 freezer), from /proc/PID/cgroup."""
    files = []
    for line in content.decode("utf-8", "replace").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        if parts[0] == "0":
            files.append("/sys/fs/cgroup%s/cgroup.events" % parts[2].rstrip("/"))
            files.append("/sys/fs/cgroup/unified%s/cgroup.events" % parts[2].rstrip("/"))
        elif "freezer" in parts[1].split(","):
            files.append("/sys/fs/cgroup/freezer%s/freezer.state" % parts[2].rstrip("/"))
    return files
