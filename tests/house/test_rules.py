"""The rules of the house, run by the same command as the tests: lint, format, types, walls, sizes and names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SOURCES = sorted(
    path
    for folder in ("tuimon", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if "data" not in path.parts
)
MAX_FILE = 400
MAX_FUNCTION = 40
STAND_INS = ROOT / "tuimon" / "demo" / "program"
"""Carries SGLang's and torch's own names, so that py-spy shows what it would show of the real ones."""
BANNED_NAMES = {"util", "utils", "helper", "helpers", "misc", "common", "manager", "managers"}


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_tool_finds_nothing(command: tuple[str, ...]) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_no_file_is_longer_than_one_idea() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in SOURCES
        if (count := len(path.read_text().splitlines())) > MAX_FILE
    }
    assert not long


def test_no_function_is_longer_than_a_screen() -> None:
    long = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} {lines}")
    assert not long


def test_every_name_explains_something() -> None:
    ours = [path for path in SOURCES if STAND_INS not in path.parents]
    assert not [path for path in ours if path.stem in BANNED_NAMES or path.parent.name in BANNED_NAMES]
