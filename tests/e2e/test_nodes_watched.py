"""Two demo hosts in one terminal: one of them hangs, the other serves. What the overview says, and its keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.launched import below, wait_for_end
from tests.e2e.tmux import TUIMON, Pane, pane

HANGS, SERVES = "demo:silent-stall@0.2", "demo:healthy@0.2"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def screen(state: Path) -> Iterator[Pane]:
    keep = state / "keep"
    keep.write_text(f"#!/bin/sh\ncat >> {state}/changes\n")
    keep.chmod(0o755)
    argv = [*TUIMON, SERVES, HANGS, "--on-change", str(keep)]
    with pane(argv, (120, 40), TUIMON_STATE_DIR=str(state)) as opened:
        yield opened


def test_the_overview_turns_red_for_the_node_that_hangs_and_leads_to_its_board(screen: Pane, state: Path) -> None:
    screen.wait("link ● 2/2  process ● 2/2  data ● 2/2", 15)
    text = screen.wait(lambda text: "✖ SILENT STALL" in text and "✔ SERVING" in text, 45)
    assert "after “CUDA graphs”: nothing alive" in text
    assert "suspect: demo:silent-stall TP3" in text
    assert text.index("● demo:silent-stall") < text.index("● demo:healthy")  # the silent one stands first
    assert screen.title.startswith("✖ STALLED")
    assert "demo:silent-stall, 2 hosts" in screen.title
    screen.press("Enter")
    screen.wait(lambda text: text.startswith(" demo:silent-stall ·") and "╭─ Signs of life" in text, 5)
    screen.press("]")
    screen.wait(lambda text: text.startswith(" demo:healthy ·") and "✔ READY" in text, 5)
    screen.press("Escape")
    screen.wait("▸ ● demo:healthy", 5)
    screen.press("k")
    screen.wait("▸ ● demo:silent-stall", 5)
    screen.press("s")
    text = screen.wait("2 groups", 15)
    assert text.startswith(" demo:silent-stall ·")
    screen.press("Escape")
    screen.wait("╭─ Nodes", 5)
    told = state / "changes"
    screen.wait(lambda _text: '"to": "stalled"' in told.read_text(), 5)  # a change must last before it is told
    changes = [json.loads(line) for line in told.read_text().splitlines()]
    assert [change["change"]["to"] for change in changes].count("stalled") == 1
    assert changes[-1]["node"] == HANGS
    assert {one["host"] for one in changes[-1]["nodes"]} == {HANGS, SERVES}


def test_q_ends_both_launches_and_leaves_a_recording_of_each(screen: Pane, state: Path) -> None:
    pids = below(screen.pid)
    assert len(pids) > 20
    screen.press("q")
    wait_for_end(pids, 8)
    names = sorted(path.name.split("_")[0] for path in (state / "recordings").glob("*.tuimon"))
    assert [name[:11] for name in names] == ["demo-health", "demo-silent"]
