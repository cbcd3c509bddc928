"""The parent's side of the NVML child: ask, wait a little, and say so when the driver does not answer."""

import json
import marshal
import mmap
import os
import select
import signal
import struct
import threading
import time
import zlib

from . import forked, nvml, procfs

DEADLINE = 0.4
"""Seconds that a sample waits for the driver (8 GPUs take 60 ms; rare outliers 130)."""
HUNG = 5.0
"""Seconds without an answer after which it is said aloud."""
RESTART_HUNG = 60.0
"""Seconds after which a hung child is ended, to try again with a new one once it is really gone."""
BACKOFF = (2.0, 5.0, 15.0, 60.0)
"""Seconds before the next start after a crash."""
FAILED_AGAIN = 300.0
"""Seconds before NVML is tried again where there was no driver: it may be loaded later."""
STARTING = 20.0
"""nvmlInit takes 10 s on eight GPUs without persistence mode."""
LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED, NO_PERMISSION = 12, 9, 4


class Gpus:
    """At most one NVML child at any time."""

    def __init__(self, source, speech):
        self.source = source  # pynvml's source, compressed
        self.speech = speech
        self.lock = threading.Lock()
        self.shared = mmap.mmap(-1, 8)
        self.pid = None
        self.ready = False
        self.failed = None
        self.failed_code = None
        self.asked = None
        self.rest = b""
        self.crashes = 0
        self.restart_at = None
        self.note = None
        self.pcie = False
        self.driver = 0  # bytes that the driver's library took in the child
        self.said = False
        self.ended = False

    def start(self):
        """Fork the child. From the main thread only: it dies with the thread that made it."""
        ask_read, ask_write = os.pipe()
        answer_read, answer_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            child(ask_read, answer_write, self.source, self.shared)
        os.close(ask_read)
        os.close(answer_write)
        os.set_blocking(answer_read, False)
        with self.lock:
            self.pid, self.ask, self.answer = pid, ask_write, answer_read
            self.ready, self.failed, self.asked, self.rest = False, None, time.monotonic(), b""

    def request(self, pcie):
        """Ask for a reading unless one is still owed."""
        self.pcie = pcie
        if self.ready and self.asked is None and self.failed is None:
            try:
                os.write(self.ask, b"p" if pcie else b"s")
                self.asked = time.monotonic()
            except OSError:
                pass  # crashed: `tend` sees it

    def reading(self, patience=DEADLINE):
        """(gpus or None, note or None): only what was read for this sample, never the last one again."""
        with self.lock:
            if self.asked is not None and time.monotonic() - self.asked > 2 * DEADLINE:
                patience = 0.02  # it is late already: do not hold up the rest of the sample
            until = time.monotonic() + patience
            while self.pid is not None and self.asked is not None:
                message = self.receive(max(0.0, until - time.monotonic()) if self.ready else 0.0)
                if message is None:
                    break
                gpus = self.take(message)
                if gpus is not None:
                    return gpus, None
                self.request(self.pcie)  # just got ready
            return self.explain()

    def take(self, message):
        """Note what the child says; the GPUs where it is a reading."""
        self.asked = None
        if "failed" in message:
            self.failed, self.failed_code = message["failed"], message["code"]
            return None
        self.ready, self.said = True, False
        self.driver = message.get("driver", self.driver)
        return message.get("gpus")

    def explain(self):
        """Why there is no reading."""
        if self.failed is not None:
            return without_library(self.failed, self.failed_code)
        if self.pid is None:
            return None, self.note
        if self.asked is None:
            return None, "NVML is starting"
        late = time.monotonic() - self.asked
        where = struct.unpack("i", self.shared[0:4])[0]
        if late < (HUNG if self.ready else STARTING):
            return None, "NVML is starting" if not self.ready else "NVML answers late"
        note = "NVML does not answer for %d s" % late
        if where >= 0:
            note = "GPU %d: %s" % (where, note)
        if not self.said:
            self.said = True
            self.speech.say(
                "Finding", source="nvml", kind="nvml_hung", severity="warning", text=note,
                fix="The driver hangs: see `dmesg` for Xid lines; a GPU reset or a reboot is likely needed",
            )  # fmt: skip
        return None, note

    def receive(self, patience):
        """The next message, None where none came in time."""
        while b"\n" not in self.rest:
            if not select.select([self.answer], [], [], patience)[0]:
                return None
            try:
                piece = os.read(self.answer, 65536)
            except OSError:
                return None
            if not piece:
                return None  # ended: `tend` sees why
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        try:
            return json.loads(line.decode("ascii", "replace"))
        except ValueError:
            return None

    def tend(self):
        """Reap a child that ended, end one that hangs for good, start the next. From the main thread only."""
        now = time.monotonic()
        with self.lock:
            if self.ended:
                return
            if self.pid is not None:
                self.reap(now)
            if self.pid is not None and self.asked is not None and now - self.asked > RESTART_HUNG:
                os.kill(self.pid, signal.SIGTERM)  # ends it unless it sits in the kernel; then it stays the only one
            start = self.pid is None and self.restart_at is not None and now >= self.restart_at
        if start:
            self.restart_at = None
            self.start()

    def reap(self, now):
        """Take note of a child's end."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, 0
        if pid == 0:
            return
        message = self.receive(0.0)  # its last words
        if message is not None:
            self.take(message)
        os.close(self.ask)
        os.close(self.answer)
        self.pid, self.asked = None, None
        if self.failed is not None:
            self.restart_at = now + FAILED_AGAIN
            return
        how = "signal %d" % (status & 0x7F) if status & 0x7F else "exit status %d" % (status >> 8)
        self.note = "NVML crashed its reader (%s)" % how
        self.restart_at = now + BACKOFF[min(self.crashes, len(BACKOFF) - 1)]
        self.crashes += 1
        if self.crashes == 1:
            self.speech.say("Finding", source="nvml", kind="nvml_crashed", severity="warning", text=self.note)

    def end(self):
        """End the child: politely first (killing an NVML client has frozen GPUs), for certain in half a second."""
        self.lock.acquire(timeout=DEADLINE + 0.1)  # not got: a sample waits for a reader that is gone; go on
        if self.pid is None:
            return
        self.ended = True
        for step, wait in ((self.close, 0.2), (self.terminate, 0.15), (self.kill, 0.15)):
            step()
            until = time.monotonic() + wait
            while time.monotonic() < until:
                try:
                    if os.waitpid(self.pid, os.WNOHANG)[0]:
                        return
                except ChildProcessError:
                    return
                time.sleep(0.01)

    def close(self):
        """No more requests: an idle child ends by itself."""
        os.close(self.ask)

    def terminate(self):
        """Our own child, not yet reaped, so the pid is still its."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self):
        """The same for one that does not go."""
        os.kill(self.pid, signal.SIGKILL)


def child(requests, answers, source, shared):
    """In the fork: keep nothing of the parent's but the two pipes, and die with it."""
    status = 1
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)  # a hung child must not keep the channel's ends open
        for fd in range(3, 256):
            if fd not in (requests, answers):
                try:
                    os.close(fd)
                except OSError:
                    pass
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with_parent()
        nvml.serve(requests, answers, compiled(source), shared)
        status = 0
    finally:
        os._exit(status)


def die_with_parent():
    """PR_SET_PDEATHSIG: a hung child must not outlive a killed probe."""
    import ctypes  # noqa: PLC0415  (pynvml needs it anyway, and only this process)

    ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)


def compiled(source):
    """pynvml's code object."""
    path = os.environ.get("TUIMON_PYNVML")
    text = procfs.read(path, 4 << 20, whole=True) if path else zlib.decompress(source) if source else b""
    return marshal.loads(forked.compiled({"pynvml": text})["pynvml"])


def without_library(failed, code):
    """No driver: a machine without GPUs, or one whose GPUs we cannot see?"""
    vendors = graphics()
    if code in (LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED) and not vendors:
        return [], "no GPU on this machine"
    if code == LIBRARY_NOT_FOUND and "amd" in vendors and "nvidia" not in vendors:
        return None, "AMD GPUs are not read yet"
    if code == LIBRARY_NOT_FOUND:
        return None, "the driver's library libnvidia-ml.so.1 is not here: GPUs cannot be read"
    if code == NO_PERMISSION:
        return None, "no rights to read GPUs: " + failed
    return None, "GPUs cannot be read: " + failed


def graphics():
    """Vendors of this machine's accelerators, from the PCI bus."""
    found = set()
    base = "/sys/bus/pci/devices"
    try:
        names = os.listdir(base)[:4096]
    except OSError:
        names = []
    for name in names:
        try:
            kind = procfs.read("%s/%s/class" % (base, name), 64)
            vendor = procfs.read("%s/%s/vendor" % (base, name), 64).strip()
        except OSError:
            continue
        if kind.startswith((b"0x0300", b"0x0302", b"0x0380", b"0x1200")):
            if vendor == b"0x10de":
                found.add("nvidia")
            elif vendor == b"0x1002":
                found.add("amd")
    if os.path.exists("/dev/nvidiactl"):
        found.add("nvidia")
    return found
