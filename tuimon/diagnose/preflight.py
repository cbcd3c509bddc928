"""The check of a draft model before (or while) it is launched: read, apply the rules, tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from tuimon.diagnose import checkpoint, checkpoint_rules, eagle3
from tuimon.diagnose.checkpoint import Checkpoint
from tuimon.diagnose.flaws import Flaw, kind
from tuimon.hosts.host import Host

SCHEMA = "tuimon.checkpoint/1"


class Preflight(Struct, frozen=True):
    """The result."""

    path: str
    target: str | None
    engine: str
    engine_version: str
    version_known: bool
    """False: nobody said which version, the newest known one was taken."""
    format: str
    verdict: Literal["ok", "broken", "silent", "unknown"]
    findings: tuple[Flaw, ...]


class Launched(Struct, frozen=True):
    """What a server's command line says about its draft."""

    draft: str
    target: str | None
    algorithm: str


def launched(argv: Sequence[str]) -> Launched | None:
    """The draft that a command line names; None where it names none."""
    flags = flag_values(argv)
    target = flags.get("--model-path") or flags.get("--model") or positional(argv)
    draft = flags.get("--speculative-draft-model-path") or flags.get("--speculative-draft-model")
    if draft:
        return Launched(draft, target, flags.get("--speculative-algorithm", "EAGLE3"))
    try:
        given = json.loads(flags.get("--speculative-config", "") or "null")
    except (ValueError, RecursionError):
        return None
    if isinstance(given, dict) and isinstance(given.get("model"), str):
        return Launched(given["model"], target, str(given.get("method", "EAGLE3")))
    return None


def flag_values(argv: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value`."""
    found: dict[str, str] = {}
    for word, after in zip(argv, [*argv[1:], ""], strict=True):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            found[name.replace("_", "-")] = value if equals else after
    return found


def positional(argv: Sequence[str]) -> str | None:
    """`vllm serve MODEL`, `sglang serve MODEL`."""
    words = list(argv)
    for place, word in enumerate(words[:-1]):
        if word == "serve" and not words[place + 1].startswith("-"):
            return words[place + 1]
    return None


def judge(
    draft: Checkpoint, target: Checkpoint | None, engine: str | None, version: str | None, algorithm: str = "EAGLE3"
) -> Preflight:
    """Apply the rules. Without an engine SGLang, without a version the newest known one."""
    engine = engine or "sglang"
    used = version or eagle3.NEWEST.get(engine, "0")
    config = eagle3.language(target.config) if target else None
    case = eagle3.Case(draft, config, engine, eagle3.version_of(used), algorithm)
    flaws = checkpoint_rules.check(case)
    return Preflight(
        draft.path, target.path if target else None, engine, used, version is not None,
        kind(case), checkpoint_rules.verdict(case, flaws), flaws,
    )  # fmt: skip


async def check(
    host: Host, draft: str, target: str | None, engine: str | None, version: str | None, *,
    algorithm: str = "EAGLE3", pid: int | None = None,
) -> Preflight:  # fmt: skip
    """Read both on the host and judge. Raises BadCheckpoint, HostUnreachable."""
    read = await checkpoint.read(host, draft, pid=pid)
    other = await checkpoint.read(host, target, headers=False, pid=pid) if target else None
    return judge(read, other, engine, version, algorithm)


def check_local(draft: str, target: str | None, engine: str | None, version: str | None) -> Preflight:
    """The same on this machine. Raises BadCheckpoint."""
    other = checkpoint.read_local(target, headers=False) if target else None
    return judge(checkpoint.read_local(draft), other, engine, version)


def as_document(found: Preflight) -> dict[str, Any]:
    """The document of docs/schema/checkpoint.json."""
    return {
        "schema": SCHEMA, "path": found.path, "target": found.target, "engine": found.engine,
        "engine_version": found.engine_version, "format": found.format, "verdict": found.verdict,
        "findings": [
            {"rule": flaw.rule, "severity": flaw.severity, "key": flaw.key, "expected": flaw.expected,
             "found": flaw.found, "fix": flaw.fix}
            for flaw in found.findings
        ],
    }  # fmt: skip


WORDS = {
    "ok": "fits: every tensor is where {engine} {version} looks for it",
    "broken": "BROKEN: {engine} {version} will crash on it",
    "silent": "SILENTLY USELESS: {engine} {version} will become ready, and the draft will do nothing",
    "unknown": "cannot be judged: not a format that the rules know",
}


def as_text(found: Preflight) -> str:
    """For a reader."""
    words = WORDS[found.verdict].format(engine=found.engine, version=found.engine_version)
    lines = [f"{found.path}: {words}"]
    if not found.version_known:
        lines.append(
            f"  checked against {found.engine} {found.engine_version}, the newest known here (--engine-version)"
        )
    if found.target is None:
        lines.append("  the target was not given: widths and vocabulary could not be compared (--target)")
    for flaw in found.findings:
        lines += [
            f"  {flaw.severity:7} {flaw.key}",
            f"          expected {flaw.expected}, found {flaw.found}",
            f"          {flaw.fix}",
        ]
    return "\n".join(lines)
