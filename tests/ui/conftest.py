"""The app on views that the test cranks by hand; no timer, no network, the clock is the view's."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.ui.…


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """UTC, no user's themes, colours on, whatever the machine says."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
