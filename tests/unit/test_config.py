"""Settings come from a file, then TUIMON_* variables, then flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon import config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_without_any_source_the_defaults_hold(file: Path) -> None:
    assert config.load({}, {}, file) == config.Settings()


def test_flags_win_over_variables_and_variables_over_the_file(file: Path) -> None:
    file.write_text('port = 1\nlog = "/from/file"\nengine = "vllm"\n')
    settings = config.load({"port": 3, "log": None}, {"TUIMON_PORT": "2", "TUIMON_LOG": "/from/variable"}, file)
    assert (settings.port, settings.log, settings.engine) == (3, "/from/variable", "vllm")


def test_patience_is_a_table_of_the_file(file: Path) -> None:
    file.write_text("[patience]\nquiet = 5\n")
    assert config.load({}, {}, file).patience == config.Patience(quiet=5, stalled=20, blind=60)


@pytest.mark.parametrize(
    ("text", "names"),
    [("prot = 1\n", "prot"), ('port = "many"\n', "port"), ("[patience]\nquite = 5\n", "quite")],
)
def test_what_cannot_be_used_is_named_with_its_source(file: Path, text: str, names: str) -> None:
    file.write_text(text)
    with pytest.raises(config.BadSettings) as caught:
        config.load({}, {}, file)
    assert names in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("broken", [b"port = = 1", b"\xff\xfe"])
def test_a_broken_file_is_a_sentence_with_its_path(file: Path, broken: bytes) -> None:
    file.write_bytes(broken)
    with pytest.raises(config.BadSettings, match="cannot be read"):
        config.load({}, {}, file)


def test_reading_settings_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    config.load({}, {})
    assert config.state_dir() == tmp_path / "state"
    assert list(tmp_path.iterdir()) == []
