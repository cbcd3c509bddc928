"""What the kernel's log says about GPUs, memory and hung tasks, and what it means for a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from tuimon.diagnose.pyspy import clean
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Host
from tuimon.launch.events import Finding

COMMANDS = (
    ("dmesg", "--time-format", "iso"),
    ("dmesg",),
    ("journalctl", "-k", "-b", "-n", "2000", "--no-pager", "-o", "short-iso"),
)
"""The first that answers; each needs root, kernel.dmesg_restrict=0, or the group adm (journal)."""
LIMIT = 4 << 20
MANY = 40


class Meaning(Struct, frozen=True):
    """What an Xid means for a hung server."""

    words: str
    fix: str
    fatal: bool = True


RESTART, RESET, REBOOT = "Restart the server", "Reset the GPU, then restart the server", "Reboot the machine"
XIDS: dict[int, Meaning] = {
    8: Meaning("the GPU stopped processing (FIFO idle timeout)", RESTART),
    13: Meaning("a kernel of the application failed (graphics exception)", RESTART),
    31: Meaning("a kernel of the application touched memory that is not its own (MMU fault)", RESTART),
    43: Meaning("the application's channel was reset after a fault of its own", RESTART),
    45: Meaning("clean-up after another error: look for the Xid before it", RESTART, fatal=False),
    48: Meaning("double-bit ECC error", RESET),
    62: Meaning("the GPU's power controller halted", REBOOT),
    63: Meaning("a memory row was remapped", RESET, fatal=False),
    64: Meaning("a memory row could not be remapped", "Reset the GPU, then have it replaced"),
    74: Meaning("NVLink error: peers hang in collectives", RESET),
    79: Meaning("the GPU has fallen off the bus", REBOOT),
    92: Meaning("many single-bit ECC errors", "Watch it; have the GPU checked", fatal=False),
    94: Meaning("contained memory error: one application is lost", RESTART),
    95: Meaning("uncontained memory error: everything on the GPU is lost", RESET),
    109: Meaning("context switch timeout: a kernel or the firmware hangs", RESET),
    119: Meaning("GSP does not answer: driver calls hang in D state", REBOOT),
    120: Meaning("GSP error: driver calls hang in D state", REBOOT),
    121: Meaning("C2C link error", REBOOT),
    136: Meaning("NVLink training failed", RESET),
    137: Meaning("NVLink memory fault", RESTART),
    140: Meaning("unrecovered ECC error", RESET),
    143: Meaning("the GPU could not be initialised", REBOOT),
    154: Meaning("the driver names a recovery action", "Do what the line says"),
} | {xid: Meaning("NVLink 5 error: peers hang in collectives", RESET) for xid in range(144, 151)}

_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[,.]\d{1,9})?([+-]\d\d:?\d\d)")
_XID = re.compile(r"NVRM: Xid \((PCI:)?([0-9a-fA-F:.]{1,20})\): (\d{1,4})(?:, pid='?(\d{1,9}))?")
_SXID = re.compile(r"(?:nvidia-nvswitch|SXid).{0,40}?SXid \(PCI:([0-9a-fA-F:.]{1,20})\): (\d{1,6})")
_OOM = re.compile(
    r"Out of memory: Killed process (\d{1,9}) \(([^)]{0,60})\)|oom-kill:.{0,400}?task=([^,]{0,60}),pid=(\d{1,9})"
)
_HUNG = re.compile(r"task (\S{1,60}):(\d{1,9}) blocked for more than (\d{1,9}) seconds")
_SEGFAULT = re.compile(r"(\S{1,60})\[(\d{1,9})\]: segfault at")
_STORAGE = re.compile(r"nfs: server (\S{1,200}) not responding|(I/O error), dev (\S{1,60})")


def parse(text: str, since: float | None = None) -> tuple[Finding, ...]:
    """Findings of a kernel log, newest last, each kind of event on each device or process once.

    Lines that the log dates before `since` (host's wall clock) are left out: an Xid of last month explains nothing.
    """
    found: dict[tuple[str, str], Finding] = {}
    for line in text.splitlines():
        if since is not None and (at := time_of(line)) is not None and at < since:
            continue
        for key, finding in line_findings(line[:2000]):
            found.pop(key, None)  # the newest of a kind stands for the others
            found[key] = finding
    return tuple(found.values())[-MANY:]


def time_of(line: str) -> float | None:
    """The time in front of a line of `dmesg --time-format iso` or `journalctl -o short-iso`; None without one."""
    match = _TIME.match(line)
    if match is None:
        return None
    zone = match[2] if ":" in match[2] else f"{match[2][:3]}:{match[2][3:]}"
    try:
        return datetime.fromisoformat(match[1] + zone).timestamp()
    except (ValueError, OverflowError):
        return None


def line_findings(line: str) -> Iterator[tuple[tuple[str, str], Finding]]:
    """What one line says."""
    if xid := _XID.search(line):
        number = int(xid[3])
        meaning = XIDS.get(number, Meaning("see NVIDIA's Xid catalogue", RESTART, fatal=False))
        text = f"Xid {number} on GPU {xid[2]}: {meaning.words}"
        yield (f"xid{number}", xid[2]), make("xid", text, line, meaning.fix, fatal=meaning.fatal, pid=pid_of(xid[4]))
    elif switch := _SXID.search(line):
        yield (f"sxid{switch[2]}", switch[1]), make("sxid", f"NVSwitch error {switch[2]} on {switch[1]}", line, RESET)
    elif oom := _OOM.search(line):
        pid, name = oom[1] or oom[4], oom[2] or oom[3]
        text = f"the kernel killed {clean(name or '?')} (pid {pid}) for want of memory"
        yield ("oom", pid or ""), make("oom", text, line, "Give it more memory, or load less at once", pid=pid_of(pid))
    elif hung := _HUNG.search(line):
        text = f"{clean(hung[1])} (pid {hung[2]}) waits in the kernel for more than {hung[3]} s: storage or driver"
        yield (
            ("hung", hung[2]),
            make("hung_task", text, line, "Look at its storage, then at the driver", pid=pid_of(hung[2])),
        )
    elif fault := _SEGFAULT.search(line):
        text = f"{clean(fault[1])} (pid {fault[2]}) crashed (segmentation fault)"
        yield ("segfault", fault[2]), make("segfault", text, line, RESTART, pid=pid_of(fault[2]))
    elif storage := _STORAGE.search(line):
        what = storage[1] or storage[3]
        yield ("storage", what), make("storage", f"storage does not answer: {clean(what)}", line, "Mount it again")


def make(kind: str, text: str, line: str, fix: str, *, fatal: bool = True, pid: int | None = None) -> Finding:
    """One finding, with the log's own line behind it."""
    words = f"{text} – {clean(line.strip())}"
    severity: Literal["warning", "fatal"] = "fatal" if fatal else "warning"
    return Finding(source="kernel", kind=kind, text=words, severity=severity, fix=fix, pid=pid)


def pid_of(text: str | None) -> int | None:
    """A pid, or unknown."""
    return int(text) if text else None


async def read(
    host: Host, since: float | None = None, commands: Sequence[Sequence[str]] = COMMANDS
) -> tuple[tuple[Finding, ...], str]:
    """Findings of the host's kernel log, and why it could not be read (empty where it was). Raises HostUnreachable."""
    said = ""
    for command in commands:
        try:
            done = await host.run(list(command), timeout=5.0, limit=LIMIT)
        except CommandTimedOut:
            continue
        if done.exit == 0 and done.stdout.strip():
            return parse(done.stdout.decode(errors="replace"), since), ""
        said = clean(done.stderr.decode(errors="replace").strip().rpartition("\n")[2]) or said
    return (), f"the kernel log cannot be read ({said or 'no dmesg'}): log in as root, or set kernel.dmesg_restrict=0"
