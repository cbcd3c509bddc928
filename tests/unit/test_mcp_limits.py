"""A tool of `tuimon mcp` keeps its limit, and its answer can always be written."""

from __future__ import annotations

import json
import threading

import pytest

from tuimon.headless import mcp_tools
from tuimon.headless.mcp_answers import MOST, bounded
from tuimon.headless.mcp_protocol import sentence


async def test_a_question_that_hangs_is_given_up_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "GRACE", 0.05)
    for_ever = threading.Event()

    def hang() -> dict[str, object]:
        for_ever.wait()
        return {}

    with pytest.raises(mcp_tools.NoAnswer) as gave_up:
        await mcp_tools.answer(hang, 0.0)
    for_ever.set()
    assert sentence(gave_up.value) == "There was no answer within 0 s. Try again, or check first"


@pytest.mark.parametrize("text", ["\udc80name", "\x1b[2J\x9b\u202e", "🦊" * 100_000, '"\\' * 50_000])
def test_an_answer_is_short_and_can_be_sent(text: str) -> None:
    said = bounded({"schema": "s", "lines": [text] * 50})
    assert len(said.encode()) < MOST
    assert "\x1b" not in said
    assert json.loads(said)["schema"] == "s"


def test_an_error_keeps_its_beginning_and_its_advice() -> None:
    said = sentence(ValueError("\x1b[2J" + "x" * 9000))
    assert said.startswith("tuimon's own error: ValueError: ·[2Jxxx")
    assert said.endswith("Ask another tool, and report it")
    assert len(said) < 1500
