"""A watch on a scripted host, stopped after each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests import each other as tests.watch.…

from tests.watch.scripted import Watched
from tuimon.config import Settings


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path / "config"))


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched(Settings())
    yield watched
    watched.watch.stop()
    assert not watched.watch._thread.is_alive()
