"""Dumps the Python stacks of some processes with py-spy, a few at a time, nonblocking: nothing is stopped or signalled.

stdin: one line of JSON (the options), then `packed` bytes: a zlib-packed py-spy to use, or none.
stdout: frames, each a line of JSON and then `length` bytes of zlib-packed py-spy output; the last is `{"done": …}`.
Ends by itself: when everything is dumped, at the deadline, or when nobody reads stdout any more; its py-spy children
end with it (PR_SET_PDEATHSIG).
"""

import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
import zlib

# The host gets both files as one; this line stays here.
from tuimon.diagnose.on_host.find import digest, find_binaries, read_text, receive, which

OUTPUT_LIMIT = 16 << 20  # bytes of one dump; 100 threads of 100 frames are 2 MB
TRY_ANOTHER = ("version of python", "python version", "unexpected argument", "wasn't expected", "unrecognized")


def write_frame(header, payload=b""):
    """One header line and its payload."""
    header["length"] = len(payload)
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


try:
    import ctypes

    PRCTL = ctypes.CDLL(None).prctl
except (ImportError, OSError, AttributeError):
    PRCTL = None


def die_with_parent():
    """In the child, before exec: py-spy may not outlive us."""
    if PRCTL is not None:
        PRCTL(1, signal.SIGKILL)


def status_fields(pid):
    """`/proc/PID/status` as a dictionary."""
    lines = (read_text("/proc/%s/status" % pid) or "").split("\n")
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    return {name.strip(): value.strip() for name, value in pairs}


def look(pid):
    """What can be seen of a process without touching it."""
    fields = status_fields(pid)
    if not fields:
        return {}
    syscall = read_text("/proc/%d/syscall" % pid)
    seen = {
        "state": fields.get("State", "")[:1],
        "wchan": read_text("/proc/%d/wchan" % pid),
        "syscall": syscall.split()[0] if syscall else None,
        "tracer": int(fields.get("TracerPid") or 0),
        "uid": int((fields.get("Uid") or "0").split()[0]),
    }
    if len(fields.get("NSpid", "").split()) > 1:
        seen["inner"] = inner_threads(pid)
    return seen


def inner_threads(pid):
    """Thread ids as the container knows them → [host tid, state]: py-spy from outside reports the inner ones."""
    found = {}  # type: dict[str, list[object]]
    try:
        tasks = os.listdir("/proc/%d/task" % pid)[:2000]
    except OSError:
        return found
    for task in tasks:
        fields = status_fields("%d/task/%s" % (pid, task))
        inner = fields.get("NSpid", "").split()
        if inner:
            found[inner[-1]] = [int(task), fields.get("State", "")[:1]]
    return found


def started(pid):
    """Start time in clock ticks since boot: tells a reused pid. None where the process is gone."""
    text = read_text("/proc/%d/stat" % pid)
    return int(text[text.rindex(")") + 2 :].split()[19]) if text else None


class Dump:
    """One running py-spy and what it has said so far."""

    def __init__(self, pid, binary, sudo, native, patience):
        self.pid, self.binary, self.sudo = pid, binary, sudo
        mode = ["--native"] if native else ["--nonblocking"]
        command = (["sudo", "-n"] if sudo else []) + [binary, "dump"] + mode + ["--json", "--pid", str(pid)]
        self.deadline = time.monotonic() + patience
        self.output = {}  # type: dict
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 – this program has one thread
            env=dict(os.environ, RUST_BACKTRACE="0"),
        )
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                self.output[pipe.fileno()] = [pipe, b"", True]

    def take(self, handle):
        """Read what is there; True while the pipe is open."""
        entry = self.output[handle]
        piece = os.read(handle, 65536)
        if len(entry[1]) < OUTPUT_LIMIT:
            entry[1] += piece
        entry[2] = bool(piece)
        return entry[2]

    def finish(self, late):
        """Collect the child; (exit status or None, stdout, stderr)."""
        error = ""
        if late:
            self.process.kill()
            error = "py-spy did not end within its time"
        try:
            code = self.process.wait(1)
        except subprocess.TimeoutExpired:
            code, error = None, error + "; py-spy itself cannot be ended"
        out, err = [entry[1] for entry in self.output.values()]
        for entry in self.output.values():
            entry[0].close()
        text = err[:4096].decode("utf-8", "replace")
        return (None if late else code), out, (error or text)


class Dumper:
    """Dumps all targets, `at_once` at a time, falling back to another binary or to `sudo -n` where that may help."""

    def __init__(self, options, binaries):
        self.options, self.binaries = options, binaries
        self.waiting = []  # type: list
        self.waiting += [(pid, start, 0, False, None) for pid, start in options["targets"]]
        self.running = {}  # type: dict
        self.sudo = None if os.getuid() and options["sudo"] and which("sudo") else False  # None: not asked yet
        self.poll = select.poll()
        self.poll.register(1, 0)  # POLLERR or POLLHUP: the link is gone, nobody wants the answer

    def run(self):
        """Until everything was told; False where nobody listens any more."""
        while self.waiting or self.running:
            while self.waiting and len({id(dump) for dump, _ in self.running.values()}) < self.options["at_once"]:
                self.begin(*self.waiting.pop(0))
            if not self.step():
                return False
        return True

    def begin(self, pid, start, tried, sudo, before):
        """Start one dump, or tell at once why there is none."""
        now = started(pid)
        if now is None or (start is not None and now != start):
            self.tell(pid, None, b"", "gone", before)
            return
        if look(pid).get("state") == "Z":
            self.tell(pid, None, b"", "zombie", before)
            return
        while tried < len(self.binaries):
            try:
                dump = Dump(pid, self.binaries[tried], sudo, self.options["native"], self.options["patience"])
            except OSError as error:
                tried += 1
                before = before or (None, "%s: %s" % (self.binaries[tried - 1], error.strerror), "")
                continue
            for handle in dump.output:
                self.running[handle] = (dump, (start, tried, before))
                self.poll.register(handle, select.POLLIN)
            return
        self.tell(pid, None, b"", "no py-spy", before)

    def step(self):
        """Wait for something to happen; False where nobody listens any more."""
        for handle, _ in self.poll.poll(100):
            if handle == 1:
                return False
            dump, rest = self.running[handle]
            if not dump.take(handle):
                self.poll.unregister(handle)
            if not any(entry[2] for entry in dump.output.values()):
                self.end(dump, rest, late=False)
        for dump, rest in list(self.running.values()):
            if time.monotonic() > dump.deadline and any(item[0] is dump for item in self.running.values()):
                self.end(dump, rest, late=True)
        return True

    def end(self, dump, rest, late):
        """One py-spy has ended: tell what it said, or try another way."""
        start, tried, before = rest
        for handle, entry in dump.output.items():
            self.running.pop(handle, None)
            if entry[2]:
                self.poll.unregister(handle)
        code, out, error = dump.finish(late)
        if dump.sudo and code != 0 and error.lower().lstrip().startswith("sudo"):
            self.sudo = False  # it asks for a password: the first answer stands
            self.tell(dump.pid, before[0], b"", before[1], before)
        elif code == 0:
            self.tell(dump.pid, 0, out, "", None)
        elif denied(error) and not dump.sudo and self.may_sudo(dump.binary):
            self.waiting.insert(0, (dump.pid, start, tried, True, (code, error, dump.binary)))
        elif code is not None and any(word in error.lower() for word in TRY_ANOTHER) and tried + 1 < len(self.binaries):
            self.waiting.insert(0, (dump.pid, start, tried + 1, dump.sudo, (code, error, dump.binary)))
        else:
            self.tell(dump.pid, code, b"", error, None)

    def may_sudo(self, binary):
        """Whether `sudo -n` runs py-spy for us; asked once, because each refusal can mail the machine's keeper."""
        if self.sudo is None:
            command = ["sudo", "-n", "-l", binary]
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            try:
                self.sudo = subprocess.call(command, timeout=3, **quiet) == 0
            except (OSError, subprocess.TimeoutExpired):
                self.sudo = False
        return self.sudo

    def has_the_senders(self):
        """Whether a py-spy found here is the one that would be sent: then sending it changes nothing."""
        return any(digest(path) == self.options["sha256"] for path in self.binaries)

    def tell(self, pid, code, out, error, before):
        """One frame about one process; `another`: a different py-spy might have read it."""
        another = error == "no py-spy" or any(word in error.lower() for word in TRY_ANOTHER)
        another = another and not self.has_the_senders()
        if error == "no py-spy" and before:
            code, error = before[0], before[1]
        header = {"pid": pid, "exit": code, "error": error, "proc": look(pid), "another": another}
        write_frame(header, zlib.compress(out, 1) if out else b"")

    def stop(self):
        """Leave no py-spy behind."""
        for dump, _ in self.running.values():
            dump.process.kill()


def denied(error):
    """Whether py-spy lacked rights ("os error 13" hides behind "check that the process is running")."""
    return any(
        word in error for word in ("os error 13", "ermission denied", "ermission Denied", "EPERM", "os error 1)")
    )


def main():
    """Read the options, dump, tell."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    began = time.monotonic()
    signal.alarm(int(options["deadline"]))  # the kernel ends us, whatever hangs
    refused = ""
    binaries = find_binaries(options)
    if options["packed"]:
        path, refused = receive(options)
        binaries = [path] if path else binaries
    about = {
        "about": True,
        "machine": os.uname()[4],
        "uid": os.getuid(),
        "yama": read_text("/proc/sys/kernel/yama/ptrace_scope"),
        "capabilities": status_fields(os.getpid()).get("CapEff"),
        "binaries": binaries,
        "refused": refused,
    }
    write_frame(about)
    dumper = Dumper(options, binaries)
    try:
        if not dumper.run():
            return 0
        write_frame({"done": True, "seconds": time.monotonic() - began})
    finally:
        dumper.stop()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as failure:
        if failure.errno != errno.EPIPE:
            raise
        os._exit(0)  # the link is gone; flushing stdout again would only print a traceback
