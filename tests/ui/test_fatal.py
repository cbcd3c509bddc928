"""What is said of an error of our own that quotes a host's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.ui.fatal import sentence

HOSTILE = "no rank \x1b]52;c;aGk=\x07 in \x1b[2J\u202e"
"""Writes the clipboard, clears the screen, turns the direction of what follows."""


def test_a_hosts_words_in_an_error_are_no_escape_codes_for_the_terminal_nor_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path))
    said = sentence(ValueError(HOSTILE))
    assert "ValueError: no rank" in said
    assert said.isprintable()
    (details,) = (tmp_path / "errors").iterdir()
    written = details.read_text()
    assert "no rank" in written
    assert all(line.isprintable() for line in written.splitlines())
