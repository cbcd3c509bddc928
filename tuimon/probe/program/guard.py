"""Looks that may block for ever, and how the probe survives them.

Reading /proc/PID/cmdline waits for the process's memory lock, and `stat` of a log on dead storage never returns. The
thread that looks says what it looks at; the main thread sees it late, sets the path aside and starts another thread.
"""

import os
import threading
import time

from . import procfs


class Abandoned(BaseException):
    """This thread's look came back after it was replaced: end it, whatever it is doing."""


class Blocked(OSError):
    """This path did not answer before and is set aside until it does."""


class Guard:
    """Reads on behalf of one thread at a time (the owner)."""

    def __init__(self):
        self.owner = None
        self.looking = None
        self.aside = set()

    def own(self):
        """The calling thread is the one that looks from now on."""
        self.owner = threading.get_ident()
        self.looking = None

    def read(self, path, limit=65536, whole=False):
        """procfs.read; raises Blocked for a path set aside."""
        return self._look(path, procfs.read, path, limit, whole)

    def names(self, path):
        """os.listdir."""
        return self._look(path, os.listdir, path)

    def link(self, path):
        """os.readlink."""
        return self._look(path, os.readlink, path)

    def stat(self, path):
        """os.stat."""
        return self._look(path, os.stat, path)

    def late(self, seconds):
        """The path that has not answered for so long, None where all is well. Called by the main thread."""
        looking = self.looking
        if looking is not None and time.monotonic() - looking[1] > seconds:
            return looking[0]
        return None

    def _look(self, path, look, *arguments):
        if path in self.aside:
            raise Blocked(path)
        mine = (path, time.monotonic())
        self.looking = mine
        try:
            return look(*arguments)
        finally:
            if self.looking is mine:
                self.looking = None
            self.aside.discard(path)
            if self.owner != threading.get_ident():
                raise Abandoned
