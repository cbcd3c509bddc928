"""/proc/net/tcp of the server's own network namespace: who listens, and what lies unread."""

from . import procfs


class Row:
    """One TCP socket."""

    __slots__ = ("inode", "listening", "port", "unread")

    def __init__(self, fields):
        self.port = int(fields[1].rsplit(":", 1)[1], 16)
        self.listening = fields[3] == "0A"
        self.unread = int(fields[4].split(":", 1)[1], 16)
        self.inode = int(fields[9])


def rows(read, pid):
    """All TCP sockets that the process's namespace has (at most 2 MB of them); malformed lines are left out."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            content = read("/proc/%d/net/%s" % (pid, name), 2 << 20, whole=True)
        except OSError:
            continue
        for line in content.decode("ascii", "replace").splitlines()[1:]:
            try:
                found.append(Row(line.split()))
            except (ValueError, IndexError):
                continue
    return found


def owners(links, pids, inodes):
    """Socket inode → pid, for those inodes that one of these processes holds; processes we may not read are skipped."""
    wanted = {"socket:[%d]" % inode: inode for inode in inodes}
    found = {}
    for pid in pids:
        if len(found) == len(wanted):
            break
        for target in links(pid):
            if target in wanted:
                found.setdefault(wanted[target], pid)
    return found


def links_of(names, link, limit=4096):
    """A function that lists what a process's descriptors point at."""

    def links(pid):
        folder = "/proc/%d/fd" % pid
        try:
            descriptors = procfs.pids(names(folder))[:limit]
        except OSError:
            return
        for fd in descriptors:
            try:
                yield link("%s/%d" % (folder, fd))
            except OSError:
                continue

    return links


def listener(read, names, link, pids, port):
    """The pid among these that listens on the port, None where it cannot be seen."""
    inodes = [row.inode for row in rows(read, pids[0]) if row.listening and row.port == port and row.inode]
    found = owners(links_of(names, link), pids, inodes) if inodes else {}
    return next(iter(found.values()), None)


def unread(read, names, link, pids):
    """Pid → bytes waiting unread in its established sockets; one read of the table where nothing waits."""
    sums = dict.fromkeys(pids, 0)
    waiting = {row.inode: row.unread for row in rows(read, pids[0]) if row.unread and not row.listening and row.inode}
    if waiting:
        for inode, pid in owners(links_of(names, link), pids, waiting).items():
            sums[pid] += waiting[inode]
    return sums
