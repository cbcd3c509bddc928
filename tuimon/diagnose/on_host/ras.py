"""Asks NCCL RAS, a text protocol on localhost. Standard library, Python 3.6; opens a socket and nothing else.

All ranks listen on one port: the kernel picks one of them for each connection, also one that is stopped and will never
answer. So the handshake has 1 s, and another connection (another source port) asks another rank.
stdin: one line of JSON: `{"port", "pid", "tries"}`. stdout: one line of JSON.
"""

import json
import os
import signal
import socket
import sys
import time

LIMIT = 8 << 20


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


def read_line(stream):
    """One answer of the server."""
    line = stream.readline(4096)
    if not line:
        raise OSError("it closed the connection during the handshake")
    return line.decode("utf-8", "replace").strip()


def ask_once(where):
    """One connection: the report as JSON where this NCCL offers it, else as text."""
    with socket.create_connection(where, 1) as connection:
        connection.settimeout(1)
        stream = connection.makefile("rb")
        connection.sendall(b"CLIENT PROTOCOL 2\n")
        hello = read_line(stream)
        connection.sendall(b"TIMEOUT 3\n")
        read_line(stream)
        connection.sendall(b"SET FORMAT json\n")
        form = read_line(stream)  # OK, or ERROR before NCCL 2.28.7
        connection.settimeout(8)
        connection.sendall(b"VERBOSE STATUS\n")
        return {"hello": hello, "form": form, "report": stream.read(LIMIT).decode("utf-8", "replace")}


def main():
    """Ask until some rank answers."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    signal.alarm(14)
    where = address(options)
    if options["pid"]:
        enter_network(options["pid"])
    began = time.monotonic()
    answer = {"error": "no rank answered"}  # type: dict
    for number in range(options["tries"]):
        if time.monotonic() - began > 10:
            break
        try:
            answer = ask_once(where)
            break
        except ConnectionRefusedError:
            answer = {"refused": True}
            break
        except OSError as error:
            answer = {"error": str(error)}
        answer["tried"] = number + 1
    answer.update(port=where[1], seconds=time.monotonic() - began)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
