"""The sample lines of the reference: each gives the rule that its milestone names, and nothing harmless is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuimon.engines.grammar import ready, shipped
from tuimon.engines.matching import Found, Matcher
from tuimon.launch.segments import Splitter

FOLDER = Path(__file__).parent / "data" / "log_lines"
ROWS = [json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]
# Rows whose milestone cannot be told from the line alone, with the reason.
DISPUTED = {
    ("sglang", "draft_dist_begin"): "the same text as dist_init_begin; that it is the second time on its rank makes it "
    "the draft's, which the timeline knows (test_timeline_phases)",
    ("ray-serve-llm", "engine_init"): "vLLM's own line, nested: vLLM's rule load_end says more than engine_init",
}
_MATCHERS: dict[str, Matcher] = {}


def found(row: dict[str, str]) -> list[Found]:
    """What the row's segments mean in its engine's grammar."""
    grammars = shipped()
    grammar = grammars.find(row["engine"])
    assert grammar is not None, row["engine"]
    matcher = _MATCHERS.setdefault(grammar.engine, Matcher(ready(grammars.rules(grammar))))
    splitter = Splitter()
    segments = splitter.feed(row["shape"].encode()) + splitter.flush()
    return [one for line, _ in segments if (one := matcher.find(line)) is not None]


def is_prefix(row: dict[str, str]) -> bool:
    """Rows that test prefix splitting: test_log_prefix looks at their parts."""
    return row["milestone"].startswith("prefix")


def test_there_are_rows() -> None:
    assert len(ROWS) == 409


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_row_gives_the_rule_that_its_milestone_names(number: int) -> None:
    row = ROWS[number]
    names = [one.rule.milestone for one in found(row)]
    if (row["engine"], row["milestone"]) in DISPUTED:
        assert row["milestone"] not in names, "no longer disputed: take it off the list"
    elif not is_prefix(row):
        assert row["milestone"] in names, row["shape"][:200]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_harmless_row_is_no_error(number: int) -> None:
    row = ROWS[number]
    if row["severity"] in {"harmless", "noise", "info", "milestone", "progress", "ready", "steady"}:
        assert {one.rule.severity for one in found(row)}.isdisjoint({"error", "fatal"}), row["shape"][:200]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_fatal_row_is_fatal(number: int) -> None:
    row = ROWS[number]
    if row["severity"] == "fatal":
        assert "fatal" in {one.rule.severity for one in found(row)}, row["shape"][:200]


def test_a_probe_of_ours_is_no_sign_of_life() -> None:
    noise = [row for row in ROWS if row["severity"] == "noise" or "our own" in row.get("versions", "")]
    assert noise
    for row in noise:
        assert {one.rule.role for one in found(row)} == {"probe"}, row["shape"]
