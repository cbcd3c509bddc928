"""Entering the network namespace of a container with one thread (Linux keeps it per thread)."""

import errno
import os

CLONE_NEWNET = 0x40000000


def enter(pid):
    """Move the calling thread into the network namespace of a process; the error in words, None where it worked."""
    try:
        fd = os.open("/proc/%d/ns/net" % pid, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error.strerror
    try:
        if hasattr(os, "setns"):
            os.setns(fd, CLONE_NEWNET)
            return None
        import ctypes  # noqa: PLC0415  (2 MB, so only where a container needs it and Python is older than 3.12)

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(fd, CLONE_NEWNET) != 0:
            return os.strerror(ctypes.get_errno() or errno.EPERM)
    except OSError as error:
        return error.strerror
    finally:
        os.close(fd)
    return None
