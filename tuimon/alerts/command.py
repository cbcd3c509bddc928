"""`--on-change CMD`: run with the evidence on stdin, never through a shell, never for long."""

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from tuimon.alerts.errors import BadCommand

LIMIT = 10.0
"""Seconds that the command may run."""
WAITING = 8
"""Changes that wait for their command; more are dropped, and said."""


class OnChange:
    """Runs the command for one change after the other, on a thread of its own. Raises BadCommand."""

    def __init__(self, command: str, trouble: Callable[[str], None], limit: float = LIMIT) -> None:
        self.argv = split(command)
        self._trouble = trouble
        self._limit = limit
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._main, name="tuimon-on-change", daemon=True)
        self._thread.start()

    def tell(self, document: Mapping[str, object]) -> None:
        """Queue a change; returns at once."""
        try:
            self._waiting.put_nowait(json.dumps(document).encode() + b"\n")
        except queue.Full:
            self._trouble(f"{self.argv[0]} is slower than the changes: one was dropped")

    def stop(self, within: float) -> None:
        """Wait until the command has been run for all that waits; after `within` seconds it is killed."""
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(within)
        self._given_up = True
        process = self._process
        if self._thread.is_alive() and process is not None:
            end(process)

    def _main(self) -> None:
        while (document := self._waiting.get()) is not None and not self._given_up:
            words = run(self.argv, document, self._limit, self._begun)
            if words:
                self._trouble(words)

    def _begun(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process


def split(command: str) -> list[str]:
    """The argument list, its program found. Raises BadCommand."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise BadCommand(f"The command {command!r} cannot be read: {error}", "Close its quotes") from error
    if not argv:
        raise BadCommand("The command for --on-change is empty", "Name a program")
    if shutil.which(argv[0]) is None:
        raise BadCommand(
            f"The command for --on-change cannot be run: there is no program {argv[0]!r}",
            "It is not given to a shell; write sh -c '…' for one",
        )
    return argv


def run(
    argv: list[str],
    document: bytes,
    limit: float,
    begun: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,  # noqa: ARG005  nobody wants to know
) -> str | None:
    """Run once; what went wrong in words. After `limit` seconds it and its children are killed."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        return f"{argv[0]} cannot be run: {error.strerror or error}"
    begun(process)
    try:
        process.communicate(document, timeout=limit)
    except subprocess.TimeoutExpired:
        end(process)
        return f"{argv[0]} did not end within {limit:.0f} s and was killed"
    except OSError as error:
        process.wait()
        return f"{argv[0]}: {error.strerror or error}"
    return f"{argv[0]} ended with {process.returncode}" if process.returncode else None


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: nobody else is in this group
        with suppress(subprocess.TimeoutExpired):  # one that waits for a dead disk does not even die
            process.wait(1.0)
