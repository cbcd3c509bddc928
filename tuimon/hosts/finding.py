"""Find an interpreter on a host whose PATH has no python3."""

from __future__ import annotations

import re

from tuimon.hosts.host import Host

# Logins without a terminal often miss conda's PATH. The servers' own interpreters are the surest: they run. One whose
# file was replaced meanwhile, or lies in a container, is reached through /proc.
SEARCH = (
    "for p in /usr/bin /usr/local/bin /opt/conda/bin /opt/venv/bin ~/miniconda3/bin ~/anaconda3/bin; do "
    'test -x "$p/python3" && echo "$p/python3"; done; '
    "for e in /proc/[0-9]*/exe; do t=$(readlink $e 2>/dev/null) || continue; "
    'case "$t" in */python3*) echo "$t" ; echo "$e" ;; esac; done'
)
_PYTHON = re.compile(r"/[^\x00-\x1f]*/python3(?:\.\d+)?|/proc/[0-9]+/exe")
_MOST = 12
"""Interpreters tried; each takes 20–50 ms there."""
# Debian's python3-minimal has no json; a broken installation lacks whatever it lacks.
_TRY = "import sys, json, subprocess, socket, mmap, select, hashlib; sys.exit(sys.version_info < (3, 6))"
_UNFIT = ("not found", "SyntaxError", "ModuleNotFoundError", "ImportError")


def unfit(status: int | None, said: str) -> bool:
    """Whether a program of ours ended because the interpreter is none, too old, or not whole."""
    return status in {126, 127} or (bool(status) and any(word in said for word in _UNFIT))


async def find_python(host: Host) -> str | None:
    """Path of a python3 (3.6 or later) that runs there. Raises HostError."""
    found = await host.run(["sh", "-c", SEARCH], timeout=20.0)
    lines = dict.fromkeys(found.stdout.decode("utf-8", "replace").splitlines())
    # Real paths first: a process may end, and its /proc with it.
    paths = sorted((path for path in lines if _PYTHON.fullmatch(path)), key=lambda path: path.startswith("/proc/"))
    for path in paths[:_MOST]:
        if (await host.run([path, "-I", "-c", _TRY], timeout=10.0)).exit == 0:
            return path
    return None
