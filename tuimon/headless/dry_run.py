"""Every command that tuimon may send to a host: `--dry-run` prints them, docs/REMOTE.md explains them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec import Struct

from tuimon.config import Settings
from tuimon.diagnose import checkup, kernel, sent
from tuimon.headless.plain import plain, say
from tuimon.hosts import command, finding, pick, ways
from tuimon.hosts import plain as bare
from tuimon.hosts.inside import HOLD, Inside
from tuimon.probe import send
from tuimon.watch import degraded


class Sent(Struct, frozen=True):
    """One command."""

    name: str
    argv: tuple[str, ...]
    when: str
    stdin: str = ""
    """What goes over its stdin."""


def _ours(name: str, when: str, program: str, boot: Sequence[str] | None = None) -> Sent:
    argv = tuple(boot or ("python3", "-I", "-u", "-c", sent.BOOTSTRAP))
    return Sent(name, argv, when, f"our program {program}, then its options")


_DOCKER, _POD = ways.Container("NAME"), ways.Pod("NS", "POD")
ALL: tuple[Sent, ...] = (
    _ours("probe", "always, one for the whole watch", "probe/program and pynvml", send.command()),
    _ours("tail", "when the log is a file", "probe/program/tail.py", send.tail_command()),
    _ours(
        "stream",
        "when the log is a container's, a pod's, a journal's, a tmux pane's",
        "probe/program/stream.py",
        send.command(),
    ),
    Sent("stream: docker", ("docker", "logs", "--timestamps", "-f", "--since=TIME", "NAME"), "started by `stream`"),
    Sent("stream: kubectl", ("kubectl", "logs", "--timestamps", "-f", "-n", "NS", "POD"), "started by `stream`"),
    Sent(
        "stream: journal",
        ("journalctl", "--quiet", "--no-pager", "--all", "-o", "json", "_SYSTEMD_UNIT=UNIT", "-f"),
        "started by `stream`",
    ),
    Sent(
        "stream: tmux",
        ("tmux", "-u", "-S", "SOCKET", "display-message", "-p", "-t", "%PANE", "…", ";", "capture-pane", "-p", "-J"),
        "started by `stream` each second; nothing is typed or changed",
    ),
    _ours("stacks", "key s, or when nothing else moves for 10 s", "diagnose/on_host/{find,dump}.py"),
    Sent("stacks: py-spy", ("py-spy", "dump", "--nonblocking", "--json", "-p", "PID"), "started by `stacks`, per rank"),
    _ours("collectives", "key c, or d", "diagnose/on_host/ras.py"),
    *(Sent("kernel log", tuple(each), "key d, until one works") for each in kernel.COMMANDS),
    _ours("checkpoint", "key p, or `tuimon checkpoint`", "diagnose/on_host/headers.py"),
    _ours("flight recorder", "asked for, with its own question", "diagnose/on_host/recorder.py"),
    _ours("debug server", "asked for, with its own question", "diagnose/on_host/debug_server.py"),
    _ours("abort", "asked for, with two questions: it kills the server", "diagnose/on_host/abort.py"),
    Sent("find python", ("sh", "-c", finding.SEARCH), "when python3 is not on the PATH"),
    Sent(
        "without python", ("sh", "-c", degraded.SCRIPT), "when there is no Python at all", "the server's pid each 2 s"
    ),
    Sent("without python: GPUs", tuple(bare.beside(degraded.SMI)), "when there is no Python at all", "beats"),
    Sent(
        "without python: log",
        tuple(bare.beside(("tail", "-c", "+1", "-F", "LOG"))),
        "when there is no Python at all",
        "beats",
    ),
    Sent("hold", ("sh", "-c", HOLD), "in a container or a pod, and with --ssh-command", "beats"),
    *(Sent("ended: docker", each, "when a container is gone, to the machine before it") for each in _DOCKER.states()),
    *(Sent("ended: kubectl", each, "when a pod is gone, to the machine before it") for each in _POD.states()),
    Sent("doctor --clean", ("sh", "-c", checkup.CLEAN), "`tuimon doctor HOST --clean`"),
)


def run(spec: str, settings: Settings) -> int:
    """Print them as they would be sent to this host; nothing is connected. Raises HostError."""
    host = pick.host(spec, settings.ssh_command)
    say(f"To {plain(spec)} these may be sent; nothing was. Short ones run beside a `cat` that ends them with the link:")
    say(f"  {' '.join(shlex.join(command.guarded(['COMMAND'], 10)).split())}\n")
    for each in ALL:
        words = each.argv
        if isinstance(host, Inside) and not each.name.startswith("stream"):
            words = tuple(host.enters(each.argv))
        say(f"{each.name}: {each.when}")
        say(f"  {shlex.join(words)}")
        if each.stdin:
            say(f"  stdin: {each.stdin}")
    return 0
