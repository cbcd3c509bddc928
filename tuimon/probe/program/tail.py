"""Follows one file by offset: the bytes as they come, and a word whenever they do not continue the last ones.

stdout: a JSON header line, then exactly `length` raw bytes. Ends when stdin ends.
"""

import base64
import errno
import json
import os
import stat as modes
import time

from .speech import listen, write_all

WAKE = 0.2
"""Seconds between looks; a look without news is one or two stats."""
FRAME = 256 * 1024
RATE = 4e6
"""Bytes per second at most: a flood in the log must not fill the link."""
BIG, HEAD, TAIL = 2 << 20, 256 * 1024, 1 << 20
"""A file larger than 2 MB is shown as its first 256 KB (the launch) and its last 1 MB."""
DENIED_AGAIN = 2.0
LAST = 64
"""Bytes kept of the text that was sent last: what an inode number alone cannot tell, they do."""


class Tail:
    """One path, whatever file lies there now."""

    def __init__(self, path, offset, inode, out=1):
        self.path = path
        self.position = offset
        self.inode = inode
        self.out = out
        self.fd = None
        self.identity = None
        self.last = b""  # what stands before `position`
        self.told = None  # the last trouble that was told
        self.end_of_head = None
        self.again = 0.0

    def look(self):
        """Send what is new; returns the bytes sent."""
        sent = 0
        try:
            sent = self.drain() if self.fd is not None else 0
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self.lose()
        if sent:
            return sent
        try:
            here = os.stat(self.path)
        except OSError as error:
            if self.fd is None or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.trouble(error)
            return 0  # moved away: what is still written to the old one is read above
        if self.fd is not None and (here.st_dev, here.st_ino) == self.identity:
            return 0
        return self.open()

    def open(self):
        """Open what lies there now: the first file, or the next after a rotation."""
        if time.monotonic() < self.again:
            return 0
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as error:
            self.trouble(error)
            return 0
        found = os.fstat(fd)
        if not modes.S_ISREG(found.st_mode):
            os.close(fd)
            self.trouble(OSError(errno.EINVAL, "not a regular file"))
            return 0
        first = self.fd is None
        if not first:
            os.close(self.fd)
        self.fd, self.identity, self.told = fd, (found.st_dev, found.st_ino), None
        if not first or (self.inode is not None and self.inode != found.st_ino):
            self.rewind("rotated")
        elif self.position < 0:
            self.position = 0
            if found.st_size > BIG:
                self.end_of_head = HEAD
        elif self.position > found.st_size:
            self.rewind("truncated")
        elif os.pread(fd, len(self.last), self.position - len(self.last)) != self.last:
            self.rewind("rotated")  # a server of files gives a freed inode number away at once
        self.inode = None
        return self.drain()

    def lose(self):
        """NFS: another machine put a new file there, or the server forgot ours; open what lies there now."""
        self.inode = self.identity[1]
        fd, self.fd = self.fd, None
        try:
            os.close(fd)
        except OSError:
            pass  # it is closed all the same

    def drain(self):
        """Send the next frame of the open file, where there is one."""
        found = os.fstat(self.fd)
        if found.st_size < self.position:
            self.rewind("truncated")
        limit = FRAME if self.end_of_head is None else min(FRAME, self.end_of_head - self.position)
        content = os.pread(self.fd, min(limit, max(0, found.st_size - self.position)), self.position)
        if content[:4096] == bytes(4096) and self.hole():
            return 0
        if content:
            self.send("text", self.position, content)
            self.position += len(content)
            self.last = content[-LAST:]
        if self.end_of_head is not None and (self.position >= self.end_of_head or not content):
            self.end_of_head = None
            start = max(self.position, found.st_size - TAIL)
            self.skip(start)
        return len(content)

    def hole(self):
        """Skip a hole: a log truncated under a writer that does not append starts with megabytes of nothing."""
        try:
            start = os.lseek(self.fd, self.position, os.SEEK_DATA)
        except OSError:
            return False
        if start <= self.position:
            return False
        self.skip(start)
        return True

    def skip(self, start):
        """Go on at `start`, and say what was left out."""
        if start > self.position:
            skipped, self.position, self.last = start - self.position, start, b""
            self.send("skipped", start, skipped=skipped)

    def rewind(self, kind):
        """Begin at the start of the file, and say why."""
        self.position, self.last = 0, b""
        self.end_of_head = None
        self.send(kind, 0)

    def trouble(self, error):
        """Say once why the file cannot be read; look again a little later."""
        self.again = time.monotonic() + (0 if error.errno == errno.ENOENT else DENIED_AGAIN)
        kind = "missing" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "denied"
        reason = error.strerror or str(error)
        if self.told != (kind, reason):
            self.told = (kind, reason)
            self.send(kind, max(0, self.position), reason=reason)

    def send(self, kind, offset, content=b"", skipped=0, reason=""):
        """One frame."""
        header = {"kind": kind, "offset": offset, "length": len(content), "skipped": skipped, "reason": reason}
        if self.identity is not None:
            header["inode"] = self.identity[1]
        write_all(self.out, json.dumps(header).encode("ascii") + b"\n")
        write_all(self.out, content)


def run(stdin, options, _nvml):
    """Never returns."""
    listen(stdin, lambda _request: None, os._exit, options.get("patience"))
    write_all(1, b"\n")  # ends what a login shell may have printed before us
    path = os.fsdecode(base64.b64decode(options["path"]))
    tail = Tail(path, options["offset"], options.get("inode"))
    while True:
        try:
            sent = tail.look()
        except OSError as error:
            tail.trouble(error)
            sent = 0
        time.sleep(sent / RATE if sent >= FRAME // 4 else WAKE)
