"""A watch reads logs with the user's grammars too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.config import Patience
from tuimon.engines import grammar
from tuimon.launch.events import LogText, ServerFound
from tuimon.watch.later import Later

MINE = r"""
engine = "sglang"
[[rule]]
name = "my_milestone"
match = "^Warming the coffee"
sample = "[2026-03-04 10:15:02] Warming the coffee"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(grammar, "_in_use", [])
    (tmp_path / "grammars").mkdir()
    return tmp_path / "grammars"


def test_a_rule_of_the_users_own_is_used(folder: Path) -> None:
    (folder / "mine.toml").write_text(MINE)
    later = Later("gpu-17", Patience())
    later.apply(ServerFound(at=0.5, pid=7, engine="sglang", log="/server.log"))
    text = b"[2026-03-04 10:15:01] server_args=ServerArgs(tp_size=1)\n[2026-03-04 10:15:02] Warming the coffee\n"
    later.apply(LogText(at=1.0, offset=0, text=text))
    lines = later.snapshot(4.5).lines  # text waits 2 s for a first sample, which would tell its age
    assert [line.rule for line in lines.slice(lines.first, lines.end)][-1] == "my_milestone"


def test_a_bad_grammar_is_said_with_its_file_and_the_rest_works(folder: Path) -> None:
    (folder / "bad.toml").write_text("engine = [\n")
    later = Later("gpu-17", Patience())
    later.apply(LogText(at=1.0, offset=0, text=b"hello\n"))
    (finding,) = later.snapshot(2.0).findings
    assert "bad.toml" in finding
