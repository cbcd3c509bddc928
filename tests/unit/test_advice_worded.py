"""One advice, three readers: a key on the screen, a command in a script, a tool for an assistant."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.ui import launches
from tuimon.headless import check
from tuimon.headless.mcp_tools import Answers
from tuimon.headless.ways import commands, tools
from tuimon.launch.advice import BY_ALARM, BY_DRAFT, BY_KIND
from tuimon.launch.steps import Act, Advice, Do
from tuimon.launch.view import LaunchView
from tuimon.ui import pressing
from tuimon.ui.actions import ACTIONS, with_keys

EACH = [Advice(parts) for parts in (*BY_KIND.values(), *BY_ALARM.values(), BY_DRAFT)]
KEYS = re.compile(r"\b[Pp]ress\b")


def told(advice: Advice, host: str = "gpu-17") -> LaunchView:
    view = launches.stall()
    return replace(view, host=host, verdict=replace(view.verdict, advice=advice))


@pytest.mark.parametrize("advice", EACH)
def test_no_script_is_told_a_key(advice: Advice) -> None:
    view = told(advice)
    assert not KEYS.search(check.report(view, view.now)["verdict"]["advice"])
    assert not KEYS.search(check.words(view))
    assert not KEYS.search(advice.words(tools))
    acts = [part.act for part in advice.parts if isinstance(part, Do)]
    assert len(KEYS.findall(pressing.pressing(advice))) == len(acts)


def test_a_script_is_told_the_command_for_its_host() -> None:
    view = told(Advice((Do("stacks"), " to see where; ", Do("collectives"), " too.")), "me@gpu 17")
    assert check.report(view, view.now)["verdict"]["advice"] == (
        "Run `tuimon stacks 'me@gpu 17'` to see where; run `tuimon diagnose 'me@gpu 17'` too."
    )


def test_the_checkpoint_is_named_with_its_target() -> None:
    view = told(Advice((Do("checkpoint"), ".")))
    assert view.server is not None
    argv = ("sglang", "--model-path", "/m", "--speculative-draft-model-path", "/draft model")
    view = replace(view, server=replace(view.server, argv=argv))
    assert view.verdict.advice is not None
    assert view.verdict.advice.words(commands(view)) == (
        "Run `tuimon checkpoint 'gpu-17:/draft model' --target gpu-17:/m`."
    )
    here = replace(view, host="localhost")
    assert view.verdict.advice.words(commands(here)) == "Run `tuimon checkpoint '/draft model' --target /m`."


def test_the_first_error_is_looked_for_in_the_log() -> None:
    view = told(Advice((Do("next_error"), " for the first error.")))
    assert view.server is not None
    assert view.server.log is not None
    assert check.report(view, view.now)["verdict"]["advice"] == f"Look into {view.server.log} for the first error."
    nothing = replace(view, server=replace(view.server, log=None))
    assert check.report(nothing, view.now)["verdict"]["advice"] == "Look into its log for the first error."


def test_an_assistant_is_told_a_tool_that_it_has() -> None:
    names = {tool.__name__ for tool in Answers(None).tools}  # type: ignore[arg-type]  # none is called
    assert {tools(act).removeprefix("call ") for act in get_args(Act)} <= names


def test_a_key_that_the_user_moved_is_named_where_it_is_now() -> None:
    advice = Advice((Do("stacks"), " to see."))
    try:
        pressing.use(with_keys(ACTIONS, {"stacks": "f5"}))
        assert pressing.pressing(advice) == "Press f5 to see."
        pressing.use(with_keys(ACTIONS, {"follow": "s"}))
        assert pressing.pressing(advice) == "Choose stacks to see."
    finally:
        pressing.use(ACTIONS)


def test_a_front_end_has_a_word_for_each_act() -> None:
    view = launches.stall()
    for act in get_args(Act):
        advice = Advice((Do(act),))
        assert all(words for words in (advice.words(commands(view)), advice.words(tools), pressing.pressing(advice)))
