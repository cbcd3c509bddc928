"""The recorder: a thread of its own between the watching and the disk. Whatever the disk does, the watching goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tuimon.launch.events import AnyEvent, Finding
from tuimon.launch.view import LaunchView
from tuimon.recording.backlog import MOST, Backlog, Lost, told
from tuimon.recording.form import Judged, Recorded
from tuimon.recording.secrets import Censor
from tuimon.recording.shelf import Limits, Shelf

if TYPE_CHECKING:
    from tuimon.recording.series import Series

GATHER = 0.5
"""Seconds for which events are gathered into one block."""
SYNC = 1.0
"""Seconds after which what was written must be on the disk; with GATHER less than the 2 s that a crash may cost."""
RETRY = 30.0
"""Seconds after which a disk that failed is tried again."""
STOP_WITHIN = 2.0


class Recorder:
    """Records one watch. `say` is called with findings on the recorder's thread, `view` is asked for the verdict."""

    def __init__(
        self, folder: Path, host: str, limits: Limits, *, say: Callable[[AnyEvent], None],
        view: Callable[[], LaunchView] | None = None, most: int = MOST,
    ) -> None:  # fmt: skip
        self._shelf = Shelf(folder, limits)
        self._host = host
        self._say = say
        self._view = view
        self._backlog = Backlog(most)
        self._censor = Censor()
        self._series: Series | None = None
        self._lost: Lost | None = None
        self._why = ""
        self._failed: float | None = None
        self._late_said = False
        self._unsynced: float | None = None
        self._verdict: tuple[str, str | None] | None = None
        self._thread = threading.Thread(target=self._main, name="tuimon-recorder", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def take(self, event: AnyEvent) -> None:
        """Record an event; returns at once, on any thread."""
        self._backlog.put(event)

    def stop(self) -> None:
        """Write the rest; waits at most 2 s for a slow disk."""
        self._backlog.end()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN)

    @property
    def path(self) -> Path | None:
        """The file being written."""
        return self._series.path if self._series else None

    def _main(self) -> None:
        # zstandard takes 15 ms to import, and the first frame may not wait for it.
        from tuimon.recording.series import Series  # noqa: PLC0415

        series = self._series = Series(self._shelf, self._host)
        while not self._backlog.ended:
            self._backlog.wait(None if self._unsynced is None else SYNC / 2)
            self._backlog.rest(GATHER)
            self._guarded(series)
        self._guarded(series, last=True)

    def _guarded(self, series: Series, *, last: bool = False) -> None:
        events, lost = self._backlog.take()
        clean: list[Recorded] = list(self._censor.clean(events, last=last))
        try:
            if self._failed is not None and not last and time.monotonic() - self._failed < RETRY:
                self._miss(series, clean, lost)
                return
            self._store(series, clean, lost)
            if last:
                series.close()
        except Exception as error:  # noqa: BLE001  the disk's errors, and ours: neither may reach the watching
            self._fail(series, error)
            self._miss(series, clean, lost)

    def _store(self, series: Series, clean: list[Recorded], lost: Lost | None) -> None:
        if not clean and lost is None:
            self._sync(series)
            return
        if self._lost is not None and clean:
            clean = [*told(self._lost, clean[0].at, self._why), *clean]
        if lost is not None:
            clean = [*clean, *told(lost, clean[-1].at if clean else lost.since, "the disk is too slow to record")]
        series.write([*clean, *self._judged(clean)])
        self._unsynced = self._unsynced if self._unsynced is not None else time.monotonic()
        self._sync(series)
        if self._failed is not None:
            self._find("Recording goes on", None)
        if lost is not None and not self._late_said:
            self._late_said = True
            self._find(
                f"The disk under {self._shelf.folder} is too slow: {lost.events} events were not recorded",
                "Point TUIMON_STATE_DIR at another disk, or watch with --no-record",
            )
        self._failed = self._lost = None

    def _sync(self, series: Series) -> None:
        if self._unsynced is not None and time.monotonic() - self._unsynced >= SYNC - GATHER:
            self._unsynced = None
            series.sync()

    def _judged(self, clean: list[Recorded]) -> list[Recorded]:
        """The verdict of the time, where it changed."""
        if self._view is None or not clean:
            return []
        verdict = self._view().verdict
        now = (verdict.state, verdict.kind)
        if now == self._verdict:
            return []
        self._verdict = now
        return [Judged(at=clean[-1].at, state=verdict.state, kind=verdict.kind, headline=verdict.headline)]

    def _fail(self, series: Series, error: Exception) -> None:
        first, self._failed = self._failed is None, time.monotonic()
        self._unsynced = None
        with suppress(OSError):  # it is the same trouble again
            series.abandon()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        self._why = f"not recorded ({reason})"
        if first:
            self._find(
                f"This watch is not being recorded: {reason} ({self._shelf.folder})",
                f"It is tried again each {RETRY:.0f} s; point TUIMON_STATE_DIR elsewhere, or watch with --no-record",
            )

    def _miss(self, series: Series, clean: list[Recorded], lost: Lost | None) -> None:
        """While nothing can be written: count, and keep what the next file must tell first (also of the log)."""
        for event in clean:
            series.remember(event)
        if not clean and lost is None:
            return
        since = clean[0].at if clean or lost is None else lost.since
        missed = self._lost = self._lost or Lost(since)
        missed.events += len(clean)
        if lost is not None:
            missed.events += lost.events
            missed.text += lost.text
            missed.offset = lost.offset

    def _find(self, text: str, fix: str | None) -> None:
        found = Finding(source="recorder", kind="recording", text=text, severity="warning" if fix else "info", fix=fix)
        self._say(found)
