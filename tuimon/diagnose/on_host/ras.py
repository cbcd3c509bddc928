"""Asks NCCL RAS, a text protocol on localhost. Standard library, Python 3.6; opens a socket and nothing else.

All ranks listen on one port: the kernel picks one of them for each connection, also one that is stopped and will never
answer. So the handshake has 1 s, and more connections (other source ports) ask other ranks meanwhile.
stdin: one line of JSON: `{"port", "pid", "tries"}`. stdout: one line of JSON.
"""

import json
import os
import queue
import signal
import socket
import sys
import threading
import time

LIMIT = 8 << 20
PAUSE = 0.25  # seconds until the next connection, while a stopped rank may hold the one before
AT_ONCE = 4
AGAIN = 0.3  # seconds until it is asked again: counts that rise belong to ranks that work


def address(options):
    """Where RAS listens: NCCL_RAS_ADDR of the server's environment, else the port's default."""
    try:
        with open("/proc/%d/environ" % options["pid"], "rb") as file:
            for item in file.read().split(b"\0"):
                name, _, value = item.decode("utf-8", "replace").partition("=")
                if name == "NCCL_RAS_ADDR" and ":" in value:
                    host, _, port = value.rpartition(":")
                    return host.strip("[]") or "127.0.0.1", int(port)
    except (OSError, ValueError, TypeError):
        pass
    return "127.0.0.1", options["port"]


def enter_network(pid):
    """Into the server's network, where it is a container's (needs root); stay where that is not possible."""
    try:
        theirs = "/proc/%d/ns/net" % pid
        if os.readlink(theirs) != os.readlink("/proc/self/ns/net"):
            import ctypes

            with open(theirs) as file:
                ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0)
    except (OSError, TypeError, ImportError, AttributeError):
        pass


def inner_pids(pids):
    """Pids as a container knows them → ours, for those that differ: the ranks report their own."""
    found = {}
    for pid in pids:
        try:
            with open("/proc/%d/status" % pid) as file:
                line = next((line for line in file if line.startswith("NSpid:")), "")
        except OSError:
            continue
        names = line.split()[1:]
        if len(names) > 1:
            found[names[-1]] = pid
    return found


def read_line(stream):
    """One answer of the server."""
    line = stream.readline(4096)
    if not line:
        raise OSError("it closed the connection during the handshake")
    return line.decode("utf-8", "replace").strip()


class Asking:
    """Connections to the port, a new one every PAUSE; the first that answers the handshake asks for the report."""

    def __init__(self, where):
        self.where = where
        self.answers = queue.Queue()  # type: queue.Queue
        self.turn = threading.Lock()
        self.told = False

    def one(self):
        """One connection, on a thread of its own: the report as JSON where this NCCL offers it, else as text."""
        try:
            with socket.create_connection(self.where, 1) as connection:
                connection.settimeout(1)
                self.answers.put(self.report(connection, connection.makefile("rb")))
        except ConnectionRefusedError:
            self.answers.put({"refused": True})
        except OSError as error:
            self.answers.put({"error": str(error)})

    def report(self, connection, stream):
        """The handshake, then the question, unless another connection asks it already."""
        connection.sendall(b"CLIENT PROTOCOL 2\n")
        hello = read_line(stream)
        connection.sendall(b"TIMEOUT 3\n")
        read_line(stream)
        connection.sendall(b"SET FORMAT json\n")
        form = read_line(stream)  # OK, or ERROR before NCCL 2.28.7
        with self.turn:
            if self.told:
                raise OSError("another rank answered")
            connection.settimeout(8)
            connection.sendall(b"VERBOSE STATUS\n")
            told = stream.read(LIMIT).decode("utf-8", "replace")
            if not told:
                raise OSError("it closed the connection instead of answering")
            self.told = True
            return {"hello": hello, "form": form, "report": told}

    def ask(self, tries):
        """The first report, else the last failure."""
        until, begun, failed = time.monotonic() + 10, 0, 0
        answer = {"error": "no rank answered"}  # type: dict
        while failed < tries and time.monotonic() < until:
            if begun < tries and begun - failed < AT_ONCE:
                threading.Thread(target=self.one, daemon=True).start()
                begun += 1
            try:
                answer = self.answers.get(timeout=PAUSE)
            except queue.Empty:
                continue
            failed += 1
            if "report" in answer or "refused" in answer:
                break
        answer["tried"] = failed
        return answer


def main():
    """Ask until some rank answers."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    signal.alarm(14)
    where = address(options)
    if options["pid"]:
        enter_network(options["pid"])
    began = time.monotonic()
    answer = Asking(where).ask(options["tries"])
    if "report" in answer and time.monotonic() - began < 5:
        time.sleep(AGAIN)
        answer["later"] = Asking(where).ask(4).get("report")
    answer["inner"] = inner_pids(options.get("pids", ()))
    answer.update(port=where[1], seconds=time.monotonic() - began)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
