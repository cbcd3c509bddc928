"""`tuimon history [HOST]`: the launches that were watched before, and how long they took."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from tuimon.headless import exit_codes
from tuimon.headless.plain import plain, say, say_json
from tuimon.history.launched import Launched
from tuimon.history.store import Store
from tuimon.launch.lasting import age

SCHEMA = "tuimon.history/1"


def run(host: str | None, most: int, *, as_json: bool) -> int:
    """Print the latest launches, newest first. Raises HistoryError."""
    store = Store()
    launches = store.launches(host, most)
    for note in store.file.notes:
        say(plain(note), sys.stderr)
    if as_json:
        say_json(document(launches, str(store.file.path)))
    else:
        say(words(launches, host))
    return exit_codes.FINE


def document(launches: list[Launched], path: str) -> dict[str, object]:
    """The document of docs/schema/history.json."""
    return {"schema": SCHEMA, "path": path, "launches": [_entry(launch) for launch in launches]}


def _entry(launch: Launched) -> dict[str, object]:
    return {
        "host": launch.host,
        "engine": launch.engine,
        "version": launch.version,
        "model": launch.model,
        "flags": launch.flags,
        "pid": launch.pid,
        "started": datetime.fromtimestamp(launch.started, UTC).isoformat().replace("+00:00", "Z"),
        "ready_s": launch.ready_s,
        "outcome": launch.outcome,
        "kind": launch.kind,
        "phase": launch.phase,
        "phases": [{"name": name, "seconds": seconds} for name, seconds in launch.phases.items()],
    }


def words(launches: list[Launched], host: str | None) -> str:
    """Two lines a launch: what it was and how it went, then where the time went."""
    if not launches:
        where = f" of {host}" if host else ""
        return f"No launch{where} is remembered yet: tuimon watch and tuimon wait remember what they see."
    lines = []
    for launch in launches:
        when = datetime.fromtimestamp(launch.started).astimezone().strftime("%Y-%m-%d %H:%M")
        ready = f" after {age(launch.ready_s)}" if launch.ready_s is not None and launch.outcome == "ready" else ""
        kind = f" ({launch.kind})" if launch.kind else ""
        what = " ".join(word for word in (launch.engine, launch.model) if word) or "unknown server"
        lines.append(plain(f"{when}  {launch.outcome}{ready}{kind}  {launch.host}  {what}"))
        flags = " ".join(f"{name}={value}" for name, value in launch.flags.items())
        longest = sorted(launch.phases.items(), key=lambda item: -item[1])[:4]
        times = ", ".join(f"{name} {age(seconds)}" for name, seconds in longest if seconds >= 1)
        lines += [plain(f"    {part}") for part in (flags, times) if part]
    return "\n".join(lines)
