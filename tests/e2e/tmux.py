"""A terminal that can be read back: tmux on a socket of its own, without the user's configuration."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

TUIMON = (sys.executable, "-m", "tuimon")
BACKGROUND = re.compile(r"\x1b\[[0-9;]*48;2;(\d+);(\d+);(\d+)m")


class Pane:
    """One program in a terminal of a given size."""

    def __init__(self, argv: Sequence[str], size: tuple[int, int], env: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tuimon-tmux-"))  # short: a socket's path has 108 bytes
        self.began = time.monotonic()
        width, height = size
        set_env = [f"{name}={value}" for name, value in {"COLORTERM": "truecolor", **env}.items()]
        # What a dead program said last stays on the screen.
        self._tmux(
            *("new-session", "-d", "-x", str(width), "-y", str(height), "env", *set_env, *argv),
            *(";", "set", "-g", "remain-on-exit", "on", ";", "set", "-g", "status", "off"),
        )

    @property
    def pid(self) -> int:
        """The program's."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    @property
    def title(self) -> str:
        """What the terminal's title says."""
        return self._tmux("display-message", "-p", "#{pane_title}").strip()

    def text(self) -> str:
        """The screen, as a reader sees it."""
        return self._tmux("capture-pane", "-p")

    def background(self, words: str) -> tuple[int, int, int] | None:
        """The colour behind these words; None where they are not on the screen."""
        drawn = self._tmux("capture-pane", "-p", "-e")
        if (place := drawn.find(words)) < 0:
            return None
        red, green, blue = BACKGROUND.findall(drawn[:place])[-1]
        return int(red), int(green), int(blue)

    def press(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait(self, wanted: str | Callable[[str], bool], seconds: float) -> str:
        """The screen as soon as it shows what is wanted; fails with the last screen."""
        end = time.monotonic() + seconds
        while True:
            text = self.text()
            if wanted in text if isinstance(wanted, str) else wanted(text):
                return text
            assert time.monotonic() < end, f"not within {seconds:g} s: {wanted}\n{text}"
            time.sleep(0.1)

    def close(self) -> None:
        """End tmux, and with it the terminal."""
        subprocess.run(["tmux", "-S", str(self._folder / "s"), "kill-server"], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tmux(self, *words: str) -> str:
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            ["tmux", "-S", str(self._folder / "s"), "-f", "/dev/null", "-u", *words],
            capture_output=True, text=True, env=env, check=True,
        )  # fmt: skip
        return done.stdout


@contextmanager
def pane(argv: Sequence[str], size: tuple[int, int] = (120, 40), **env: str) -> Iterator[Pane]:
    """A program in tmux; the terminal is closed at the end."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine")
    opened = Pane(argv, size, env)
    try:
        yield opened
    finally:
        opened.close()
