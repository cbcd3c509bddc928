"""A real MCP client over stdio asks about a demo host whose launch stalls while it looks on."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import anyio
import jsonschema
from mcp import Client
from mcp.types import TextContent

from tests.e2e.assistants import assistant
from tests.ssh.conftest import start_sshd

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
HOST = "demo:silent-stall@0.2"
STALLS_WITHIN = 60.0


async def ask(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The answer as JSON; it is short and keeps to its schema."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    assert len(content.text.encode()) < 8000
    document: dict[str, Any] = json.loads(content.text)
    jsonschema.validate(document, json.loads((SCHEMAS / f"{tool}.json").read_text()))
    return document


async def complaint(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, TextContent)
    assert result.is_error
    return content.text


async def test_it_sees_the_launch_stall_and_names_the_rank(tmp_path: Path) -> None:
    async with assistant(tmp_path) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["check", "wait", "timeline", "stacks", "diagnose", "checkpoint"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert all("nswers within" in (tool.description or "") for tool in tools)

        before = await ask(client, "check", host=HOST, seconds=10)
        assert before["verdict"]["state"] in {"waiting", "starting"}
        waited = await ask(client, "wait", host=HOST, until="ready", seconds=3)
        assert waited["outcome"] == "timed_out"

        deadline = time.monotonic() + STALLS_WITHIN
        seen = []
        while (during := await ask(client, "check", host=HOST, seconds=2))["verdict"]["state"] != "stalled":
            seen.append(during["verdict"]["state"])
            assert time.monotonic() < deadline, seen
        assert "quiet" in seen

        stalled = await ask(client, "wait", host=HOST, until="ready", seconds=45)
        assert stalled["outcome"] == "stalled"
        assert [Path(path).suffix for path in stalled["saved"][:2]] == [".txt", ".json"]
        stacks = await ask(client, "stacks", host=HOST)
        assert [group["ranks"] for group in stacks["groups"] if group["odd"]] == [["TP3"]]
        diagnosis = await ask(client, "diagnose", host=HOST)
        assert [suspect["rank"] for suspect in diagnosis["suspects"]] == ["TP3"]
        assert [Path(path).name for path in diagnosis["saved"][:1]] == ["report.md"]
        draft = await client.call_tool("checkpoint", {"host": HOST})
        assert "SILENTLY USELESS" in getattr(draft.content[0], "text", "")
        after = await ask(client, "check", host=HOST)
        assert [suspect["rank"] for suspect in after["verdict"]["suspects"]] == ["TP3"]
        timeline = await ask(client, "timeline", source=HOST)
        [launch] = timeline["files"]
        assert launch["state"] == "unfinished"
        assert {phase["name"]: phase["state"] for phase in launch["phases"]}["weights"] == "done"


async def test_each_error_is_a_sentence(tmp_path: Path) -> None:
    async with assistant(tmp_path, "127.0.0.1:1", "demo:nonsense") as client:
        dead = await ask(client, "check", host="127.0.0.1:1", seconds=4)
        assert (dead["link"], dead["verdict"]["state"]) == ("never", "unreachable")
        assert "refuses the connection" in dead["error"]
        assert "nonsense" in await complaint(client, "check", host="demo:nonsense")
        assert (await complaint(client, "check", host="elsewhere")).endswith(
            "'elsewhere' may not be asked about. Allowed here: 127.0.0.1:1, demo:nonsense"
        )
        assert "No such file" in await complaint(client, "timeline", source=str(tmp_path / "none.log"))
        assert "is not a file" in await complaint(client, "timeline", source="/dev/zero")
        assert await complaint(client, "check", host="127.0.0.1:1", seconds="long")


async def test_the_timeline_of_a_log_file_here(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-04 10:15:33] server_args=ServerArgs(model_path='/m', tp_size=1)\n" + "x" * 100_000)
    async with assistant(tmp_path) as client:
        document = await ask(client, "timeline", source=str(log))
        assert document["files"][0]["engine"] == "SGLang"


async def test_when_the_client_leaves_nothing_stays(tmp_path: Path) -> None:
    async with assistant(tmp_path) as client:
        await ask(client, "check", host="demo:healthy@0.2", seconds=5)
        assert _demos(tmp_path)
    deadline = time.monotonic() + 15
    while _demos(tmp_path):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


def _demos(state: Path) -> list[int]:
    """Processes of the demos of a tuimon with this state folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if bytes(state) in path.read_bytes() and b"keeper" in path.with_name("cmdline").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def test_all_nodes_of_a_launch_can_be_asked_about_at_once(tmp_path: Path) -> None:
    """None is forgotten while its question is open: an assistant asks about eight nodes in parallel."""
    hosts = [f"127.0.0.1:{port}" for port in range(1, 11)]
    found: dict[str, dict[str, Any]] = {}

    async def look(host: str) -> None:
        found[host] = await ask(client, "check", host=host, seconds=8)

    async with assistant(tmp_path) as client, anyio.create_task_group() as group:
        for host in hosts:
            group.start_soon(look, host)
    assert sorted(found) == sorted(hosts)
    assert all("refuses the connection" in document["error"] for document in found.values()), found


async def test_a_refusal_is_forgotten_by_the_next_question(tmp_path: Path) -> None:
    sshd = start_sshd(tmp_path)
    try:
        async with assistant(tmp_path / "state", HOME=str(sshd.home), SSH_AUTH_SOCK="") as client:
            refused = await ask(client, "check", host=sshd.name, seconds=15)
            assert (refused["link"], refused["verdict"]["state"]) == ("never", "unreachable")
            draft = await client.call_tool("checkpoint", {"host": sshd.name})
            assert refused["error"][:40] in getattr(draft.content[0], "text", "")
            sshd.trust()
            assert (await ask(client, "check", host=sshd.name, seconds=15))["link"] == "up"
    finally:
        sshd.close()
