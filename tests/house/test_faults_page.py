"""docs/FAULTS.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "FAULTS.md").read_text()))
    there = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in there} == set()
