"""A watching and its recorder, joined."""

from __future__ import annotations

from tuimon.config import Settings, state_dir
from tuimon.recording.recorder import Recorder
from tuimon.recording.shelf import Limits
from tuimon.watch.live import LiveWatch

GB = 1_000_000_000


def record(watching: LiveWatch, host: str, settings: Settings, writers: int = 1) -> Recorder | None:
    """Record every event of `watching` from now on, if that is wanted; the caller stops the recorder, last.

    writers: how many watches are recorded at once.
    """
    if not settings.record:
        return None
    limits = Limits(int(settings.record_gb * GB), settings.record_days, writers)
    folder = state_dir() / "recordings"
    recorder = Recorder(folder, host, limits, say=watching.post, view=lambda: watching.view)
    watching.on_event(recorder.take)
    recorder.start()
    return recorder
