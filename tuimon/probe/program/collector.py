"""One sample a second, and what is looked at for it."""

import os
import threading
import time

from . import machine, recognise, sockets
from .cost import Cost
from .discover import Discovery
from .guard import Abandoned, Guard
from .health import Target
from .processes import MOST, Sampler
from .tree import Table

LATE = 3.0
"""Seconds that a look at the host may take before it is set aside."""
ABANDONED = 4
"""Threads that may hang in the kernel; after that the probe only says so."""
SOCKETS_EVERY = 3
HOST_NAMESPACE = "pid:[4026531836]"
"""The first pid namespace's fixed name (PROC_PID_INIT_INO): only there do NVML's pids mean ours."""


class Collector:
    """Everything that is looked at in one sample; runs in one thread at a time."""

    def __init__(self, options, speech, gpus, health):
        self.options = options
        self.speech = speech
        self.gpus = gpus
        self.health = health
        self.quiet = False
        self.guard = Guard()
        self.table = Table(self.guard, options.get("pid"))
        self.sampler = Sampler(self.guard, self.table)
        self.discovery = Discovery(self.guard, self.table, options, speech)
        self.cost = Cost()
        self.interval = max(0.1, float(options.get("interval") or 1.0))
        self.crowded = False
        self.hung = 0
        self.complaints = {}
        self.count = 0

    def start(self):
        """A new thread takes the samples from now on; one that hangs is left behind."""
        thread = threading.Thread(target=self.loop, name="samples")
        thread.daemon = True
        thread.start()

    def loop(self):
        """Sample on a monotonic schedule; ticks that were missed are left out, not made up for."""
        self.guard.own()
        due = time.monotonic()
        try:
            while True:
                try:
                    self.sample()
                except Exception as error:
                    self.complain(error)
                due = max(due + self.interval, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        except Abandoned:
            self.hung -= 1

    def sample(self):
        """One look at the machine."""
        began = time.monotonic()
        self.count += 1
        self.gpus.request(self.quiet)
        fresh = self.table.look(began)
        self.discovery.look(began, fresh)
        server = self.discovery.server
        processes = self.processes(server, began)
        self.aim(server)
        log = self.options.get("log") or (server and server.output and server.output.path)
        load = machine.load(self.guard, server and server.pid in server.members.pids and server.pid)
        stat = machine.log_stat(self.guard, log)
        gpus, note = self.gpus.reading()
        self.speech.say(
            "Sample", mono=round(began, 4), gpus=gpus, gpu_note=note, processes=processes,
            strangers=self.strangers(gpus, server, began), log=stat, host=load,
            cost=self.cost.look(self.gpus.pid, self.gpus.driver, time.monotonic() - began),
        )  # fmt: skip
        if server is not None and all(row["state"] in "ZX" for row in processes):
            self.discovery.gone(self.sampler.root_exit)
            self.sampler.root_exit = None

    def processes(self, server, now):
        """The server's tree; None where there is no server."""
        if server is None:
            return None
        if len(server.members.pids) > MOST and not self.crowded:
            self.crowded = True
            self.speech.say(
                "Finding", source="probe", kind="crowd", severity="warning", pid=server.pid,
                text="The launch has %d processes; the %d oldest are watched" % (len(server.members.pids), MOST),
            )  # fmt: skip
        rows = self.sampler.look(server.members, now, self.quiet, server.engine)
        if self.quiet and rows and self.count % SOCKETS_EVERY == 0:
            pids = [row["pid"] for row in rows if row["state"] not in "ZX"]
            if pids:
                sums = sockets.unread(self.guard.read, self.guard.names, self.guard.link, pids)
                for row in rows:
                    if row["pid"] in sums:
                        row["unread_bytes"] = sums[row["pid"]]
        return rows

    def aim(self, server):
        """Tell the health thread whom to ask."""
        target = None
        port = self.options.get("port") or (server and self.discovery.port_now())
        if port:
            argv = server.argv if server else []
            target = Target(
                server.pid if server else os.getpid(),
                recognise.address(server.engine, argv) if server else "127.0.0.1",
                port,
                server.engine if server else self.options.get("engine"),
                self.options.get("api_key") or recognise.api_key(argv),
                recognise.encrypted(argv),
            )
        self.health.aim(target, sorted(server.members.pids, key=lambda pid: pid != server.pid) if server else [])

    def strangers(self, gpus, server, now):
        """Processes outside the tree that hold GPU memory; None where NVML's pids are not ours (in a container)."""
        if not gpus or not host_namespace(self.guard):
            return None
        found = {}
        for row in gpus:
            for pid in row.get("procs") or ():
                if (server is None or int(pid) not in server.members.pids) and len(found) < 64:
                    entry = self.table.entries.get(int(pid))
                    found[pid] = (self.table.title(entry, now) or entry.comm) if entry else "ended"
        return found

    def watch(self):
        """Called by the main thread: set aside what does not answer, and go on with a new thread."""
        path = self.guard.late(LATE)
        if path is None or path in self.guard.aside:
            return
        self.guard.aside.add(path)
        self.hung += 1
        self.speech.say(
            "Finding", source="host", kind="host_blocked", severity="warning",
            text="The host does not answer: reading %s blocks" % path,
            fix="Its memory lock or its storage hangs; it is left out until it answers",
        )  # fmt: skip
        if self.hung <= ABANDONED:
            self.start()

    def complain(self, error):
        """A fault of our own: said once a minute, and the next sample is tried."""
        now = time.monotonic()
        text = "%s: %s" % (type(error).__name__, error)
        if now - self.complaints.get(text, -60.0) >= 60.0 and len(self.complaints) < 100:
            self.complaints[text] = now
            self.speech.say("Finding", source="probe", kind="probe_error", severity="warning", text=text[:500])

    def request(self, request):
        """A request of tuimon's; unknown ones are ignored."""
        what = request.get("do")
        if what == "port" and isinstance(request.get("port"), int) and 0 < request["port"] < 65536:
            self.discovery.port = request["port"]
            self.discovery.scanned = -1e9
        elif what == "pid" and isinstance(request.get("pid"), int):
            self.discovery.wanted = request["pid"]
            self.discovery.scanned = -1e9
        elif what == "quiet":
            self.quiet = bool(request.get("on"))
        elif what == "serving":
            self.health.metrics = bool(request.get("metrics"))
        elif what == "tree":
            self.discovery.scanned = -1e9


def host_namespace(guard):
    """True where this probe sees the host's own pids."""
    try:
        return guard.link("/proc/self/ns/pid") == HOST_NAMESPACE
    except OSError:
        return False
