"""Speaking with tuimon: lines out on stdout, requests in on stdin, and the end when stdin ends."""

import errno
import json
import os
import select
import threading
import time


def write_all(fd, content):
    """Write every byte, however long the reader takes; ends the program where nobody reads any more."""
    view = memoryview(content)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:
            if error.errno != errno.EAGAIN:
                os._exit(0)  # EPIPE: nobody is there any more; other threads may hang, so no polite way out
            select.select([], [fd], [])


class Speech:
    """One JSON line per message. A reader that does not read makes the sender wait: nothing piles up here."""

    def __init__(self, fd=1):
        self.fd = fd
        self.lock = threading.Lock()

    def begin(self):
        """End whatever a login shell printed without a newline before us: it would spoil our first line."""
        write_all(self.fd, b"\n")

    def say(self, event, **fields):
        """Send one event; fields that are None are left out (the other side knows their defaults)."""
        message = {"event": event, "host_time": round(time.time(), 3)}
        message.update((key, value) for key, value in fields.items() if value is not None)
        text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
        line = text.encode("utf-8", "replace") + b"\n"  # names that are not UTF-8 come as lone surrogates
        with self.lock:
            write_all(self.fd, line)


FORSAKEN = 75
"""Exit status of a program of ours that was not told anything for too long (EX_TEMPFAIL)."""


def listen(stdin, on_request, on_end, patience=None):
    """Read requests (JSON objects, one a line) in a thread of their own; call `on_end` when stdin ends.

    patience: seconds after which silence means that nobody is there any more. A link whose other end vanished without
    a word stays open for hours: sshd notices only when TCP gives up what it cannot deliver.
    """

    def loop():
        rest = b""
        while True:
            try:
                if patience and not select.select([stdin], [], [], patience)[0]:
                    on_end(FORSAKEN)
                piece = stdin.read1(65536)
            except (OSError, ValueError):
                piece = b""
            if not piece:
                break
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()[-65536:]  # bounded: a line that never ends is no request
            for line in lines:
                request = parse(line)
                if request is not None:
                    on_request(request)
        on_end(0)

    thread = threading.Thread(target=loop, name="requests")
    thread.daemon = True
    thread.start()


def parse(line):
    """The request in a line, None where it is none."""
    try:
        request = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return request if isinstance(request, dict) else None
