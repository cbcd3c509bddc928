"""How container runtimes and Kubernetes give back what a container printed: a time before each line."""

import calendar
import glob
import json
import os
import re
import time

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")
_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT\S+) std(?:out|err) ([FP])(?:\S*) ?")
_NAME = re.compile(r"[\w.-]+\Z")
_PLACES = (
    "/var/lib/docker/containers/ID*/ID*-json.log",
    "/var/log/containers/*ID*.log",
    "/var/lib/containers/storage/*-containers/ID*/userdata/ctr.log",
)


def later(stamp, mark):
    """True where a time comes after the mark; both RFC 3339 of one source, fractions of any length."""
    return mark is None or key(stamp) > key(mark)


def key(stamp):
    """A time as something that compares; offsets of one source are equal, so they do not matter."""
    found = _STAMP.match(stamp.encode("ascii", "replace") if isinstance(stamp, str) else stamp)
    if not found:
        return b"", b""
    return found.group(1), (found.group(2) or b"").ljust(9, b"0")


def seconds(stamp):
    """Seconds since the epoch of a time, None where it is none."""
    found = _STAMP.match(stamp.encode("ascii", "replace"))
    if not found:
        return None
    zone, offset = found.group(3), 0
    if zone != b"Z":
        offset = (int(zone[1:3]) * 60 + int(zone[4:])) * (-60 if zone[:1] == b"-" else 60)
    try:
        whole = calendar.timegm(time.strptime(found.group(1).decode("ascii"), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
    return whole - offset + float(b"0." + (found.group(2) or b"0"))


class Lines:
    """A program that prints a log with times: docker, podman, nerdctl, crictl, kubectl."""

    def __init__(self, program, since, place):
        self.program = program
        self.since = since
        self.place = place

    def head(self, mark):
        """The command that prints what there is since the mark."""
        return self.program + self.after(mark) + self.place

    def rest(self, mark, tail):
        """The command that goes on from the mark; `tail` = only so many of the lines that are there already."""
        last = ["--tail=" + tail] if tail else []
        return self.program + ["-f"] + self.after(mark) + last + self.place

    def after(self, mark):
        """The option for a start other than the beginning; a mark is a time, or `@SECONDS` for the launch's start."""
        if not mark or (mark.startswith("@") and self.program[0] == "kubectl"):
            return []  # a pod's log is one run's; a container's holds those before too
        if mark.startswith("@"):
            seconds, _, fraction = mark[1:].partition(".")
            mark = "%s.%sZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(seconds))), fraction or "0")
        return [self.since + mark]

    def written(self, mark):
        """When the line was written that the mark stands for, seconds since the epoch; None where nobody knows."""
        return seconds(mark) if mark else None

    def take(self, line, mark):
        """(the text, the new mark) of a line; ValueError where it is none of the log."""
        found = _STAMP.match(line)
        if not found:
            raise ValueError(line)
        stamp = found.group(0).strip().decode("ascii")
        if not later(stamp, mark):
            return b"", mark
        return line[found.end() :] + b"\n", stamp


class ContainerFile(Lines):
    """The runtime's own file of a container, where no program of it can be asked: Docker's JSON or CRI's lines."""

    def __init__(self, container):
        Lines.__init__(self, [], "", [])
        self.container = container

    def head(self, _mark):
        """All of the file."""
        return self.reading(["cat"])

    def rest(self, _mark, tail):
        """The file from its start (what was seen is dropped here), through rotations."""
        return self.reading(["tail", "-n", tail or "+1", "-F"])

    def reading(self, program):
        """The command for the file; one that fails where there is none."""
        path = self.path()
        return program + [path] if path else ["sh", "-c", "echo no log of this container was found >&2; exit 1"]

    def path(self):
        """Where the runtime writes, None where that cannot be seen."""
        if not _NAME.match(self.container):
            return None
        for place in _PLACES:
            for path in sorted(glob.glob(place.replace("ID", self.container))):
                if os.access(path, os.R_OK):
                    return path
        return None

    def take(self, line, mark):
        """(the text, the new mark) of a line of either form."""
        if line.startswith(b"{"):
            return self.take_json(line, mark)
        found = _CRI.match(line)
        if not found:
            raise ValueError(line)
        stamp = found.group(1).decode("ascii", "replace")
        if not later(stamp, mark):
            return b"", mark
        return line[found.end() :] + (b"\n" if found.group(2) == b"F" else b""), stamp

    def take_json(self, line, mark):
        """Docker's `{"log": …, "stream": …, "time": …}`; its text carries its own line end."""
        record = json.loads(line.decode("utf-8", "replace"))
        stamp, text = record.get("time"), record.get("log")
        if not (isinstance(stamp, str) and isinstance(text, str)):
            raise ValueError(line)  # noqa: TRY004  (what a line that is none raises)
        if not later(stamp, mark):
            return b"", mark
        return text.encode("utf-8", "replace"), stamp
