"""Where a process's output really goes: a file, a pipe to tee (or any other writer), a container, a terminal."""

import os
import re
import stat as modes

from . import procfs

_JOB = re.compile(r"/job_(\d+)\b")
_PANE = re.compile(r"%\d{1,6}\Z")
DEPTH = 5
"""Pipes followed one after another: `server | sed … | ts | tee log`."""
_STDERR_FIRST = ("sglang", "llamacpp", "lmdeploy", "torchrun", "accelerate")
_RUNTIMES = ("containerd-shim", "conmon", "dockerd", "docker-containerd")
_STEP = "slurmstepd"
_NOT_THEIRS = ("ssh", "user@", "docker", "containerd", "cron", "crond", "supervisor", "systemd-")
"""Units whose cgroup others' processes share; the journal of these is not the server's."""
_INSTEAD = "relaunch it with `> server.log 2>&1` or `2>&1 | tee server.log`, or give --log"


class Output:
    """What was found: a path that can be read from here (or None), and a sentence."""

    def __init__(self, path, note, rank):
        self.path = path
        self.note = note
        self.rank = rank  # how good an answer it is: 0 a file, 1 a dead end with a reason, 2 nothing known


def device(target, name):
    """A sentence for output that goes to a device."""
    if target == "/dev/null":
        return "its %s is thrown away (/dev/null); %s" % (name, _INSTEAD)
    if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return "its output goes to a terminal (%s); %s" % (target, _INSTEAD)
    return "its %s goes to %s; %s" % (name, target, _INSTEAD)


def plain(path):
    """True for a path that survives JSON."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class Outputs:
    """Looks at the file descriptors of a process."""

    def __init__(self, guard, table):
        self.guard = guard
        self.table = table
        self.readers = {}  # pipe → pid: looking through all processes is dear on a big host

    def links(self, pid):
        """Where stdout and stderr point now; cheap, tells when it is worth looking again."""
        found = []
        for fd in (1, 2):
            try:
                found.append(self.guard.link("/proc/%d/fd/%d" % (pid, fd)))
            except OSError:
                found.append(None)
        return tuple(found)

    def of(self, pid, engine):
        """The process's log: the better one of stdout and stderr; on a tie the one this engine logs to."""
        order = (2, 1) if engine in _STDERR_FIRST else (1, 2)
        found = [self.follow(pid, fd, DEPTH) for fd in order]
        best = min(found, key=lambda output: output.rank)
        other = found[1] if best is found[0] else found[0]
        if best.path and other.path and best.path != other.path:
            best.note += "; the other of stdout and stderr goes to %s" % other.path
        return best

    def follow(self, pid, fd, depth):
        """One file descriptor, to its end."""
        link = "/proc/%d/fd/%d" % (pid, fd)
        name = "stderr" if fd == 2 else "stdout"
        try:
            target = self.guard.link(link)
        except FileNotFoundError:
            return Output(None, "its %s is closed; %s" % (name, _INSTEAD), 1)
        except OSError:
            note = "no rights to see where its output goes (run as the server's user or root), or give --log"
            return Output(None, note, 2)
        if target.startswith("pipe:["):
            return self.pipe(pid, target, depth, name)
        if target.startswith("socket:["):
            return self.socket(pid)
        if target.startswith("/dev/") and not target.startswith("/dev/shm/"):
            return self.pane(pid, target) or Output(None, device(target, name), 1)
        return self.file(link, target, name)

    def file(self, link, target, name):
        """A regular file, as it can be reached from here (another mount namespace, or deleted)."""
        try:
            real = self.guard.stat(link)
        except OSError as error:
            return Output(None, "its log %s cannot be read (%s), or give --log" % (target, error.strerror), 2)
        if not modes.S_ISREG(real.st_mode):
            return Output(None, "its %s goes to %s, which is no file; %s" % (name, target, _INSTEAD), 1)
        if not plain(target):
            return Output(link, "its log has a name that is not UTF-8; reading it through the server's descriptor", 0)
        root = link.rsplit("/fd/", 1)[0] + "/root"
        for path in (target, root + target):
            try:
                here = self.guard.stat(path)
            except OSError:
                continue
            if (here.st_dev, here.st_ino) == (real.st_dev, real.st_ino):
                return Output(path, "%s of the server" % name, 0)
        shown = target[:-10] if target.endswith(" (deleted)") else target
        return Output(link, "its log %s was deleted or moved; reading the file that is still open" % shown, 0)

    def pipe(self, pid, target, depth, name):
        """The process at the other end of a pipe, and where that one writes."""
        if depth == 0:
            return Output(None, "its %s goes through too many pipes; give --log" % name, 1)
        reader = self.reader(pid, target)
        taken = self.taken(pid, reader, depth, name)
        if taken is not None:
            return taken
        if reader is None:
            note = "its %s goes into a pipe whose reader cannot be seen; %s" % (name, _INSTEAD)
            return Output(None, note, 2)
        comm = reader.comm
        for fd in self.writes(reader.pid):
            found = self.follow(reader.pid, fd, depth - 1)
            if found.path:
                found.note = "written by `%s`, which reads the server's %s" % (comm, name)
                return found
        note = "its %s is read by `%s` (pid %d), which writes to no file; give --log" % (name, comm, reader.pid)
        return Output(None, note, 1)

    def taken(self, pid, reader, depth, name):
        """What a container's runtime, the journal or Slurm takes; None for any other reader."""
        comm = reader.comm if reader else ""
        if comm.startswith(tuple(runtime[:15] for runtime in _RUNTIMES)):
            return self.container(pid)
        if comm.startswith("systemd-journal"):
            return self.socket(pid)
        # Slurm's daemon is root's: without rights its descriptors are not to be seen.
        if comm == _STEP or (not comm and any(entry.comm == _STEP for entry in self.table.ancestors(pid))):
            return self.slurm(pid, depth, name)
        return None

    def reader(self, pid, target):
        """Who reads this pipe: usually somebody's stdin, else any descriptor of an ancestor."""
        known = self.readers.get(target, 0)
        if known in self.table.entries and self.is_link("/proc/%d/fd/0" % known, target):
            return self.table.entries[known]
        for entry in list(self.table.entries.values()):
            if entry.pid != pid and self.is_link("/proc/%d/fd/0" % entry.pid, target):
                if len(self.readers) > 8:
                    self.readers.clear()
                self.readers[target] = entry.pid
                return entry
        for entry in self.table.ancestors(pid):
            for fd in self.descriptors(entry.pid):
                link = "/proc/%d/fd/%d" % (entry.pid, fd)
                if self.is_link(link, target) and self.access(entry.pid, fd) == os.O_RDONLY:
                    return entry
        return None

    def is_link(self, link, target):
        """True where the descriptor exists, can be seen, and points there."""
        try:
            return self.guard.link(link) == target
        except OSError:
            return False

    def descriptors(self, pid):
        """At most 256 open descriptors; none where they cannot be seen."""
        try:
            return sorted(procfs.pids(self.guard.names("/proc/%d/fd" % pid)))[:256]
        except OSError:
            return []

    def access(self, pid, fd):
        """O_RDONLY, O_WRONLY or O_RDWR; None where unreadable."""
        try:
            content = self.guard.read("/proc/%d/fdinfo/%d" % (pid, fd), 1024)
            return int(content.split(b"flags:", 1)[1].split(None, 1)[0], 8) & os.O_ACCMODE
        except (OSError, IndexError, ValueError):
            return None

    def writes(self, pid):
        """The descriptors a writer writes its copy to: files first (tee's are 3 and up), then what its stdout is."""
        files = []
        for fd in self.descriptors(pid):
            if fd < 3 or self.access(pid, fd) not in (os.O_WRONLY, os.O_RDWR):
                continue
            try:
                if modes.S_ISREG(self.guard.stat("/proc/%d/fd/%d" % (pid, fd)).st_mode):
                    files.append(fd)
            except OSError:
                continue
        return files + [1]

    def socket(self, pid):
        """Output that goes to the journal, where its cgroup is a unit's; else a sentence."""
        parts = self.group(pid).split("/")
        unit = next((part.strip() for part in reversed(parts) if part.strip().endswith(".service")), None)
        if unit is None or unit.startswith(_NOT_THEIRS):
            return Output(None, "its output goes into a socket; %s" % _INSTEAD, 1)
        users = any(part.startswith("user@") for part in parts)
        note = "what %s prints, from the journal" % unit
        return Output("journal:%s%s" % ("user/" if users else "", unit), note, 1)

    def pane(self, pid, tty):
        """A tmux pane, where the process or one above it was started in one (a process title wipes the environment)."""
        if not tty.startswith("/dev/pts/"):
            return None
        for each in [pid] + [entry.pid for entry in self.table.ancestors(pid)]:
            found = self.environment(each, (b"TMUX", b"TMUX_PANE"))
            socket, pane = found.get(b"TMUX", "").split(",")[0], found.get(b"TMUX_PANE", "")
            if socket.startswith("/") and plain(socket) and _PANE.match(pane):
                note = "what tmux pane %s shows, at most its last 3,000 lines; a file holds all: %s" % (pane, _INSTEAD)
                return Output("tmux:%s:%s:%s" % (pane, tty, socket), note, 1)
        return None

    def slurm(self, pid, depth, name):
        """Slurm's step daemon sends a step's output to the srun that started it, which writes the file."""
        job = self.job(pid)
        for entry in list(self.table.entries.values()):
            if job and entry.comm == "srun" and self.job(entry.pid) == job:
                found = self.follow(entry.pid, 1, depth - 1)
                if found.path:
                    found.note = "written by srun, which is sent the server's %s" % name
                    return found
        note = (
            "its %s goes to Slurm, which has it written elsewhere; `scontrol show job %s` names the file (StdOut): "
            "give it as --log where this host can read it, or start the step with srun --output=FILE"
            % (name, job or "JOB")
        )
        return Output(None, note, 1)

    def job(self, pid):
        """The Slurm job that a process belongs to, None where it belongs to none."""
        found = _JOB.search(self.group(pid))
        return found.group(1) if found else None

    def environment(self, pid, names):
        """These variables of a process, as far as it has them and we may see them."""
        try:
            content = self.guard.read("/proc/%d/environ" % pid, 131072, whole=True)
        except OSError:
            return {}
        pairs = [item.split(b"=", 1) for item in content.split(b"\0") if b"=" in item]
        return {key: os.fsdecode(value) for key, value in pairs if key in names}

    def container(self, pid):
        """Output that a container runtime takes."""
        words = self.group(pid).replace("-", "/").replace(".", "/").replace("\n", "/").split("/")
        name = next((word for word in words if len(word) == 64 and word.isalnum()), None)
        if name:
            return Output("docker:" + name, "what container %s prints, from its runtime" % name[:12], 1)
        return Output(None, "its output goes to a container runtime; give --log", 1)

    def group(self, pid):
        """Its cgroup paths, as text."""
        try:
            return self.guard.read("/proc/%d/cgroup" % pid, 8192).decode("utf-8", "replace")
        except OSError:
            return ""
