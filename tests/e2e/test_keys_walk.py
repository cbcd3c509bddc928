"""Every key of the table, pressed in a terminal on a launch that serves: each does what its help says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.tmux import TUIMON, Pane, pane
from tuimon.ui.actions import ACTIONS

Seen = str | Callable[[str], bool]


def without(*words: str) -> Callable[[str], bool]:
    """The screen shows none of these."""
    return lambda text: not any(word in text for word in words)


def only(name: str) -> Callable[[str], bool]:
    """This pane has the whole screen."""
    return lambda text: f"╭─ {name}" in text and text.count("╭─ ") == 1


def footer(words: str) -> Callable[[str], bool]:
    """The last line says this."""
    return lambda text: words in text.rstrip().splitlines()[-1]


def still(text: str) -> bool:
    """The log does not follow."""
    return "following" not in text and bool(re.search(r"held still|new lines", text))


BOARD = "╭─ Signs of life"
HELD: tuple[tuple[str, str, Seen], ...] = (
    ("stacks", "s", lambda text: "╭─ " in text and "ranks" in text and "group" in text),
    ("back", "Escape", BOARD),
    ("diagnose", "d", "╭─ Diagnosis"),
    ("collectives", "c", "╭─ Collectives"),
    ("checkpoint", "p", "╭─ Draft model"),
    ("flight_recorder", "R", "flight-recorder dump"),
    ("debug_server", "D", "torch's debug server, if it is up"),
    ("native", "S", "stops each rank for 0.1 s"),
    ("abort", "a", "KILLS THE SERVER"),
    ("back", "Escape", BOARD),
    ("launches", "o", footer("only one launch was found on this host")),
    ("findings", "i", "╭─ Findings"),
    ("commands", "@", "╭─ Commands sent to the host"),
    ("help", "?", "╭─ Help"),
    ("page_down", "PageDown", without("Ask the host")),
    ("page_up", "PageUp", "Ask the host"),
    ("end", "G", "in a sparkline"),
    ("top", "g", "Ask the host"),
    ("down", "j", without("Ask the host")),
    ("up", "k", "Ask the host"),
    ("search", "/", "show only keys with this"),
    ("back", "Escape", without("show only keys with this")),
    ("help", "?", BOARD),
)
"""Keys of screens: (action, as tmux names the key, what is seen then)."""
LOG: tuple[tuple[str, str, Seen], ...] = (
    ("follow", "f", still),
    ("end", "G", "following"),
    ("top", "g", still),
    ("next_milestone", "m", still),
    ("previous_milestone", "M", still),
    ("next_error", "e", footer("no error line below")),
    ("previous_error", "E", footer("no error line above")),
    ("next_warning", "b", lambda text: footer("no warning or error below")(text) or "▲" in text or "✖" in text),
    ("previous_warning", "B", lambda text: footer("no warning or error above")(text) or "▲" in text or "✖" in text),
    ("next", "n", footer("no search yet: / begins one")),
    ("previous", "N", footer("no search yet: / begins one")),
    ("lens", "l", "· key lines"),
    ("lens", "l", without("· key lines")),
    ("top", "g", lambda text: bool(re.search(r"│ ◆ \d\d:\d\d:\d\d", text))),
    ("times", "t", lambda text: not re.search(r"│ ◆ \d\d:\d\d:\d\d", text)),
    ("times", "t", lambda text: bool(re.search(r"│ ◆ \d\d:\d\d:\d\d", text))),
    ("top", "g", "…"),
    ("wrap", "w", without("tp_s…")),
    ("wrap", "w", still),
    ("copy", "y", footer("in tmux this needs")),
    ("save", "C-s", footer("saved: ")),
    ("end", "G", "following"),
)
PANES: tuple[tuple[str, str, Seen], ...] = (
    ("pane_3", "3", only("Log growth")),
    ("back", "Escape", BOARD),
    ("pane_5", "5", only("Processes")),
    ("back", "Escape", BOARD),
    ("pane_6", "6", only("Health")),
    ("pane_4", "4", only("Signs of life")),
    ("back", "Escape", "╭─ Launch"),
    ("pane_2", "2", "╭─ Launch"),
    ("zoom", "z", only("GPUs")),
    ("pane_1", "1", only("Launch")),
    ("next_pane", "Tab", only("GPUs")),
    ("previous_pane", "BTab", only("Launch")),
    ("pane_7", "7", only("Log")),
    ("zoom", "z", BOARD),
    ("pause", "Space", footer("PAUSED")),
    ("pause", "Space", without("PAUSED")),
    ("palette", ":", "Search for commands"),
    ("back", "Escape", BOARD),
)


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pane]:
    state = str(tmp_path_factory.mktemp("state"))
    with pane([*TUIMON, "demo:useless-draft@0.1"], (80, 24), TUIMON_STATE_DIR=state) as opened:
        opened.wait("accept length 1.0", 40)
        yield opened


def typed(screen: Pane, key: str, words: str, seen: Seen) -> None:
    """Open the prompt, type, Enter."""
    screen.press(key)
    screen.wait("Enter goes", 3)
    screen.press("-l", words)
    screen.press("Enter")
    screen.wait(without("Enter goes"), 3)  # a key pressed before would be typed
    screen.wait(seen, 3)


def test_each_key_of_the_table_does_what_its_help_says(screen: Pane) -> None:
    done = {action for part in (HELD, LOG, PANES) for action, _, _ in part} | {"search", "filter", "time", "quit"}
    assert done == {action.id for action in ACTIONS}
    for part in (HELD, LOG, PANES):
        for action, key, seen in part:
            try:
                screen.press(key)
                screen.wait(seen, 12)
            except AssertionError as error:
                raise AssertionError(f"{action} ({key}): {error}") from error
    typed(screen, "/", "Load weight end", still)
    screen.press("n")
    screen.wait("Load weight end", 3)
    screen.press("N")
    screen.wait("Load weight end", 3)
    typed(screen, "&", "weight", "· only weight")
    typed(screen, "&", "", without("only weight"))
    clock = re.search(r"(\d\d:\d\d:\d\d) TP", screen.text())
    assert clock is not None
    typed(screen, "T", clock[1], still)
    typed(screen, "T", "23:59:59", lambda text: "at '23:59:59' or later" in text or still(text))
    screen.press("q")
    screen.wait(lambda _text: screen.ended, 5)
