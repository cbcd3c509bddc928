"""One nonblocking look at the stacks of all ranks: one small program on the host, one or two round trips."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from tuimon.diagnose import binary
from tuimon.diagnose.errors import BadDump, NoPySpy
from tuimon.diagnose.failures import About, reason
from tuimon.diagnose.pyspy import clean, parse_json
from tuimon.diagnose.sent import BOOTSTRAP, LIMIT, header
from tuimon.diagnose.targets import Target
from tuimon.hosts.errors import CommandTimedOut
from tuimon.hosts.host import Completed, Host
from tuimon.launch.events import RankStack, Stacks, ThreadStack, Unread

AT_ONCE = 4
PATIENCE = 5.0
"""Seconds for one py-spy; a nonblocking dump takes 0.02–0.15 s."""
DEADLINE = 25
"""Seconds after which the program on the host ends itself."""
TIMEOUT = 30.0
UPLOAD_TIMEOUT = 120.0
"""3 MB over a slow link."""
DUMP_LIMIT = 16 << 20
"""Bytes of one dump, unpacked."""


async def dump(host: Host, targets: Sequence[Target], *, asked: bool = False, native: bool = False) -> Stacks:
    """The stacks of these processes; what could not be read is in `unread`, with the reason.

    Where the host has no python3 the targets' own interpreter is used. Nothing is stopped or signalled (`native` stops
    each process for 0.1 s). Raises HostUnreachable.
    """
    if not targets:
        return Stacks(asked=asked)
    try:
        answer = await ask(host, targets, native)
        if lacks_binary(answer):
            answer = await ask(host, targets, native, sent=answer)
    except CommandTimedOut:
        return nothing(targets, f"the host did not answer within {TIMEOUT:.0f} s", asked)
    except BadDump as error:
        return nothing(targets, str(error), asked)
    return assemble(answer, targets, asked)


class Answer(msgspec.Struct, frozen=True):
    """Everything the program on the host said."""

    about: About
    heads: dict[int, dict[str, Any]]
    """What was said about each pid."""
    bodies: dict[int, bytes]
    """py-spy's output by pid."""
    seconds: float | None
    """None = the answer is torn."""
    note: str = ""
    """Why no py-spy was sent although one was needed."""


def lacks_binary(answer: Answer) -> bool:
    """Whether sending our own py-spy may help: there is none, or those there do not know this Python."""
    return any(head.get("another") is True for head in answer.heads.values())


async def ask(host: Host, targets: Sequence[Target], native: bool, sent: Answer | None = None) -> Answer:
    """One round trip; with `sent` (the answer that lacked a py-spy) our own goes along."""
    packed, note = b"", ""
    if sent is not None:
        try:
            own = binary.own()
        except NoPySpy as error:
            return msgspec.structs.replace(sent, note=error.sentence())
        if own.machine != sent.about.machine:
            note = f"ours is for {own.machine}, the host is {clean(sent.about.machine)}"
            return msgspec.structs.replace(sent, note=f"no py-spy on the host, and {note}. {binary.ADVICE}")
        packed = own.packed
    stdin = program() + options(targets, native, len(packed)) + packed
    timeout = UPLOAD_TIMEOUT if packed else TIMEOUT
    for interpreter in (getattr(host, "python", "python3"), f"/proc/{targets[-1].pid}/exe"):
        completed = await host.run(
            [interpreter, "-I", "-u", "-c", BOOTSTRAP], stdin=stdin, timeout=timeout, limit=LIMIT
        )
        if completed.stdout:
            return read_answer(completed.stdout)
    raise BadDump(no_answer(completed))


def no_answer(completed: Completed) -> str:
    """Why our program did not run."""
    said = completed.stderr.decode(errors="replace").strip().splitlines()
    return f"no Python on the host could run our program: {clean(said[-1]) if said else f'exit {completed.exit}'}"


@lru_cache(maxsize=1)
def program() -> bytes:
    """The program with its length in front: two files, sent as one."""
    folder = resources.files("tuimon.diagnose.on_host")
    lines = [line for name in ("find.py", "dump.py") for line in folder.joinpath(name).read_bytes().splitlines()]
    source = b"\n".join(line for line in lines if not line.startswith(b"from tuimon."))
    return b"%d\n%s" % (len(source), source)


def options(targets: Sequence[Target], native: bool, packed: int) -> bytes:
    """The options line."""
    name, sha256 = binary.identity() or (None, None)
    fields = {
        "targets": [[target.pid, None if target.started is None else int(target.started)] for target in targets],
        "packed": packed, "name": name, "sha256": sha256, "native": native,
        "sudo": True, "at_once": AT_ONCE, "patience": PATIENCE, "deadline": DEADLINE,
    }  # fmt: skip
    return json.dumps(fields).encode() + b"\n"


def read_answer(output: bytes) -> Answer:
    """Take the frames apart. Raises BadDump where the first is not ours; a torn end is not an error."""
    about: About | None = None
    heads: dict[int, dict[str, Any]] = {}
    bodies: dict[int, bytes] = {}
    seconds: float | None = None
    at = 0
    while at < len(output):
        end = output.find(b"\n", at)
        head = header(output[at:end]) if end >= 0 else None
        if head is None:
            break
        body = output[end + 1 : end + 1 + head["length"]]
        at = end + 1 + head["length"]
        if "about" in head:
            about = read_about(head)
        elif "done" in head:
            seconds = number(head.get("seconds"))
        elif isinstance(head.get("pid"), int) and len(body) == head["length"]:
            heads[head["pid"]], bodies[head["pid"]] = head, body
    if about is None:
        raise BadDump("the host's answer is not that of our program")
    return Answer(about, heads, bodies, seconds)


def read_about(head: dict[str, Any]) -> About:
    """The first frame."""
    binaries = head.get("binaries")
    capabilities = head.get("capabilities")
    try:
        caps = int(str(capabilities), 16)
    except ValueError:
        caps = None
    uid, yama = head.get("uid"), head.get("yama")
    return About(
        machine=str(head.get("machine", ""))[:40],
        uid=uid if isinstance(uid, int) else None,
        yama=clean(yama) if isinstance(yama, str) else None,
        capabilities=caps,
        binaries=tuple(str(path)[:1000] for path in binaries) if isinstance(binaries, list) else (),
        refused=clean(str(head.get("refused") or "")),
    )


def number(value: object) -> float | None:
    """A duration, or unknown."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def assemble(answer: Answer, targets: Sequence[Target], asked: bool) -> Stacks:
    """The event."""
    ranks: list[RankStack] = []
    unread: list[Unread] = []
    for target in targets:
        head = answer.heads.get(target.pid)
        threads = unpack(answer.bodies.get(target.pid, b"")) if head and head.get("exit") == 0 else None
        if head is not None and threads:
            ranks.append(rank_stack(target, threads, seen_of(head)))
        else:
            unread.append(Unread(target.pid, target.rank, unread_reason(head, answer)))
    return Stacks(ranks=tuple(ranks), unread=tuple(unread), cost=answer.seconds, asked=asked)


def seen_of(head: dict[str, Any]) -> dict[str, Any]:
    """What /proc showed of the process."""
    seen = head.get("proc")
    return seen if isinstance(seen, dict) else {}


def rank_stack(target: Target, threads: tuple[ThreadStack, ...], seen: dict[str, Any]) -> RankStack:
    """One process; in a container py-spy cannot see which threads run, /proc can."""
    inner = seen.get("inner")
    if isinstance(inner, dict):
        threads = tuple(outer_thread(thread, inner) for thread in threads)
    state, wchan = seen.get("state"), seen.get("wchan")
    return RankStack(
        target.pid,
        target.rank,
        threads,
        state=clean(state)[:1] or None if isinstance(state, str) else None,
        wchan=clean(wchan) if isinstance(wchan, str) and wchan else None,
    )


def outer_thread(thread: ThreadStack, inner: dict[str, Any]) -> ThreadStack:
    """The thread with the host's id and its true activity."""
    found = inner.get(str(thread.tid))
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[0], int):
        return msgspec.structs.replace(thread, active=None)
    return msgspec.structs.replace(thread, tid=found[0], active=found[1] == "R")


def unread_reason(head: dict[str, Any] | None, answer: Answer) -> str:
    """Why this process has no stack."""
    if head is None:
        return "the answer broke off" if answer.seconds is None else "the host said nothing about it"
    seen = seen_of(head)
    if head.get("exit") == 0:
        return reason("it runs no Python thread, or py-spy's answer cannot be read", 0, seen, answer.about)
    error = str(head.get("error", ""))
    status = head.get("exit")
    about = answer.about
    if error == "no py-spy" and answer.note:
        about = msgspec.structs.replace(about, refused=answer.note)
    return reason(error, status if isinstance(status, int) else None, seen, about)


def unpack(body: bytes) -> tuple[ThreadStack, ...] | None:
    """py-spy's output, unpacked within bounds and read."""
    try:
        return parse_json(zlib.decompressobj().decompress(body, DUMP_LIMIT))
    except zlib.error:
        return None


def nothing(targets: Sequence[Target], why: str, asked: bool) -> Stacks:
    """No stack at all, for one reason."""
    return Stacks(unread=tuple(Unread(target.pid, target.rank, why) for target in targets), asked=asked)
