"""Whatever a client asks wrongly, it is told one short sentence: what is wrong, and what is right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from tests.e2e.assistants import assistant

HOSTS = ("check", "wait", "stacks", "diagnose", "checkpoint")
HOSTILE = "\x1b[31m\x9b2J\u202eevil\r\n" * 20_000
WRONG = (None, True, 7, 1.5, ["gpu-17"], {"name": "gpu-17"}, "", " \t", HOSTILE, "x" * 1_000_000, "gpu\x00", "🦊" * 999)
NO_NUMBERS = (
    None,
    False,
    "long",
    "",
    "nan",
    "inf",
    "-Infinity",
    "1e999",
    10**400,
    [5],
    {"s": 5},
    HOSTILE,
    "[" * 100_000,
)
NO_ENDS = (None, True, 3, "", "Ready", "dead", ["ready"], {"ready": True}, HOSTILE)


async def complaint(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """What the client is told: a sentence of tuimon's own, bounded, that does nothing to a terminal."""
    asked = f"{tool} {str(arguments)[:100]}"
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, TextContent), asked
    assert result.is_error, asked
    text = content.text
    assert len(text.encode()) < 8000, asked
    assert text.isprintable(), (asked, text)
    assert text == text.strip() != "", asked
    assert not any(alien in text.lower() for alien in ("pydantic", "validation", "traceback", "executing tool")), text
    assert "own error" not in text, text
    return text


def cases() -> list[tuple[str, dict[str, Any], str]]:
    """Tool, arguments, and what the sentence must name."""
    found: list[tuple[str, dict[str, Any], str]] = []
    for tool, name in (*((tool, "host") for tool in HOSTS), ("timeline", "source")):
        found.append((tool, {}, f"{tool} needs the argument {name}: "))
        found += [(tool, {name: value}, name) for value in WRONG[:-1]]
        found += [(tool, {name: "gpu-17", odd: 1}, f"{tool} has no argument ") for odd in ("hosts", "", HOSTILE)]
        found += [(tool, {name: "demo:" + "z" * 900}, "demo"), (tool, {name: "🦊" * 999}, "🦊")]
    found += [("check", {"host": "gpu-17", "seconds": value}, "argument seconds of check must") for value in NO_NUMBERS]
    found += [("wait", {"host": "gpu-17", "seconds": value}, "argument seconds of wait must") for value in NO_NUMBERS]
    found += [("wait", {"host": "gpu-17", "until": value}, "must be ready, serving or exit") for value in NO_ENDS]
    return found


async def test_each_wrong_argument_is_named(tmp_path: Path) -> None:
    async with assistant(tmp_path, "gpu-17") as client:
        for tool, arguments, named in cases():
            said = await complaint(client, tool, arguments)
            assert named in said, (tool, str(arguments)[:100], said)
            assert said.count(". ") <= 2, said


async def test_an_unknown_tool_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    async with assistant(tmp_path) as client:
        for name in ("restart", "", HOSTILE):
            said = await complaint(client, name, {"host": "gpu-17"})
            assert said.endswith("Use check, wait, timeline, stacks, diagnose or checkpoint.")


async def test_what_an_argument_is_can_be_read_beforehand(tmp_path: Path) -> None:
    async with assistant(tmp_path) as client:
        for tool in (await client.list_tools()).tools:
            schema = tool.input_schema
            assert schema["additionalProperties"] is False
            assert all(len(kind["description"]) > 10 for kind in schema["properties"].values()), tool.name


async def test_a_number_in_quotes_is_a_number_and_a_huge_one_is_cut(tmp_path: Path) -> None:
    async with assistant(tmp_path) as client:
        for seconds in ("1", -1e308, 0):
            result = await client.call_tool("check", {"host": "127.0.0.1:1", "seconds": seconds})
            assert not result.is_error, result


@pytest.mark.parametrize("name", ["none.log", "~nobody-of-this-name/x.log", "/proc/self/mem", "/"])
async def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, name: str) -> None:
    async with assistant(tmp_path) as client:
        path = str(tmp_path / name) if name.endswith("none.log") else name
        assert await complaint(client, "timeline", {"source": path})


async def test_a_log_that_is_too_long_to_be_read_in_time_is_refused_at_once(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.truncate(80_000_000_000)
    async with assistant(tmp_path) as client:
        with anyio.fail_after(10):
            said = await complaint(client, "timeline", {"source": str(log)})
    assert "has 80.0 GB, more than can be read in 30 s. Name its last part" in said


async def test_a_client_that_leaves_in_the_middle_of_a_wait_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tuimon", "mcp"]
    opening = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    asking = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"host":"127.0.0.1:1"}}}\n'
    )
    async with await anyio.open_process(command, env={"TUIMON_STATE_DIR": str(tmp_path)}) as process:
        assert process.stdin is not None
        await process.stdin.send(opening.encode() + asking.encode())
        await anyio.sleep(2.0)
        await process.stdin.aclose()
        with anyio.fail_after(10):
            assert await process.wait() == 0
