"""Reported cases: what each report told, judged. `pytest -s` prints the table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.replay.cases import Outcome, Telling, cases
from tuimon.ui.pressing import pressing

CASES = Path(__file__).resolve().parents[3] / "shared" / "reference" / "cases.jsonl"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is not here")

LOOKS = ("Press", "look", "dump", "dmesg", "find", "error", "reset", "Raise", "Lower", "holds", "raise", "answer")


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [Telling(case).play() for case in cases(CASES)]


def test_nine_of_ten_told_cases_are_judged_as_labelled(outcomes: list[Outcome]) -> None:
    told = [outcome for outcome in outcomes if outcome.told]
    sys.stdout.write(_table(outcomes) + "\n")
    assert len(told) >= 40
    assert sum(outcome.right for outcome in told) >= 0.9 * len(told)


def test_each_untold_case_names_what_it_lacks(outcomes: list[Outcome]) -> None:
    assert all(outcome.lacks for outcome in outcomes if not outcome.told)


def test_advice_is_of_the_kind_that_the_label_asks_for(outcomes: list[Outcome]) -> None:
    wrong = [
        (outcome.id, pressing(outcome.verdict.advice), outcome.next_step)
        for outcome in outcomes
        if outcome.told and outcome.right and not _agrees(outcome)
    ]
    assert wrong == []


def _agrees(outcome: Outcome) -> bool:
    """Wait with what is alive, look at what is dead, mend what is misconfigured."""
    advice = pressing(outcome.verdict.advice)
    if outcome.label in {"slow_but_alive", "healthy"}:
        return not advice or advice.startswith("Wait")
    if outcome.label == "ready_but_degraded":
        return "draft" in advice
    if outcome.label == "alive_but_unreachable":
        return "key" in advice
    return any(word in advice for word in LOOKS)


def _table(outcomes: list[Outcome]) -> str:
    total, told, right = Counter[str](), Counter[str](), Counter[str]()
    for outcome in outcomes:
        total[outcome.letter] += 1
        told[outcome.letter] += bool(outcome.told)
        right[outcome.letter] += bool(outcome.told) and outcome.right
    rows = ["", "class  cases  told  right"]
    rows += [f"{letter:5} {total[letter]:6} {told[letter]:5} {right[letter]:6}" for letter in sorted(total)]
    rows.append(f"all   {len(outcomes):6} {sum(told.values()):5} {sum(right.values()):6}")
    for outcome in outcomes:
        if outcome.told and not outcome.right:
            rows.append(f"wrong  {outcome.id} {outcome.label}: {' '.join(outcome.states)}")
        if not outcome.told:
            rows.append(f"untold {outcome.id} {outcome.label}: lacks {', '.join(outcome.lacks)}")
    return "\n".join(rows)
