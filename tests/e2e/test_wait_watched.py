"""Alerts and history beside the screen: `tuimon watch` on a terminal of its own, a rank is killed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

STALLS_WITHIN = 40.0
LEAVES_WITHIN = 6.0


def read(terminal: int, until: bytes | None, within: float, raw: bytes = b"") -> bytes:
    """What the terminal is sent, until these bytes or its end."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline and (until is None or until not in raw):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                raw += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
    return raw


def test_the_terminal_rings_once_and_the_command_gets_the_evidence(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    told = tmp_path / "told.jsonl"
    environ = {**os.environ, "TERM": "xterm-256color", "TUIMON_STATE_DIR": str(tmp_path), "TUIMON_NOTIFY": "osc9"}
    environ.pop("TMUX", None)
    command = [sys.executable, "-m", "tuimon", "watch", "demo:rank-killed@0.1", "--on-change", f"tee -a {told}"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
    )  # fmt: skip
    try:
        os.close(theirs)
        raw = read(ours, b"\x1b]9;", STALLS_WITHIN)
        os.write(ours, b"q")
        raw = read(ours, None, LEAVES_WITHIN, raw)
        assert process.wait(LEAVES_WITHIN) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    rings = re.findall(rb"\x07\x1b\]9;([^\x1b]*)\x1b\\", raw)
    assert rings == [b"tuimon: demo:rank-killed STALLED: TP6 is dead, the others wait for it"]
    changes = [json.loads(line) for line in told.read_text().splitlines()]
    assert changes[-1]["change"]["to"] == "stalled"
    assert [suspect["rank"] for suspect in changes[-1]["verdict"]["suspects"]] == ["TP6"]
    done = subprocess.run(
        [sys.executable, "-m", "tuimon", "history"], env=environ, capture_output=True, text=True, check=True
    )
    assert "stalled (rank killed)  demo:rank-killed@0.1" in done.stdout
