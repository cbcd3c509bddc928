"""A silent stall as people see it: the demo at two sizes, a launch behind a real sshd, and a watch that began too late.

All at once: each takes twenty seconds of silence to turn red.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.e2e.…

from tests.e2e.launched import below, launched, wait_for_end
from tests.e2e.tmux import TUIMON, Pane, pane
from tests.ssh.conftest import start_sshd

DEMO = "demo:silent-stall@0.2"
DEMO_TROUBLE_S = 6.3
FAST = "0.05"
"""The trouble of a launch at this pace begins after 1.6 s."""
OLD = 300.0
"""Seconds for which the log had been silent when the late watch began."""
RED = (179, 32, 44)
WITHIN = 30.0


class Scene(Struct):
    """One screen, and when it showed what; seconds since it was opened."""

    pane: Pane
    first_data: float | None = None
    red: float | None = None
    text: str = ""
    """When it turned red."""

    def look(self) -> None:
        """Note what is new."""
        if self.red is not None:
            return
        self.text = self.pane.text()
        now = time.monotonic() - self.pane.began
        if self.first_data is None and re.search(r"data ●", self.text):
            self.first_data = now
        if "SILENT STALL" in self.text:
            self.red = now


class Scenes(Struct):
    """All of them."""

    demo: Scene
    small: Scene
    sshd: Scene
    late: Scene
    check: dict[str, Any]
    check_exit: int
    demo_pids: list[int]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenes]:
    state = {"TUIMON_STATE_DIR": str(tmp_path_factory.mktemp("state"))}
    with ExitStack() as stack:
        late = stack.enter_context(launched("silent-stall", FAST))
        big = Scene(stack.enter_context(pane([*TUIMON, DEMO], (120, 40), **state)))
        small = Scene(stack.enter_context(pane([*TUIMON, DEMO], (80, 24), **state)))
        new = stack.enter_context(launched("silent-stall", FAST))
        folder = tmp_path_factory.mktemp("sshd")
        sshd = start_sshd(folder, "SetEnv " + " ".join(f"{name}={value}" for name, value in new.environ.items()))
        stack.callback(sshd.close)
        sshd.trust()
        home = {"HOME": str(sshd.home), "SSH_AUTH_SOCK": ""}
        (sshd.home / ".ssh" / "config").write_text(f"Host gpu-17\n HostName 127.0.0.1\n Port {sshd.port}\n")
        over = Scene(stack.enter_context(pane([*TUIMON, f"{sshd.user}@gpu-17"], (120, 40), **state, **home)))
        wait_for_silence(late.log)
        ago = time.time() - OLD
        os.utime(late.log, (ago, ago))
        began_late = Scene(stack.enter_context(pane([*TUIMON, "localhost"], (120, 40), **late.environ, **state)))
        check = subprocess.Popen(
            [*TUIMON, "check", sshd.name, "--json", "--for", "50s"],
            env={**os.environ, **state, **home}, stdout=subprocess.PIPE,
        )  # fmt: skip
        seen = (big, small, over, began_late)
        end = time.monotonic() + 45
        while any(scene.red is None for scene in seen) and time.monotonic() < end:
            for scene in seen:
                scene.look()
            time.sleep(0.1)
        told, _ = check.communicate(timeout=60)
        yield Scenes(*seen, json.loads(told), check.returncode, below(big.pane.pid))


def wait_for_silence(log: Path) -> None:
    """Wait until the launch hangs."""
    end = time.monotonic() + 15
    while log.read_text().count("Capture cuda graph end") < 8 or time.time() - log.stat().st_mtime < 1.5:
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.1)


def shown_age(text: str) -> float:
    """The age that the red banner shows, seconds."""
    found = re.search(r"SILENT STALL +(?:(\d+) m )?(\d+) s", text)
    assert found, text
    return 60.0 * int(found[1] or 0) + int(found[2])


def test_the_demo_turns_red_in_time_and_says_phase_age_and_what_never_came(scenes: Scenes) -> None:
    scene = scenes.demo
    assert scene.red is not None, scene.text
    assert DEMO_TROUBLE_S < scene.red < DEMO_TROUBLE_S + WITHIN
    assert scene.pane.background("SILENT STALL") == RED
    assert "after “CUDA graphs”" in scene.text
    assert 15 < shown_age(scene.text) < WITHIN
    assert "draft model load: expected (speculative_algorithm=EAGLE3), not seen" in scene.text
    assert "suspect: TP3" in scene.text
    assert scene.pane.title.startswith("✖ STALLED")


def test_a_small_screen_says_the_same_in_two_lines(scenes: Scenes) -> None:
    scene = scenes.small
    assert scene.red is not None, scene.text
    assert scene.red < DEMO_TROUBLE_S + WITHIN
    banner = "\n".join(scene.text.splitlines()[1:3])
    for words in ("SILENT STALL", "after “CUDA graphs”", "suspect TP3", "draft model load: expected, not seen"):
        assert words in banner
    assert max(map(len, scene.text.splitlines())) <= 80


def test_a_real_sshd_shows_the_same(scenes: Scenes) -> None:
    scene = scenes.sshd
    assert scene.red is not None, scene.text
    assert scene.first_data is not None
    assert scene.red - scene.first_data < WITHIN
    assert "suspect: TP3" in scene.text
    assert "draft model load: expected (speculative_algorithm=EAGLE3), not seen" in scene.text
    assert "gpu-17 · SGLang" in scene.text
    assert "H20" in scene.text


def test_check_over_a_real_sshd_ends_with_3_and_names_the_rank(scenes: Scenes) -> None:
    verdict = scenes.check["verdict"]
    assert (scenes.check_exit, verdict["state"], verdict["phase"]) == (3, "stalled", "CUDA graphs")
    assert [suspect["rank"] for suspect in verdict["suspects"]] == ["TP3"]
    assert verdict["missing"][0]["milestone"] == "draft model load"
    assert scenes.check["observed_s"] < WITHIN + 10


def test_a_watch_that_began_too_late_takes_the_age_of_the_silence_from_the_log_itself(scenes: Scenes) -> None:
    scene = scenes.late
    assert scene.red is not None, scene.text
    assert scene.first_data is not None
    assert scene.red - scene.first_data < WITHIN
    assert OLD + scene.red - 2 < shown_age(scene.text) < OLD + scene.red + 8
    assert "suspect: TP3" in scene.text


@pytest.mark.parametrize("which", ["demo", "small", "sshd"])
def test_s_shows_two_groups_and_the_odd_rank(scenes: Scenes, which: str) -> None:
    scene: Scene = getattr(scenes, which)
    scene.pane.press("s")
    text = scene.pane.wait("2 groups", 15)
    assert "8 ranks" in text
    assert re.search(r"TP3 .*the odd one out", text)
    assert re.search(r"TP\[0-2,4-7\]", text)
    scene.pane.press("Escape")
    scene.pane.wait("Signs of life", 5)


def test_q_ends_it_and_no_process_of_the_demo_is_left(scenes: Scenes) -> None:
    scene = scenes.demo
    assert len(scenes.demo_pids) > 10
    scene.pane.press("q")
    wait_for_end(scenes.demo_pids, 6)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    folder = re.search(r"/tmp/tuimon-demo-\w+", scene.text)
    assert folder
    assert folder[0] not in listed
    assert not Path(folder[0]).exists()
