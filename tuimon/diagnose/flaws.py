"""What a rule finds, and what every rule needs to know of a draft checkpoint."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tuimon.diagnose.eagle3 import Case, is_speculators
from tuimon.diagnose.pyspy import clean

Severity = Literal["fatal", "silent", "warning"]
"""fatal = the server crashes on it · silent = it becomes ready and the draft does nothing · warning = worth a look."""
MLA = "Eagle3DeepseekV2ForCausalLM"


class Flaw(Struct, frozen=True):
    """One thing that is wrong."""

    rule: str
    severity: Severity
    key: str
    expected: str
    found: str
    fix: str


def kind(case: Case) -> str:
    """What the checkpoint is: eagle3, eagle3-mla, speculators (for SGLang) or unknown."""
    if is_speculators(case.draft.config):
        return "eagle3" if case.engine == "vllm" and spec_type(case) == "eagle3" else "speculators"
    name = architecture(case)
    if name == MLA:
        return "eagle3-mla"
    return "eagle3" if "eagle3" in name.lower() else "unknown"


def spec_type(case: Case) -> str:
    """`speculators_model_type`: eagle3, dflash …"""
    return str(case.draft.config.get("speculators_model_type", ""))


def architecture(case: Case) -> str:
    """The first of `architectures`."""
    names = case.config.get("architectures")
    return clean(str(names[0])) if isinstance(names, list) and names else ""


def shown(value: object) -> str:
    """A value of the config, in few characters."""
    return "absent" if value is None else clean(str(value))[:120]
