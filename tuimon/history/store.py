"""Launches in the history's file: kept, listed, and asked what is usual."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from statistics import median

from tuimon.config import state_dir
from tuimon.history.file import HistoryFile
from tuimon.history.launched import UNFINISHED, Launched
from tuimon.launch.events import UsualTimes

SAME_START = 60.0
"""Seconds by which two tuimons may differ on when a process began; a pid does not come back so soon."""
KEEP = 5000
"""Launches kept; the oldest go first."""
USUAL_OF = 5
"""Launches that tell what is usual."""
_FIELDS = "host, pid, started, engine, version, model, flags, ready, ready_s, outcome, kind, phase, seen"


def default_path() -> Path:
    """The history of this user."""
    return state_dir() / "history.sqlite"


class Store:
    """Everything raises HistoryError where the file cannot be used."""

    def __init__(self, file: HistoryFile | None = None) -> None:
        self.file = file or HistoryFile(default_path())

    def keep(self, launch: Launched) -> None:
        """Add a launch, or what is new about it: several tuimons may watch the same one."""
        with self.file.open() as db:
            row = db.execute(
                "SELECT id FROM launches WHERE host = ? AND pid = ? AND abs(started - ?) < ? ORDER BY started DESC",
                (launch.host, launch.pid, launch.started, SAME_START),
            ).fetchone()
            number = _add(db, launch) if row is None else _update(db, row[0], launch)
            db.executemany(
                "INSERT INTO phases (launch, name, seconds, place) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (launch, name) DO UPDATE SET seconds = excluded.seconds, place = excluded.place",
                [(number, name, seconds, place) for place, (name, seconds) in enumerate(launch.phases.items())],
            )

    def usual(self, launch: Launched) -> UsualTimes | None:
        """How long launches like this one took here: same host, engine and model, and the same flags if there are any.

        None where no such launch became ready.
        """
        like = "host = ? AND engine IS ? AND model IS ? AND ready AND NOT (pid = ? AND abs(started - ?) < ?)"
        same = (launch.host, launch.engine, launch.model, launch.pid, launch.started, SAME_START)
        newest = "ORDER BY started DESC LIMIT ?"
        with self.file.open() as db:
            query = f"SELECT id FROM launches WHERE {like}"  # noqa: S608  all parts are constants
            found = db.execute(f"{query} AND flags = ? {newest}", (*same, _text(launch.flags), USUAL_OF)).fetchall()
            found = found or db.execute(f"{query} {newest}", (*same, USUAL_OF)).fetchall()
            times: dict[str, list[float]] = {}
            for (number,) in found:
                for name, seconds in _phases(db, number).items():
                    times.setdefault(name, []).append(seconds)
        if not times:
            return None
        return UsualTimes(phases={name: median(seconds) for name, seconds in times.items()}, launches=len(found))

    def launches(self, host: str | None = None, most: int = 50) -> list[Launched]:
        """The latest launches, newest first."""
        where, values = ("WHERE host = ?", (host, most)) if host else ("", (most,))
        query = f"SELECT id, {_FIELDS} FROM launches {where} ORDER BY started DESC, id DESC LIMIT ?"  # noqa: S608  as above
        with self.file.open() as db:
            return [_launch(row[1:], _phases(db, row[0])) for row in db.execute(query, values).fetchall()]


def _add(db: sqlite3.Connection, launch: Launched) -> int:
    values = (
        launch.host, launch.pid, launch.started, launch.engine, launch.version, launch.model, _text(launch.flags),
        launch.ready, launch.ready_s, launch.outcome, launch.kind, launch.phase, launch.seen,
    )  # fmt: skip
    added = db.execute(f"INSERT INTO launches ({_FIELDS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", values)  # noqa: S608  a constant
    db.execute("DELETE FROM launches WHERE id <= ?", ((added.lastrowid or 0) - KEEP,))
    return added.lastrowid or 0


def _update(db: sqlite3.Connection, number: int, launch: Launched) -> int:
    db.execute(
        "UPDATE launches SET engine = coalesce(?, engine), version = coalesce(?, version), model = coalesce(?, model),"
        " ready = max(ready, ?), ready_s = coalesce(ready_s, ?), seen = max(seen, ?) WHERE id = ?",
        (launch.engine, launch.version, launch.model, launch.ready, launch.ready_s, launch.seen, number),
    )
    if launch.outcome != UNFINISHED:  # one that left early knows less than the others
        db.execute(
            "UPDATE launches SET outcome = ?, kind = ?, phase = ? WHERE id = ?",
            (launch.outcome, launch.kind, launch.phase, number),
        )
    return number


def _phases(db: sqlite3.Connection, number: int) -> dict[str, float]:
    return dict(db.execute("SELECT name, seconds FROM phases WHERE launch = ? ORDER BY place", (number,)).fetchall())


def _launch(row: tuple[object, ...], phases: dict[str, float]) -> Launched:
    values = dict(zip(_FIELDS.split(", "), row, strict=True))
    values["flags"] = json.loads(str(values["flags"]))
    values["ready"] = bool(values["ready"])
    return Launched(**values, phases=phases)  # type: ignore[arg-type]  # the columns are the fields


def _text(flags: dict[str, str]) -> str:
    return json.dumps(flags, sort_keys=True)
