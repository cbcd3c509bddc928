"""One rule of a grammar: a pattern, what it means, and the lines it must match."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

RuleSeverity = Literal["milestone", "progress", "info", "harmless", "warning", "error", "fatal"]
"""`harmless` looks frightening and never counts as an error; the rest as in `launch/view.py`."""
Mark = Literal["begin", "end", "seen"]
Role = Literal[
    "args", "ready", "ended", "finished", "heartbeat", "probe", "serving", "tokens", "speculation", "version", "wait",
    "gate", "timings", "intro",
]  # fmt: skip
"""What a rule does beside being seen.

`args` argument dump · `ready` serves from here on · `ended` a shutdown that was asked for ·
`finished` training is done · `heartbeat` somebody waits, no sign of life · `probe` caused by health questions ·
`serving` numbers of running requests · `tokens` tokens were generated · `speculation` acceptance length ·
`version` names version or model · `wait` a wait that the server calls legal, and in which something works ·
`gate` a wait for somebody outside (a gate, the other half, a cluster), in which nothing moves ·
`timings` the engine's own startup timings · `intro` an error whose traceback follows
"""


class Starts(Struct, frozen=True, forbid_unknown_fields=True):
    """A timer of the server's own that begins with a line."""

    name: str
    seconds: float
    consequence: str
    """What it will do: "ends the ranks that wait"."""
    until: str | None = None
    """Phase whose end stops it; without: the rule's own phase."""


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """As written in a grammar file."""

    name: str
    """Milestone, optionally with a variant after a dot: `fatal.port_in_use`."""
    match: str | list[str]
    """Regular expression(s) in ASCII, searched in the message; `^` = where the message begins, after time and rank."""
    sample: str | list[str]
    """Whole lines that this rule must match."""
    severity: RuleSeverity = "milestone"
    phase: str | None = None
    """Phase of the timeline, in words: "weights"."""
    mark: Mark = "seen"
    again: str | None = None
    """Phase instead of `phase` for the second and later times on the same rank, where a draft model is expected;
    empty = none."""
    role: Role | None = None
    per_rank: bool = False
    """Every rank writes it: a rank that lacks it is behind."""
    kind: str | None = None
    """Kind of error: out_of_memory …"""
    advice: str | None = None
    """What to do, one sentence in our words."""
    consequence: bool = False
    """True where the line follows from an error that happened elsewhere: the cause is looked for nearby."""
    starts: Starts | None = None
    """A timer that begins here."""
    has: str | None = None
    """A text of every line that this rule matches, where none can be read off the pattern or a rarer one is known."""

    @property
    def milestone(self) -> str:
        """The name without its variant."""
        return self.name.partition(".")[0]

    @property
    def patterns(self) -> list[str]:
        """All patterns."""
        return [self.match] if isinstance(self.match, str) else self.match

    @property
    def samples(self) -> list[str]:
        """All samples."""
        return [self.sample] if isinstance(self.sample, str) else self.sample


def literal(pattern: str) -> str:
    """The longest text that every match of `pattern` contains, empty where none can be read off it."""
    runs: list[str] = [""]
    at, depth = 0, 0
    while at < len(pattern):
        piece, plain, at = _piece(pattern, at)
        if piece == "|" and depth == 0:
            return ""
        depth += (piece[0] == "(") - (piece == ")")
        if depth or plain is None or pattern[at : at + 1] in {"?", "*", "{"}:
            runs.append("")
        else:
            runs[-1] += plain
    return max(runs, key=len)


def _piece(pattern: str, at: int) -> tuple[str, str | None, int]:
    """Next piece, the text it stands for (None if it is no plain character), and where the one after it begins."""
    char = pattern[at]
    if char == "\\":
        escaped = pattern[at + 1 : at + 2]
        return char + escaped, (None if escaped.isalnum() else escaped), at + 2
    if char == "[":
        # A bracket right behind the opening one (or its ^) belongs to the class.
        end = at + 2 + (pattern[at + 1 : at + 2] == "^")
        while end < len(pattern) and pattern[end] != "]":
            end += 1 + (pattern[end] == "\\")
        return pattern[at : end + 1], None, end + 1
    if char in "()|^$.?*+":
        return char, None, at + 1
    if char == "{":
        end = pattern.index("}", at)
        return pattern[at : end + 1], None, end + 1
    return char, char, at + 1


class Compiled(Struct, frozen=True):
    """One pattern of a rule, ready to run."""

    rule: Rule
    pattern: re.Pattern[bytes]
    anchored: bool
    need: bytes
    """Its required text without digits: what the shape of a line is tested for."""


DIGITS = b"0123456789"
_SHORTEST = 2  # characters of required text: below, nearly every line would have to be tried


def compiled(rule: Rule) -> list[Compiled]:
    """The rule's patterns. Raises ValueError with a reason that names what is wrong."""
    result = []
    for pattern in rule.patterns:
        if not pattern.isascii():
            raise ValueError("the pattern must be plain ASCII: it is matched against bytes")
        try:
            ready = re.compile(pattern.encode())
        except re.error as error:
            raise ValueError(f"the pattern is no regular expression: {error}") from error
        need = (rule.has or literal(pattern)).encode().translate(None, DIGITS)
        if len(need) < _SHORTEST:
            raise ValueError(
                'the pattern has no fixed text of 2 letters: add has = "…" with a text that is always there'
            )
        result.append(Compiled(rule, ready, pattern.startswith("^"), need))
    return result
