"""Finding the server: the newest launch on the host, what its command line says of it, and where its log is."""

import os
import time

from . import procfs, recognise, redact
from .output import Outputs
from .software import version
from .tree import REAPERS, Members

EVERY = 2.0
"""Seconds between scans for a launch."""
REFRESH = 10.0
"""Seconds between looks at every process's name (an old shell may exec a server)."""
MOST = 16
"""Launches that are listed."""
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh", "csh", "tmux", "screen", "sshd", "su", "sudo")


class Server:
    """The launch that is watched."""

    def __init__(self, members, engine, argv, start):
        self.members = members
        self.pid = members.root
        self.engine = engine
        self.argv = argv
        self.first = start  # index of the first argument after the program's own words
        self.output = None
        self.links = None
        self.looked = -1e9
        self.tries = 0
        self.version = None
        self.told = None  # what was sent last


class Discovery:
    """Looks for servers every two seconds, and at the one that was found."""

    def __init__(self, guard, table, options, speech):
        self.guard = guard
        self.table = table
        self.options = options
        self.speech = speech
        self.outputs = Outputs(guard, table)
        self.server = None
        self.port = None  # as the log told it
        self.scanned = -1e9
        self.refreshed = 0.0
        self.own = os.getpid()
        self.others = set()
        self.wanted = options.get("prefer")  # the launch that the user chose
        self.listed = []
        self.complained = False

    def look(self, now, fresh):
        """One look: adopt new processes, scan where it is time, tell what changed."""
        if self.server is not None:
            self.server.members.adopt(fresh)
        if now - self.scanned >= EVERY:
            self.scanned = now
            if now - self.refreshed >= REFRESH:
                self.refreshed = now
                for pid in list(self.table.entries):
                    self.table.refresh(pid, now)
                if self.server is not None:
                    self.server.members.adopt(list(self.table.entries))
            self.choose(now)
            if self.server is not None:
                self.find_log(now)
                self.tell(now)

    def gone(self, status):
        """Called when every process of the server has ended."""
        self.speech.say("ServerGone", pid=self.server.pid, exit=status)
        self.server = None
        self.port = None
        self.scanned = -1e9

    def choose(self, now):
        """Attach to a server, or to a newer one where the root of ours is gone."""
        if self.options.get("pid"):
            self.choose_pid(now)
            return
        roots = self.roots(now)
        self.survey(roots, now)
        current = self.server
        wanted, self.wanted = self.wanted, None
        if wanted in roots and (current is None or current.pid != wanted):
            self.attach(wanted, roots[wanted], now)
            return
        if current is not None and current.members.root in current.members.pids and not self.is_dead(current.pid):
            self.mention(roots, current)
            return
        if current is not None:
            roots = {pid: found for pid, found in roots.items() if pid not in current.members.pids}
        if roots:
            pid = max(roots, key=lambda root: (self.table.entries[root].start, root))
            self.attach(pid, roots[pid], now)

    def choose_pid(self, now):
        """The user named the process."""
        pid = self.options["pid"]
        entry = self.table.entries.get(pid)
        if self.server is None and entry is not None and not self.is_dead(pid):
            told = self.table.told(entry, now) or (None, 0, False)
            self.attach(pid, told[:2], now)
        elif entry is None and self.server is None and not self.complained:
            self.complained = True
            self.speech.say(
                "Finding", source="discovery", kind="no_such_pid", severity="warning", pid=pid,
                text="No process %d on this host" % pid, fix="Leave --pid away to have the server found",
            )  # fmt: skip

    def roots(self, now):
        """Root pid of each launch → (engine, index of its first argument)."""
        roots = {}
        for entry in list(self.table.entries.values()):
            if entry.ppid == 2 or entry.pid in (self.own, 2) or entry.ppid == self.own:
                continue
            if self.table.told(entry, now) and not self.is_dead(entry.pid) and self.inside(entry):
                root, engine, start = self.root_of(entry, now)
                if root.pid not in roots or roots[root.pid][0] in ("torchrun", "accelerate"):
                    roots[root.pid] = (engine, start)
        return roots

    def root_of(self, entry, now):
        """The topmost ancestor that is part of the launch; a rank's own script where only titles are known."""
        best, told = entry, self.table.told(entry, now)
        for parent in self.table.ancestors(entry.pid):
            found = self.table.told(parent, now)
            if found:
                best, told = parent, found
        if told[2]:
            parent = self.table.entries.get(best.ppid)
            if parent is None or parent.comm in REAPERS:
                return self.oldest_orphan(best, now), told[0], 0
            if parent.comm.split(":")[0] not in _SHELLS:
                return parent, told[0], 0
        return best, told[0], told[1]

    def oldest_orphan(self, entry, now):
        """Ranks whose launcher died share its session: the oldest one stands for the launch."""
        same = [
            other for other in list(self.table.entries.values())
            if other.session == entry.session and other.ppid == entry.ppid
            and (self.table.told(other, now) or (0, 0, False))[2]
        ]  # fmt: skip
        return min(same, key=lambda other: (other.start, other.pid)) if same else entry

    def inside(self, entry):
        """True where it descends from the process that `within` names (or none is named)."""
        within = self.options.get("within")
        return not within or any(parent.pid == within for parent in self.table.ancestors(entry.pid))

    def is_dead(self, pid):
        """True for a zombie (its stat is read afresh)."""
        try:
            return procfs.Stat(self.guard.read("/proc/%d/stat" % pid, 4096)).state in "ZX"
        except (OSError, ValueError, IndexError):
            return True

    def mention(self, roots, current):
        """Another launch runs beside ours: said once, we stay with ours."""
        for pid in roots:
            if pid not in current.members.pids and pid not in self.others and len(self.others) < 64:
                self.others.add(pid)
                self.speech.say(
                    "Finding", source="discovery", kind="other_launch", pid=pid,
                    text="Another launch runs on this host: pid %d (%s)" % (pid, roots[pid][0]),
                    fix="Choose it with the key o, or give --pid %d" % pid,
                )  # fmt: skip

    def survey(self, roots, now):
        """All launches, newest first; told where there are several, and again when that changes."""
        order = sorted(roots, key=lambda pid: (-self.table.entries[pid].start, pid))[:MOST]
        rows = [self.running(pid, roots[pid], now) for pid in order if len(roots) > 1]
        if rows != self.listed:
            self.listed = rows
            self.speech.say("Launches", found=[dict(row, age=self.age(row["pid"])) for row in rows])

    def age(self, pid):
        """Seconds since a process began, None where the kernel does not tell."""
        up = procfs.uptime()
        return None if up is None else round(max(0.0, up - self.table.entries[pid].start / procfs.TICK), 2)

    def running(self, pid, told, now):
        """What its command line says, secrets replaced."""
        engine, start = told
        argv = self.table.argv(self.table.entries[pid], now)
        model = recognise.model(engine, argv, start)
        model = redact.text(model)[:200] if model else None
        return {"pid": pid, "engine": engine, "model": model, "port": recognise.port(engine, argv)}

    def attach(self, pid, told, now):
        """This is the server from now on; `told` = its engine and the index of its first argument."""
        engine, start = told
        argv = list(self.table.argv(self.table.entries[pid], now))
        self.server = Server(Members(self.table, pid), self.options.get("engine") or engine, argv, start)
        self.port = None

    def find_log(self, now):
        """Look where its output goes; again when that changed, and while it leads nowhere."""
        server = self.server
        if self.options.get("log"):
            server.output = None
            return
        pace = EVERY if server.tries < 5 and not (server.output and server.output.path) else 10.0
        links = self.outputs.links(server.pid)
        if server.links == links and now - server.looked < pace:
            return
        if links == (None, None) and server.output is not None:
            return  # the root has died: its log is still the log
        server.links, server.looked = links, now
        server.tries += 1
        server.output = self.outputs.of(server.pid, server.engine)

    def tell(self, now):
        """Send ServerFound where anything about the server is new."""
        server = self.server
        entry = self.table.entries.get(server.pid)
        if entry is not None:
            argv = self.table.argv(entry, now)
            if argv and not recognise.title(argv) and argv != server.argv:
                server.argv = list(argv)  # exec
                told = self.table.told(entry, now)
                server.first = told[1] if told else 0
        found = self.found()
        if found != server.told:
            server.told = found
            self.speech.say("ServerFound", **dict(found, **self.times(entry)))

    def found(self):
        """Everything but the ages, secrets replaced."""
        server = self.server
        if server.version is None:
            server.version = version(self.guard, server.pid, server.engine, server.argv) or ""
        output = server.output
        model = recognise.model(server.engine, server.argv, server.first)
        return {
            "pid": server.pid,
            "argv": redact.arguments([argument[:4096] for argument in server.argv[:512]]),
            "engine": server.engine,
            "version": server.version or None,
            "model": redact.text(model)[:500] if model else None,
            "log": self.options.get("log") or (output.path if output else None),
            "log_note": "as given" if self.options.get("log") else (output.note if output else None),
            "address": recognise.address(server.engine, server.argv),
            "port": self.port_now(),
            "cgroup": self.group(server.pid),
            "user": self.user(server.pid),
        }

    def port_now(self):
        """Given by the user, told by the log, or on the command line, in this order."""
        server = self.server
        return self.options.get("port") or self.port or recognise.port(server.engine, server.argv)

    def times(self, entry):
        """Start and age of the root, by the clock that counts since boot."""
        age = None if entry is None else self.age(entry.pid)
        if age is None:
            return {}
        return {"age": age, "started": round(time.time() - age, 2), "ppid": entry.ppid, "ticks": entry.start}

    def group(self, pid):
        """Its cgroup: the unified path, else the first."""
        paths = [line.split(":", 2)[2] for line in self.outputs.group(pid).splitlines() if line.count(":") >= 2]
        return paths[-1] if paths else (self.server.told or {}).get("cgroup")

    def user(self, pid):
        """Name of its user; the number where it has no name here."""
        try:
            uid = self.guard.stat("/proc/%d" % pid).st_uid
        except OSError:
            return (self.server.told or {}).get("user")
        return user_name(uid)


_names = {}


def user_name(uid):
    """The user's name by /etc/passwd alone: asking the directory service may hang."""
    if uid not in _names:
        _names[uid] = str(uid)
        try:
            for line in procfs.read("/etc/passwd", 1 << 20, whole=True).decode("utf-8", "replace").splitlines():
                fields = line.split(":")
                if len(fields) > 2 and fields[2] == str(uid):
                    _names[uid] = fields[0]
                    break
        except OSError:
            pass
    return _names[uid]
