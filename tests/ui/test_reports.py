"""Diagnosis, collectives, draft check and the questions before what could harm, on the screen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import Stage, staged
from tuimon.launch.events import Report
from tuimon.launch.view import LaunchView

MARKDOWN = """# SGLang 0.5.6 on gpu-17: stalled

**after \\[graphs\\], nothing alive** (host deadlock), for 252 s
- NCCL RAS names **TP3 (pid 8123)**: launched 21 of 22 collectives

## Stacks

```
8 ranks in 2 groups
    acquire (threading.py:1) # no heading, **not bold**
```
"""


def reported(of: str = "diagnose", text: str = MARKDOWN, **fields: object) -> LaunchView:
    view = launches.stall()
    report = Report(at=view.now - 3, of=of, text=text, asked=True, **fields)  # type: ignore[arg-type]  # test data
    return replace(view, reports=(report,))


def with_draft(view: LaunchView) -> LaunchView:
    assert view.server
    argv = ("sglang", "--speculative-draft-model-path", "/models/draft")
    return replace(view, server=replace(view.server, argv=argv))


async def test_d_shows_the_report_as_soon_as_it_comes_and_where_it_was_saved() -> None:
    async with staged(launches.stall()) as stage:
        stage.watching.busy = "diagnose"
        await stage.press("d")
        assert stage.watching.asked == ["diagnose"]
        await stage.crank()
        assert stage.has("╭─ Diagnosis", "looking at everything harmless…")
        stage.watching.busy = None
        await stage.crank(reported(saved=("/state/diagnoses/1/report.md", "/x/stacks.txt"), seconds=0.4))
        assert stage.has(
            "3 s ago · took 0.4 s", "saved: /state/diagnoses/1/report.md", "SGLang 0.5.6 on gpu-17: stalled"
        )
        assert stage.has("▸ NCCL RAS names TP3 (pid 8123): launched 21 of 22", "after [graphs], nothing alive")
        assert stage.has("acquire (threading.py:1) # no heading, **not bold**")
        await stage.press("d")
        assert stage.watching.asked == ["diagnose", "diagnose"]
        assert stage.has("╭─ Diagnosis")
        await stage.press("escape")
        assert stage.has("╭─ GPUs")


async def test_the_report_ends_with_what_asks_first_and_its_cost_and_risk() -> None:
    async with staged(reported(), (160, 50)) as stage:
        await stage.press("d")
        await stage.crank()
        assert stage.has("More, which asks first", "R  flight-recorder dump: takes 5 s; every rank writes")
        assert stage.has(
            "S  stacks with native frames (py-spy --native): takes 0.3 s per rank; stops each rank for 0.1 s"
        )
        assert stage.has("a  SIGABRT to one rank: takes 1 s; KILLS THE SERVER")


@pytest.mark.parametrize(
    ("key", "action", "title"), [("c", "collectives", "Collectives"), ("p", "checkpoint", "Draft")]
)
async def test_c_and_p_ask_and_show_what_came(key: str, action: str, title: str) -> None:
    async with staged(with_draft(launches.stall())) as stage:
        await stage.press(key)
        assert stage.watching.asked == [action]
        await stage.crank(reported(action, "# TP3 is behind\n- **TP3 launched 21**\n"))
        assert stage.has(f"╭─ {title}", "TP3 is behind", "▸ TP3 launched 21")


async def test_p_without_a_draft_says_so() -> None:
    view = launches.stall()
    assert view.server
    async with staged(replace(view, server=replace(view.server, argv=("sglang",)))) as stage:
        await stage.press("p")
        assert "this launch names no draft model" in stage.line(-1)
        assert stage.watching.asked == []


async def test_an_action_that_came_to_nothing_says_why() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("c")
        await stage.crank(replace(launches.stall(), findings=("There is no process",)))
        assert stage.has("no answer yet", "▸ There is no process")


@pytest.mark.parametrize(("key", "action"), [("R", "flight_recorder"), ("D", "debug_server"), ("S", "native")])
async def test_what_can_disturb_asks_once_with_cost_and_risk(key: str, action: str) -> None:
    async with staged(launches.stall()) as stage:
        await stage.press(key)
        await stage.crank()
        assert stage.has("╭─ Before this is done", "takes", "risk", "y does it · Esc leaves everything as it is")
        await stage.press("K", "x", "space")
        assert stage.watching.asked == []
        await stage.press("y")
        assert stage.watching.asked == [action]
        assert not stage.has("Before this is done")


async def test_leaving_a_question_does_nothing() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("S")
        await stage.press("escape")
        await stage.press("y")
        assert stage.watching.asked == []


async def aimed(stage: Stage, *, of_use: bool) -> None:
    """Open the abort's question and let the answer about its consequence come."""
    await stage.press("a")
    assert stage.watching.asked == ["aim"]
    await stage.press("y", "K")
    view = launches.stall()
    words = "# SIGABRT to TP3 (pid 8123)\n\n- faulthandler is on: it prints all its Python threads and dies\n"
    answer = Report(at=view.now + 1, of="aim", text=words, unread=() if of_use else ("it is gone",))
    await stage.crank(replace(view, now=view.now + 1, reports=(answer,)))


async def test_abort_says_what_it_would_do_and_asks_twice_for_different_keys() -> None:
    async with staged(launches.stall()) as stage:
        await aimed(stage, of_use=True)
        assert stage.watching.asked == ["aim"]
        assert stage.has("KILLS THE SERVER", "SIGABRT to TP3 (pid 8123)", "faulthandler is on")
        await stage.press("K")
        assert stage.watching.asked == ["aim"]
        await stage.press("y")
        await stage.crank()
        assert stage.has("K (capital) sends the signal now: the server goes down")
        await stage.press("y")
        assert stage.watching.asked == ["aim"]
        await stage.press("K")
        assert stage.watching.asked == ["aim", "abort"]


async def test_abort_cannot_be_answered_where_it_is_of_no_use_or_not_yet_known() -> None:
    async with staged(launches.stall()) as stage:
        await aimed(stage, of_use=False)
        await stage.press("y", "K")
        assert stage.watching.asked == ["aim"]
        assert stage.has("Esc leaves")
