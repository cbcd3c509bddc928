"""Asking the server whether it answers: from its own host, one question at a time, as cheaply as it can be proved."""

import os
import threading
import time

from . import metrics, procfs, raw_http, sockets
from .namespace import enter

PATHS = {"sglang": ("/model_info", "/get_model_info", "/health")}
"""The cheapest path that proves HTTP; the next one after a 404 (`/model_info` is new in SGLang 0.5.6)."""
KNOCK, ASK, METRICS = 1.0, 10.0, 5.0
"""Seconds between TCP connects (until the port opens), questions, and looks at /metrics."""
TIMEOUT = 5.0
METRICS_LIMIT = 2 << 20
METRICS_ABSENT = 60.0
"""Seconds until /metrics is tried again after a 404 (`--enable-metrics` not given)."""


class Target:
    """Whom to ask."""

    def __init__(self, pid, address, port, engine, key, tls):
        self.pid = pid
        self.address = address
        self.port = port
        self.engine = engine
        self.key = key
        self.tls = tls

    def same(self, other):
        """True where nothing changed that matters."""
        return other is not None and vars(self) == vars(other)


class Health:
    """A thread that asks whatever it is aimed at."""

    def __init__(self, speech):
        self.speech = speech
        self.target = None
        self.pids = []  # the server's tree, root first: who may hold the listening socket
        self.metrics = False
        self.step = 0
        self.open = False
        self.listener = None
        self.drafted = None
        self.next_metrics = 0.0
        self.home = namespace_of("self")
        self.inside = self.home

    def start(self):
        """Begin; the thread ends with the program."""
        thread = threading.Thread(target=self.loop, name="health")
        thread.daemon = True
        thread.start()

    def aim(self, target, pids):
        """Called by the collector: whom to ask from now on (None = nobody)."""
        self.pids = pids
        if target is None or not target.same(self.target):
            self.target = target

    def loop(self):
        """Ask at our own pace; a question that takes long makes the next one later, never two at once."""
        last = None
        due = 0.0
        while True:
            now = time.monotonic()
            target = self.target
            if target is not last:
                if not (last and target and (last.pid, last.port) == (target.pid, target.port)):
                    self.next_metrics = now  # else it is the server that has none, only better known
                last, due = target, now
                self.step, self.open, self.listener, self.drafted = 0, False, None, None
            try:
                if target is not None and now >= due:
                    due = max(now, due) + (self.question(target) or KNOCK)
                if target is not None and self.metrics and self.open and now >= self.next_metrics:
                    self.next_metrics = now + self.look_at_metrics(target)
            except Exception as error:  # a name that is none raises UnicodeError; this thread is the only one that asks
                self.tell(target, None, raw_http.Answer(error="%s: %s" % (type(error).__name__, error)))
                due = self.next_metrics = now + ASK
            time.sleep(0.5 if target is None else 0.25)

    def question(self, target):
        """One question; returns the seconds until the next."""
        trouble = self.move(target)
        if trouble:
            self.tell(target, None, raw_http.Answer(error=trouble))
            return ASK
        if not self.open:
            answer = raw_http.knock(target.address, target.port, 1.0)
            if answer.error:
                self.tell(target, None, answer)
                return KNOCK
            self.open = True
            self.listener = self.who(target)
            self.tell(target, None, answer)
        return self.ask(target)

    def ask(self, target):
        """HTTP on the cheapest path that this server has."""
        paths = PATHS.get(target.engine, ("/health",))
        while True:
            path = paths[min(self.step, len(paths) - 1)]
            answer = raw_http.ask(target, path, TIMEOUT)
            if answer.status == 404 and self.step + 1 < len(paths):
                self.step += 1
                continue
            break
        if answer.error in ("refused", "no route"):
            self.open, self.listener = False, None
        self.tell(target, path, answer)
        return ASK if self.open else KNOCK

    def tell(self, target, path, answer):
        """Send the answer, unless the target changed meanwhile."""
        if self.target is target:
            where = "[%s]" % target.address if ":" in target.address else target.address
            latency = None if answer.latency is None else round(answer.latency, 5)
            self.speech.say(
                "Health", address="%s:%d" % (where, target.port), path=path, status=answer.status,
                error=answer.error, latency=latency, listener=self.listener,
            )  # fmt: skip

    def look_at_metrics(self, target):
        """Chosen values of /metrics; returns the seconds until the next look."""
        reader = metrics.Reader()
        answer = raw_http.ask(target, "/metrics", TIMEOUT, reader.feed, METRICS_LIMIT)
        if answer.status != 200:
            return METRICS_ABSENT if answer.status is not None else METRICS
        values = reader.values()
        self.drafted = metrics.acceptance(values, self.drafted)
        if values and self.target is target:
            self.speech.say("Metrics", values=values)
        return METRICS

    def who(self, target):
        """The pid that listens, first among the server's own processes, then anywhere we may look."""
        pids = self.pids or [target.pid]
        found = sockets.listener(procfs.read, os.listdir, os.readlink, pids, target.port)
        if found is None:
            try:
                others = procfs.pids(os.listdir("/proc"))[:4096]
            except OSError:
                return None
            found = sockets.listener(procfs.read, os.listdir, os.readlink, [target.pid] + others, target.port)
        return found

    def move(self, target):
        """Enter the server's network namespace with this thread, where it has one of its own; trouble in words."""
        wanted = namespace_of(target.pid)
        if wanted is None or wanted == self.inside or self.home is None:
            return None
        error = enter(target.pid if wanted != self.home else os.getpid())
        if error is None:
            self.inside = wanted
            return None
        if self.inside != self.home:
            return "its network namespace cannot be entered (%s)" % error
        return "the server runs in a network namespace of its own that cannot be entered (%s)" % error


def namespace_of(pid):
    """Name of a process's network namespace, None where it cannot be seen."""
    try:
        return os.readlink("/proc/%s/ns/net" % pid)
    except OSError:
        return None
