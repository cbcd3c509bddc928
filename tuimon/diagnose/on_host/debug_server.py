"""Asks torch.distributed's debug server for all ranks' stacks, if the launch has one. Standard library, Python 3.6.

Only a port that one of the server's own processes listens on is spoken to. stdin: one line of JSON: `{"pids", "port"}`.
stdout: one line of JSON.
"""

import json
import os
import signal
import sys
import urllib.error
import urllib.request

LIMIT = 4 << 20


def listening(pid, port):
    """Inodes of sockets that listen on the port, in the process's network, and whether it is ours."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open("/proc/%d/net/%s" % (pid, name)) as file:
                rows = [line.split() for line in file.read(1 << 22).split("\n")[1:] if line]
        except OSError:
            continue
        found |= {row[9] for row in rows if len(row) > 9 and row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
    return found


def holds(pid, inodes):
    """Whether the process holds one of these sockets."""
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)[:8192]
    except OSError:
        return False
    for name in names:
        try:
            link = os.readlink(folder + "/" + name)
        except OSError:
            continue
        if link.startswith("socket:[") and link[8:-1] in inodes:
            return True
    return False


def main():
    """Find it, ask it."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    signal.alarm(20)
    port = options["port"]
    owner = next((pid for pid in options["pids"] if holds(pid, listening(pid, port))), None)
    if owner is None:
        sys.stdout.write(json.dumps({"absent": True}) + "\n")
        return
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open("http://127.0.0.1:%d/stacks" % port, timeout=12) as answer:
            told = {"page": answer.read(LIMIT).decode("utf-8", "replace"), "pid": owner}
    except (OSError, urllib.error.URLError, ValueError) as error:
        told = {"error": str(error), "pid": owner}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
