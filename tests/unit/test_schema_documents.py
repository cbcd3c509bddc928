"""Every document that scripts rely on is held against its schema in docs/schema, and the schemas against mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tuimon.alerts.changes import Change
from tuimon.alerts.herald import document as change_document
from tuimon.cli import cli
from tuimon.headless import check, history, wait
from tuimon.headless.mcp_answers import live_timeline
from tuimon.history.launched import Launched
from tuimon.launch.state import Launch
from tuimon.launch.steps import Advice, Do
from tuimon.launch.view import (
    Evidence,
    LaunchView,
    LinkView,
    Missing,
    PhaseView,
    ServerView,
    Suspect,
    Verdict,
)

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"
BEGAN = 1_000_000.0


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def hold(document: object, name: str) -> None:
    """The document as it is written, against its schema."""
    jsonschema.validate(json.loads(json.dumps(document)), schema(name), jsonschema.Draft202012Validator)


def nothing() -> LaunchView:
    return Launch("gpu-17").snapshot(BEGAN)


def stalled() -> LaunchView:
    server = ServerView(
        pid=7, engine="SGLang", version=None, model="/m", log="/l", log_note=None, address=None, port=30000,
        started=BEGAN - 90, shape="tp 8", ranks=("TP0",), launch=1,
    )  # fmt: skip
    return replace(
        nothing(),
        link=LinkView(state="up", since=BEGAN),
        server=server,
        phases=(PhaseView("weights", "done", BEGAN - 80, BEGAN - 60, seconds=20.0), PhaseView("draft", "expected")),
        verdict=Verdict(
            state="stalled",
            since=BEGAN - 60,
            headline="nothing alive",
            kind="host deadlock",
            suspects=(Suspect("TP3", 7, "behind"), Suspect(None, None, "?")),
            evidence=(Evidence("log", None, "never"),),
            missing=(Missing("draft model load", "expected"),),
            unseen=("network",),
            advice=Advice((Do("stacks"), ".")),
        ),
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_each_schema_is_one(path: Path) -> None:
    found = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["properties"]["schema"]["const"] == f"tuimon.{path.stem}/1"


@pytest.mark.parametrize("view", [nothing(), stalled()], ids=["nothing known", "stalled"])
def test_check_wait_and_change(view: LaunchView) -> None:
    hold(check.report(view, BEGAN - 5), "check")
    hold(wait.document(wait.Answer("timed_out", view, 5.0, ("/a",)), BEGAN - 5), "wait")
    hold(change_document(view, Change(None, "stalled", urgent=True, held_back=0), BEGAN - 5), "change")


@pytest.mark.parametrize("view", [nothing(), stalled()], ids=["nothing known", "stalled"])
def test_a_live_timeline_reads_like_a_files(view: LaunchView) -> None:
    hold(live_timeline(view), "timeline")


def test_the_history() -> None:
    one = Launched("gpu-17", 7, BEGAN, "vllm", flags={"tp_size": "8"}, phases={"weights": 20.0})
    hold(history.document([one], "/path"), "history")


def test_a_timeline_of_a_real_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-04 10:15:33] server_args=ServerArgs(model_path='/m', tp_size=1)\nnothing\n")
    done = CliRunner().invoke(cli, ["timeline", str(log), "--json"])
    assert done.exit_code == 0
    hold(json.loads(done.stdout), "timeline")


def test_a_schema_finds_what_is_wrong() -> None:
    document = check.report(stalled(), BEGAN)
    with pytest.raises(jsonschema.ValidationError):
        hold({**document, "verdict": {**document["verdict"], "state": "sleepy"}}, "check")
    del document["launch"]
    with pytest.raises(jsonschema.ValidationError):
        hold(document, "check")
