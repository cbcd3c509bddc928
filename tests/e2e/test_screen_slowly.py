"""What takes minutes, at the pace that is shown: three minutes of silence that is work, and a spin that is none."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.tmux import TUIMON, pane

pytestmark = pytest.mark.slow

RED = re.compile("SILENT STALL|SPINNING|FROZEN|CRASHED|FAILING")


def test_three_minutes_of_compiling_are_never_red() -> None:
    with pane([*TUIMON, "demo", "slow-compile"], (120, 40)) as screen:
        screen.wait("QUIET", 60)
        end = time.monotonic() + 180
        while time.monotonic() < end:
            assert not RED.search(screen.text()), screen.text()
            time.sleep(0.25)
        assert re.search(r"QUIET 3 m \d+ s", screen.text())
        assert "alive: compilers" in screen.text()


def test_a_spin_at_100_percent_is_red() -> None:
    with pane([*TUIMON, "demo", "collective-spin"], (120, 40)) as screen:
        text = screen.wait("SPINNING", 75)
        assert "suspect: TP5" in text
        assert re.search(r"0 TP0 .* 100 %|100 %", text)
