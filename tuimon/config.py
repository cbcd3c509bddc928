"""Settings: one TOML file, then TUIMON_* variables, then flags. Frozen once read; nothing here creates a folder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import platformdirs
from msgspec import Struct

from tuimon.configfile import mistakes
from tuimon.errors import TuimonError


class BadSettings(TuimonError):
    """The settings cannot be used; names the file or variable, the key and what is allowed."""

    exit_code = 2


class Patience(Struct, frozen=True, forbid_unknown_fields=True):
    """How long silence is borne, seconds."""

    quiet: float = 10.0
    """Amber after this long without any sign of life."""
    stalled: float = 20.0
    """Red after this long, if the stacks did not move either."""
    blind: float = 60.0
    """Red where neither the log nor the host's counters can be read."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a user can set."""

    log: str | None = None
    """Path of the log on the host, instead of the one found."""
    port: int | None = None
    """The server's port, instead of the one found."""
    pid: int | None = None
    """The server's pid, instead of the one found."""
    engine: str | None = None
    """sglang, vllm, trtllm, llamacpp, torchrun."""
    api_key_env: str | None = None
    """Name of a local environment variable that holds the server's API key; sent to the host over stdin only."""
    ssh_command: str | None = None
    """`ssh`, or a wrapper called like it: used for every host instead of the built-in client."""
    theme: str = "tuimon-dark"
    interval: float = 1.0
    """Seconds between samples."""
    auto_diagnose: bool = True
    """Look at the stacks by itself when a launch has gone quiet, and diagnose a stall once."""
    bell: bool = True
    """Ring the terminal's bell when a launch is in trouble, ready or done."""
    notify: Literal["auto", "osc9", "osc777", "off"] = "auto"
    """Notify through the terminal; auto chooses the sequence that it knows."""
    on_change: str | None = None
    """Command to run when the verdict changes, with the evidence as JSON on its stdin; not given to a shell."""
    history: bool = True
    """Remember launches, to say what takes longer than usual."""
    record: bool = True
    """Record what is watched, for `tuimon replay`."""
    record_gb: float = 2.0
    """All recordings together; the oldest go first."""
    record_days: float = 30.0
    """Recordings older than this go."""
    read_only: bool = False
    """Take away every key that touches the server: dumps that its ranks write, native stacks, signals."""
    patience: Patience = Patience()
    keys: dict[str, str] = {}
    """Action id → keys, separated by commas."""


def config_dir() -> Path:
    """Where settings, themes and grammars of the user live."""
    return Path(os.environ.get("TUIMON_CONFIG_DIR") or platformdirs.user_config_dir("tuimon"))


def state_dir() -> Path:
    """Where stacks, reports, recordings and history are kept."""
    return Path(os.environ.get("TUIMON_STATE_DIR") or platformdirs.user_state_dir("tuimon"))


def load(flags: Mapping[str, object], environ: Mapping[str, str] | None = None, path: Path | None = None) -> Settings:
    """Merge file, environment and flags (None = not given). Raises BadSettings."""
    environ = os.environ if environ is None else environ
    path = path or config_dir() / "config.toml"
    values = read_values(path)
    source = str(path)
    fields = {field.name: field for field in msgspec.structs.fields(Settings)}
    for name in fields:
        text = environ.get(f"TUIMON_{name.upper()}")
        if text is not None and name not in {"patience", "keys"}:
            values[name] = text
            source = f"{source} or TUIMON_{name.upper()}"
    values.update({name: value for name, value in flags.items() if value is not None})
    try:
        # Variables are text, so numbers in text are accepted.
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(fields)
        raise BadSettings(f"Settings in {source} cannot be used: {error}", f"Known settings: {known}") from error


def read_values(path: Path) -> dict[str, Any]:
    """What the file says, checked; nothing where there is none. Raises BadSettings with every mistake and its line."""
    try:
        text = path.read_bytes().decode()
        values = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # ValueError: bad TOML, or not UTF-8
        raise BadSettings(f"{path} cannot be read: {error}", "Correct or remove it") from error
    if wrong := mistakes(text, path, Settings):
        raise BadSettings("; ".join(wrong), "`tuimon config check` looks at all of it")
    return values
