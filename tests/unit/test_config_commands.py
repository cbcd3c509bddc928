"""`tuimon config` says where settings are, what holds and what is wrong, each with file and line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tuimon.cli import cli
from tuimon.config import Settings, load
from tuimon.configfile import mistakes
from tuimon.diagnose.rungs import RUNGS
from tuimon.ui.actions import ACTIONS, harmless, read_only

FILE = """\
theme = "night-train"
intervall = 2
port = "many"

[patience]
quite = 5

[keys]
stacks = "x"
stakcs = "y"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUIMON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["config", *words])


def test_each_mistake_names_its_line_and_what_was_probably_meant(folder: Path) -> None:
    file = folder / "config.toml"
    wrong = mistakes(FILE, file, Settings, [action.id for action in ACTIONS])
    assert wrong == (
        f'{file}:2: unknown setting "intervall", did you mean "interval"?',
        f"{file}:3: port: Expected `int | null`, got `str`",
        f'{file}:6: unknown setting "quite", did you mean "quiet"?',
        f'{file}:10: unknown action "stakcs", did you mean "stacks"?',
    )


def test_check_says_all_of_it_and_ends_with_2(folder: Path) -> None:
    (folder / "config.toml").write_text(FILE)
    done = run("check")
    assert done.exit_code == 2
    assert done.stderr.count("config.toml:") == 4


def test_check_is_content_with_no_file_and_with_a_good_one(folder: Path) -> None:
    assert "the defaults hold" in run("check").stdout
    (folder / "config.toml").write_text('theme = "night-train"\n[keys]\nstacks = "x"\n')
    done = run("check")
    assert (done.exit_code, "is fine" in done.stdout) == (0, True)


@pytest.mark.parametrize("hostile", [b"\xff\xfe", b"a = = 1", b"[patience\n"])
def test_check_survives_what_is_no_settings_file(folder: Path, hostile: bytes) -> None:
    (folder / "config.toml").write_bytes(hostile)
    done = run("check")
    assert done.exit_code == 2
    assert "config.toml" in done.stderr


def test_show_is_toml_that_means_the_same_and_names_sources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.toml").write_text('theme = "night-train"\n[keys]\nstacks = "x,ctrl+x"\n')
    monkeypatch.setenv("TUIMON_PORT", "30001")
    shown = run("show").stdout
    assert 'theme = "night-train"  # ' + str(folder / "config.toml") in shown
    assert "port = 30001  # TUIMON_PORT" in shown
    assert "# log = …  # not set" in shown
    monkeypatch.delenv("TUIMON_PORT")
    before = load({"port": 30001})
    assert not mistakes(shown, folder / "shown.toml", Settings)
    (folder / "config.toml").write_text(shown)
    assert load({}) == before
    assert tomllib.loads(shown)["keys"] == {"stacks": "x,ctrl+x"}


def test_path_names_every_place_and_says_what_is_not_there(folder: Path) -> None:
    (folder / "themes").mkdir()
    shown = run("path").stdout.splitlines()
    assert f"themes    {folder / 'themes'}" in shown
    assert f"settings  {folder / 'config.toml'}  (not there)" in shown


def test_read_only_takes_away_what_the_ladder_asks_about_and_nothing_else() -> None:
    asks = {rung.action for rung in RUNGS if rung.asks}
    assert {action.id for action in ACTIONS if action.touches} == asks
    assert {action.id for action in harmless(ACTIONS) if action.why is read_only} == asks


def test_mistakes_in_keys_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    names = [f"nothing{number}" for number in range(8)]
    text = "[keys]\n" + "".join(f'{name} = "x"\n' for name in names)
    told = mistakes(text, tmp_path / "config.toml", Settings, ("stacks", "quit"))
    assert [words.split('"')[1] for words in told] == names
