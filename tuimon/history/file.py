"""The history's file: opened for each use, migrated, moved aside when it is corrupted. Many tuimons share it."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from tuimon.history.errors import HistoryError, HistoryTooNew

BUSY = 10.0
"""Seconds that a writer waits for the others; a write takes 1-20 ms."""
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE launches (
      id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started REAL NOT NULL,
      engine TEXT, version TEXT, model TEXT, flags TEXT NOT NULL DEFAULT '{}',
      ready INTEGER NOT NULL DEFAULT 0, ready_s REAL, outcome TEXT NOT NULL, kind TEXT, phase TEXT, seen REAL NOT NULL
    );
    CREATE INDEX launches_by_host ON launches (host, started);
    CREATE TABLE phases (
      launch INTEGER NOT NULL REFERENCES launches (id) ON DELETE CASCADE,
      name TEXT NOT NULL, seconds REAL NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (launch, name)
    ) WITHOUT ROWID;
    """,
)
"""Step n leads from schema n to n + 1; steps are only ever added."""
_ELSEWHERE = "The watching goes on without it; TUIMON_STATE_DIR names another place"
_BROKEN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


class HistoryFile:
    """A SQLite file that is safe to share. `notes` says what had to be done to it."""

    def __init__(self, path: Path, migrations: Sequence[str] = MIGRATIONS) -> None:
        self.path = path
        self.notes: list[str] = []
        self._migrations = migrations
        self._prepared = False

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction, committed at the end. Raises HistoryError."""
        try:
            if not self._prepared:
                self._prepare()
            with closing(self._connect()) as db:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            self._prepared = False  # whatever it is, the next use looks at the file again
            raise HistoryError(f"The history {self.path} cannot be used: {error}", _ELSEWHERE) from error
        except OSError as error:
            raise HistoryError(
                f"The history {self.path} cannot be used: {error.strerror or error}", _ELSEWHERE
            ) from error

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self) -> None:
        """Migrate; move a corrupted file aside. One tuimon at a time: two must not move each other's new file."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.with_name(f"{self.path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                self._migrate()
            except sqlite3.DatabaseError as error:
                if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _BROKEN:
                    raise
                self._move_aside()
                self._migrate()
        self._prepared = True

    def _migrate(self) -> None:
        with closing(self._connect()) as db:
            self.path.chmod(0o600)
            # WAL: readers never wait for a writer. It stays set in the file; on some network drives it is refused.
            db.execute("PRAGMA journal_mode = WAL")
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise _corrupt()
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > len(self._migrations):
                raise HistoryTooNew(
                    f"{self.path} was written by a newer tuimon (schema {version}, known {len(self._migrations)})",
                    "Update tuimon; until then nothing is remembered",
                )
            for number, step in enumerate(self._migrations[version:], start=version + 1):
                db.executescript(f"BEGIN IMMEDIATE; {step}; PRAGMA user_version = {number}; COMMIT;")

    def _move_aside(self) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        aside = self.path.with_name(f"{self.path.name}.corrupt-{stamp}")
        self.path.replace(aside)
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + ending).replace(aside.with_name(aside.name + ending))
        self.notes.append(f"The history was corrupted; it was moved to {aside} and begun anew")


def _corrupt() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("the file is corrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
