"""What the README says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tuimon.cli import cli
from tuimon.ui.actions import NODES, key_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    found = re.search(rf"<!-- {mark} -->\n```\n(.*?)\n```", README, re.DOTALL)
    assert found, f"no block after the mark {mark}"
    return found[1]


def test_the_keys_are_those_of_the_table_of_actions() -> None:
    assert key_table().strip() in README
    assert key_table(NODES).strip() in README


def test_every_command_is_listed_and_every_listed_command_exists() -> None:
    table = README[README.index("| command |") : README.index("### Keys")]
    listed = set(re.findall(r"`tuimon (\w+)", table))
    assert listed - {"HOST"} == set(cli.commands) - {"watch"}


def test_each_of_the_two_commands_sets_everything_up_on_one_line() -> None:
    demo, tests = block("demo"), block("tests")
    assert "\n" not in demo + tests
    assert demo.startswith("python3 -m venv .venv && ")
    assert demo.endswith("tuimon demo")
    assert tests.startswith("python3 -m venv .venv && ")
    assert "pytest" in tests.rpartition("&&")[2]


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(("mark", "golden"), [("screen", "stall-120x40"), ("nodes", "nodes-16-120x30")])
def test_a_screen_in_the_readme_is_one_of_the_tested_ones(mark: str, golden: str) -> None:
    shown = block(mark)
    text = (ROOT / "tests" / "ui" / "goldens" / f"{golden}.txt").read_text(encoding="utf-8")
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in text.splitlines()]
