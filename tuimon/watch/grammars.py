"""The user's own grammars, chosen before a launch is read; a bad one is said and the rest works."""

from __future__ import annotations

from tuimon.config import config_dir
from tuimon.engines.grammar import library, use
from tuimon.launch.events import Finding


def choose() -> tuple[Finding, ...]:
    """Read logs with the shipped grammars and those in the config folder from now on; what is wrong with them."""
    grammars = library(config_dir() / "grammars")
    use(grammars)
    return tuple(
        Finding(source="grammars", kind="bad_grammar", text=fault.sentence(), severity="warning")
        for fault in grammars.faults
    )
