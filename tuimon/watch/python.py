"""Find an interpreter on a host whose PATH has no python3."""

from __future__ import annotations

import re

from tuimon.hosts.host import Host

# Logins without a terminal often miss conda's PATH. The servers' own interpreters are the surest: they run.
_SEARCH = (
    "for p in /usr/bin /usr/local/bin /opt/conda/bin /opt/venv/bin ~/miniconda3/bin ~/anaconda3/bin; do "
    'test -x "$p/python3" && echo "$p/python3"; done; ls -l /proc/[0-9]*/exe 2>/dev/null | sed "s/.* -> //" | sort -u'
)
_PYTHON = re.compile(r"/[^\x00-\x1f]*/python3(?:\.\d+)?")


async def find_python(host: Host) -> str | None:
    """Path of a python3 that runs there. Raises HostError."""
    found = await host.run(["sh", "-c", _SEARCH], timeout=20.0)
    for path in found.stdout.decode("utf-8", "replace").splitlines():
        if _PYTHON.fullmatch(path):
            tried = await host.run([path, "-I", "-c", "print(1)"], timeout=10.0)
            if tried.exit == 0:
                return path
    return None
