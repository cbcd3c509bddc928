"""`--dry-run` and docs/REMOTE.md name every command that is really sent."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tuimon.cli import cli
from tuimon.config import Settings
from tuimon.headless.dry_run import ALL
from tuimon.launch.events import AnyEvent, CommandRun
from tuimon.watch.announced import shown
from tuimon.watch.live import LiveWatch

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "REMOTE.md").read_text()


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: sent.name)
def test_every_command_has_its_row_on_the_page(sent: object) -> None:
    assert f"| {sent.name} |" in PAGE  # type: ignore[attr-defined]  # a Sent


def test_nothing_else_is_sent_to_a_host() -> None:
    events: list[AnyEvent] = []
    watch = LiveWatch("demo:healthy", Settings())
    watch.on_event(events.append)
    watch.start()
    try:
        assert watch.wait_for(lambda view: bool(view.processes), 15).processes
        for action in ("stacks", "collectives", "diagnose"):
            before = len(_commands(events))
            watch.ask(action)
            deadline = time.monotonic() + 15
            while len(_commands(events)) == before and time.monotonic() < deadline:
                time.sleep(0.05)
    finally:
        watch.stop()
    known = {shown(sent.argv) for sent in ALL}
    sent = [command for command in _commands(events) if not command.startswith(("follow /", "write "))]
    assert len(sent) >= 3
    assert {command for command in sent if command not in known} == set()


def _commands(events: list[AnyEvent]) -> list[str]:
    return [event.command for event in list(events) if isinstance(event, CommandRun)]


def test_a_dry_run_connects_to_nothing_and_shows_the_way_in() -> None:
    done = CliRunner().invoke(cli, ["gpu-17.invalid/docker:vllm", "--dry-run"])
    assert done.exit_code == 0
    assert 'docker exec -i vllm python3 -I -S -u -c \'"tuimon-probe"' in done.output
    assert "nothing was" in done.output
