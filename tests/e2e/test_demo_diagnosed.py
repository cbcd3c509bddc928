"""A stall diagnoses itself through the real path; keys find the useless draft, and abort a rank after two questions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuimon.config import Patience, Settings
from tuimon.headless.diagnose import on_stall
from tuimon.launch.events import Report
from tuimon.launch.view import LaunchView
from tuimon.watch.live import LiveWatch
from tuimon.watch.watching import Action

HASTY = Patience(quiet=2.0, stalled=5.0)
WITHIN = 60.0


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWatch]:
    """The silent stall, until it has diagnosed itself."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TUIMON_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    watch = LiveWatch("demo:silent-stall@0.05", Settings(patience=HASTY))
    watch.start()
    watch.wait_for(lambda view: view.report("diagnose") is not None, WITHIN)
    yield watch
    watch.stop()
    patch.undo()


def answer(watch: LiveWatch, action: Action) -> Report:
    """Ask, and wait for the report."""
    before = watch.view.report(action)

    def came(view: LaunchView) -> bool:
        return view.report(action) not in (None, before)

    watch.ask(action)
    report = watch.wait_for(came, WITHIN).report(action)
    assert report is not None
    return report


def test_the_stall_is_diagnosed_once_by_itself_and_names_the_rank(watch: LiveWatch) -> None:
    report = watch.view.report("diagnose")
    assert report is not None
    assert not report.asked
    assert "SGLang 0.5.6 on demo:silent-stall: stalled" in report.text
    assert "stacks names **TP3 (pid" in report.text
    assert "missing: draft model load" in report.text
    assert on_stall(watch) == report.saved
    assert Path(report.saved[0]).read_text() == report.text
    assert {Path(path).name for path in report.saved} == {
        "report.md", "stacks.txt", "stacks.json", "collectives.json", "kernel.json",
    }  # fmt: skip
    assert watch.view.report("diagnose") is report


def test_the_draft_of_this_launch_is_found_useless_by_its_keys(watch: LiveWatch) -> None:
    report = answer(watch, "checkpoint")
    assert "SILENTLY USELESS: sglang 0.5.6" in report.text
    assert "## silent: draft_model.*" in report.text
    assert any("SILENTLY USELESS" in finding for finding in watch.view.findings)


def test_without_nccl_or_recorders_the_reason_is_said(watch: LiveWatch) -> None:
    assert "nobody listens on port 28028" in answer(watch, "collectives").text
    assert "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in answer(watch, "flight_recorder").text
    assert "there is no debug server" in answer(watch, "debug_server").text


def test_an_abort_that_was_not_aimed_is_not_carried_out(watch: LiveWatch) -> None:
    watch.ask("abort")
    view = watch.wait_for(lambda view: any("No signal was sent" in found for found in view.findings), WITHIN)
    assert any("No signal was sent" in found for found in view.findings)
    assert view.verdict.state == "stalled"


def test_zz_the_aim_is_the_suspect_and_says_what_will_happen_and_the_signal_prints_its_stack(watch: LiveWatch) -> None:
    aim = answer(watch, "aim")
    assert aim.text.startswith("# SIGABRT to TP3 (pid ")
    assert "faulthandler is on: it prints all its Python threads into its stderr and dies" in aim.text
    assert aim.unread == ()
    said = answer(watch, "abort").text
    assert said.startswith("SIGABRT ended TP3")
    end = time.monotonic() + 10
    while time.monotonic() < end and not any("Fatal Python error: Aborted" in line for line in last_lines(watch)):
        time.sleep(0.1)
    assert any("in load_weights" in line for line in last_lines(watch))


def last_lines(watch: LiveWatch) -> list[str]:
    """The end of the log."""
    lines = watch.view.lines
    return [line.raw or line.text for line in lines.slice(max(lines.first, lines.end - 60), lines.end)]
