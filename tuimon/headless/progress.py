"""What `tuimon wait` says while it waits: one line that is redrawn on a terminal, plain lines on change elsewhere."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from tuimon.headless.plain import plain, say
from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView, PhaseView

ERASE = "\r\x1b[K"


class Progress:
    """Writes to `stream`, which is stderr: stdout belongs to the answer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redraws = stream.isatty()
        self._shown: object = None
        self._said = ""

    def show(self, view: LaunchView, waited: float) -> None:
        """Say where the launch is."""
        if self._redraws:
            width = max(20, shutil.get_terminal_size().columns) - 1
            text = plain(f"{words(view)} · waiting {age(waited)}", width)
            if text != self._shown:
                self._shown = text
                self._send(ERASE + text)
            return
        step, text = _step(view), words(view)
        if step != self._shown and text != self._said:
            self._said = text
            say(plain(f"[{age(waited)}] {text}"), self._stream)
        self._shown = step

    def tell(self, text: str) -> None:
        """A line that stays."""
        if self._redraws and self._shown is not None:
            self._send(ERASE)
            self._shown = None
        for line in text.splitlines():
            say(plain(line, 1000), self._stream)

    def alert(self, sequence: str) -> None:
        """A bell or a notification."""
        self._send(sequence)

    def close(self) -> None:
        """Leave no half line behind."""
        if self._redraws and self._shown is not None:
            self._send(ERASE)
            self._shown = None

    def _send(self, text: str) -> None:
        try:
            self._stream.write(text.encode(self._stream.encoding or "utf-8", "replace").decode())
            self._stream.flush()
        except (OSError, UnicodeDecodeError):  # the terminal went away; the exit code still tells
            return


def words(view: LaunchView) -> str:
    """`gpu-17: starting: weights 43 % (28/64), ETA 12 s`."""
    if view.broken:
        return f"{view.host}: tuimon's own error: {view.broken}"
    if view.link.state == "connecting":
        return f"{view.host}: connecting"
    if view.link.state != "up":
        return f"{view.host}: unreachable: {view.link.reason or 'no link'}"
    verdict, phase = view.verdict, running(view)
    if verdict.state == "starting" and phase is not None:
        return f"{view.host}: starting: {phase_words(phase)}"
    return f"{view.host}: {verdict.state}: {verdict.headline}"


def phase_words(phase: PhaseView) -> str:
    """A phase with how far it is."""
    share = f" {phase.count / phase.total:.0%} ({phase.count:g}/{phase.total:g})" if phase.count and phase.total else ""
    eta = f", ETA {age(phase.eta)}" if phase.eta is not None else ""
    return f"{phase.name}{share.replace('%', ' %')}{eta}" + (f", {phase.note}" if phase.note else "")


def running(view: LaunchView) -> PhaseView | None:
    """The phase that runs now."""
    return next((phase for phase in reversed(view.phases) if phase.state == "running"), None)


def _step(view: LaunchView) -> tuple[object, ...]:
    """What must differ for another line: the verdict, the phase, each tenth of a bar; not ages."""
    phase = running(view)
    tenth = int(10 * phase.count / phase.total) if phase is not None and phase.count and phase.total else None
    verdict = view.verdict
    reason = view.link.reason if view.link.state != "up" else None
    return (view.link.state, reason, view.broken, verdict.state, verdict.kind, phase.name if phase else None, tenth)


class Silent(Progress):
    """Says nothing: for callers whose answer is all that they are shown."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def show(self, view: LaunchView, waited: float) -> None:
        """Nothing."""

    def tell(self, text: str) -> None:
        """Nothing."""
