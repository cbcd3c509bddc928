"""Follows output that is no file: a container's, a pod's, a journal's, a tmux pane's. The same frames as the tail's.

There are no byte offsets in those; each frame carries a mark (a time, a cursor) after which reading goes on.
stdout: a JSON header line, then exactly `length` raw bytes. Ends when stdin ends.
"""

import json
import os
import subprocess
import time

from .containers import ContainerFile, Lines
from .journal import Journal
from .pane import EVERY, Pane
from .speech import listen, write_all

PIECE = 64 * 1024
LONGEST = 1 << 20
"""Bytes of a line without an end that are waited for."""
HEAD = 256 * 1024
TAIL = "3000"
"""Lines shown of the end where what was printed since the start is longer than the head."""
AGAIN = 2.0
"""Seconds until a source that ended (a stopped container) is looked at again."""
BACKLOG = 5.0
"""Seconds for which the end of a long backlog may take to come."""
PACE = 0.05
"""Seconds between two reads: a line at a time would make a frame of each."""
RATE = 4e6
# The command must not outlive us, however we end; `journalctl -f` would, while its journal is silent.
_GUARD = (
    'exec 3<&0; "$@" </dev/null 3<&- & c=$!; (cat <&3; kill $c) >/dev/null 2>&1 & w=$!; '
    "exec 3<&-; wait $c; r=$?; kill $w 2>/dev/null; exit $r"
)


def sources(name):
    """The ways to read this name, best first."""
    kind, _, rest = name.partition(":")
    if rest.startswith("-"):
        raise SystemExit("%r is no name" % rest)
    if kind == "journal":
        return [Journal(rest)]
    if kind == "k8s":
        namespace, _, pod = rest.partition("/")
        pod, _, container = pod.partition("/")
        place = ["-n", namespace, pod] + (["-c", container] if container else [])
        return [Lines(["kubectl", "logs", "--timestamps"], "--since-time=", place)]
    programs = [["docker", "logs", "--timestamps"], ["podman", "logs", "--timestamps"], ["nerdctl", "logs", "-t"]]
    found = [Lines(program, "--since=", [rest]) for program in programs]
    return found + [ContainerFile(rest), Lines(["crictl", "logs", "--timestamps"], "--since=", [rest])]


class Stream:
    """One name, whatever it is read by."""

    def __init__(self, name, offset, mark, out=1):
        self.pane = Pane(name[5:]) if name.startswith("tmux:") else None
        self.ways = sources(name) if self.pane is None else []
        self.position = max(0, offset)
        self.mark = mark
        self.fresh = offset < 0
        self.out = out
        self.told = None
        self.late = 0.0  # until then what comes was there before us, monotonic

    def run(self):
        """Never returns."""
        while True:
            reason = self.once()
            if reason is None:
                self.told = None
            elif reason != self.told:
                self.told = reason
                denied = any(word in reason for word in ("denied", "orbidden", "ermission"))
                self.send("denied" if denied else "missing", reason=reason)
            time.sleep(AGAIN)

    def watch(self, pane):
        """Look at a pane until it is gone; why, in words."""
        while True:
            try:
                text, self.mark, lost = pane.news(self.mark)
            except ValueError as error:
                return str(error)
            if lost:
                self.send("skipped")
            self.text(text, pane.written)
            time.sleep(EVERY)

    def once(self):
        """Read by the first way that works until it ends; why none worked, in words, else None."""
        if self.pane is not None:
            return self.watch(self.pane)
        reasons = []
        for way in self.ways:
            cut = False
            if self.fresh:
                self.late = float("inf")
                cut, reason = self.follow(way, way.head(self.mark), HEAD)
                if reason is not None:
                    reasons.append(reason)
                    continue
                self.fresh = False
            self.late = time.monotonic() + BACKLOG if cut else 0.0
            if cut:
                self.send("skipped")
            _cut, reason = self.follow(way, way.rest(self.mark, TAIL if cut else None), None)
            if reason is None:
                self.ways = [way]  # it works here: another would number things differently
                return None
            reasons.append(reason)
        return next((reason for reason in reasons if "not found" not in reason), reasons[0])

    def follow(self, way, argv, limit):
        """Send what a command prints, up to `limit` bytes: (whether there is more, what it said when it failed)."""
        child = start(argv)
        sent, said, rest = 0, b"", b""
        while limit is None or sent < limit:
            piece = os.read(child.stdout.fileno(), PIECE)
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            if rest and (not piece or len(rest) > LONGEST):
                lines, rest = lines + [rest], b""
            text = b""
            for line in lines:
                try:
                    content, self.mark = way.take(line, self.mark)
                    text += content
                except ValueError:
                    said = line or said
            sent += self.text(text, way.written(self.mark) if time.monotonic() < self.late else None)
            if not piece:
                break
            time.sleep(max(PACE, len(text) / RATE))
        more = limit is not None and sent >= limit
        child.stdin.close()
        child.stdout.close()
        status = child.wait()
        if more or sent or status in (0, 143):
            return more, None
        words = said.decode("utf-8", "replace").strip() or "%s ended (exit %d)" % (argv[0], status)
        return False, "%s: not found" % argv[0] if status == 127 else words[:300]

    def text(self, content, written=None):
        """A frame of text; returns its length. What was there before us says when it was written, by its own clock."""
        if content:
            self.send("text", content, age=None if written is None else max(0.0, round(time.time() - written, 2)))
            self.position += len(content)
        return len(content)

    def send(self, kind, content=b"", reason="", age=None):
        """One frame."""
        header = {"kind": kind, "offset": self.position, "length": len(content), "reason": reason, "mark": self.mark}
        if age is not None:
            header["age"] = age
        write_all(self.out, json.dumps(header).encode("ascii") + b"\n" + content)


def start(argv):
    """The command, which ends with us; what it complains of comes with its output."""
    return subprocess.Popen(
        ["sh", "-c", _GUARD, "tuimon"] + argv, bufsize=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(stdin, options, _nvml):
    """Never returns."""
    stream = Stream(options["name"], options["offset"], options.get("mark"))
    listen(stdin, lambda _request: None, os._exit, options.get("patience"))
    write_all(1, b"\n")  # ends what a login shell may have printed before us
    stream.run()
