"""All rules that a draft checkpoint must keep, in the order in which they are worth reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from tuimon.diagnose import config_rules, tensor_rules
from tuimon.diagnose.eagle3 import Case
from tuimon.diagnose.flaws import Flaw, kind

RULES: tuple[Callable[[Case], Iterator[Flaw]], ...] = (
    config_rules.the_format,
    config_rules.the_architecture,
    config_rules.the_config,
    tensor_rules.the_names,
    tensor_rules.the_shapes,
    tensor_rules.the_vocabulary,
    config_rules.the_target,
    tensor_rules.the_embedding,
    config_rules.the_details,
    config_rules.the_context,
    tensor_rules.the_files,
)


def check(case: Case) -> tuple[Flaw, ...]:
    """All flaws, in the rules' order."""
    flaws = [flaw for rule in RULES for flaw in rule(case)]
    return tuple(flaws)


def verdict(case: Case, flaws: tuple[Flaw, ...]) -> Literal["ok", "broken", "silent", "unknown"]:
    """The worst of the flaws; unknown where this is nothing that the rules know or no tensor could be read."""
    severities = {flaw.severity for flaw in flaws}
    if "fatal" in severities:
        return "broken"
    if "silent" in severities:
        return "silent"
    return "ok" if kind(case) == "eagle3" and case.draft.tensors else "unknown"
