"""A real MCP client at a desk in memory, over a real pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from fleet.drivers.desk import FINISH, RUN_PROBE
from fleet.drivers.mcp import LINGER_S, MAX_MESSAGE
from fleet.files import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

STAND = str(Path(__file__).with_name("mcp_stand.py"))
URL = {"url": "http://127.0.0.1/"}


@asynccontextmanager
async def agent(
    out: Path, *, turns: int = 50, mode: str = "auto", gate: Path | None = None
) -> AsyncIterator[Client]:
    args = [STAND, str(out), str(turns), *([str(gate)] if gate else [])]
    there = StdioServerParameters(command=sys.executable, args=args, env={"PYTHONPATH": str(ROOT)})
    async with Client(there, mode=mode) as client:
        yield client


async def became(out: Path) -> dict[str, Any]:
    with anyio.fail_after(10):
        while not out.exists() or not out.read_text():  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.05)
    said: dict[str, Any] = json.loads(out.read_text())
    return said


async def until_hung_up(client: Client) -> None:
    while True:
        await client.call_tool("qa_fetch", URL)
        await anyio.sleep(0.1)


def text(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.content[0].text)
    return answer


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_sees_the_offers_calls_and_finishes(tmp_path: Path, mode: str) -> None:
    out = tmp_path / "out"
    async with agent(out, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"qa_fetch", RUN_PROBE, "report_finding", FINISH} == set(tools)
        assert tools["qa_fetch"].input_schema["required"] == ["url"]
        seen = await client.call_tool("qa_fetch", URL)
        assert (seen.is_error, text(seen)["status"]) == (False, 200)
        for probe in ("first", "second"):
            assert not (await client.call_tool(RUN_PROBE, {"probe": probe})).is_error
        assert not (await client.call_tool(FINISH, {"detail": "done"})).is_error
    said = await became(out)
    assert said["ended"] == "the agent finished"
    assert [tool for tool, _ in said["asked"]] == ["qa_fetch", RUN_PROBE, RUN_PROBE, FINISH]
    assert (said["turns"], said["most"]) == (4, 1)


async def test_it_is_told_what_to_do(tmp_path: Path) -> None:
    async with agent(tmp_path / "out", mode="legacy") as client:
        assert client.instructions == "You test a platform."
        (brief,) = [one.description for one in (await client.list_tools()).tools if one.name == RUN_PROBE]
        assert "You test a platform." in (brief or "")
        assert "- [ ] first" in (brief or "")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_is_greeted_before_the_run_begins_and_its_calls_wait(tmp_path: Path, mode: str) -> None:
    out, gate, seen = tmp_path / "out", tmp_path / "gate", list[str]()

    async def look() -> None:
        seen.extend(tool.name for tool in (await client.list_tools()).tools)

    async def call() -> None:
        seen.append(str(text(await client.call_tool("qa_fetch", URL))["status"]))

    async with agent(out, mode=mode, gate=gate) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        tasks.start_soon(call)
        await anyio.sleep(0.3)
        assert seen == []
        gate.touch()
    assert {"200", "qa_fetch", FINISH} <= set(seen)
    assert (await became(out))["turns"] == 1


@pytest.mark.parametrize("before", [True, False])
async def test_why_a_run_did_not_begin_is_told_to_its_calls(tmp_path: Path, before: bool) -> None:
    out, gate, why = tmp_path / "out", tmp_path / "gate", list[str]()

    async def ask(tool: bool) -> None:
        with pytest.raises(MCPError) as error:
            await (client.call_tool("qa_fetch", URL) if tool else client.list_tools())
        why.append(str(error.value))

    async with agent(out, gate=gate) as client, anyio.create_task_group() as tasks:
        closed = tmp_path / "closed"
        closed.write_text("closed")
        if not before:
            closed.rename(gate)
        tasks.start_soon(ask, True)
        tasks.start_soon(ask, False)
        await anyio.sleep(0.3)
        if before:
            closed.rename(gate)
    assert why == ["the run did not begin: the node does not answer"] * 2
    assert (await became(out))["ended"] == "not begun: the node does not answer"


def test_an_agent_that_hangs_up_before_the_run_begins_ends_it_at_once(tmp_path: Path) -> None:
    out, gate = tmp_path / "out", tmp_path / "gate"
    with subprocess.Popen(
        [sys.executable, STAND, str(out), "50", str(gate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.close()
        assert server.stdout.read() == b""  # its end is seen though no run has begun
        gate.touch()
        assert server.wait(30) == 0
    said = json.loads(out.read_text())
    assert (said["ended"], said["turns"]) == ("the agent hung up", 0)


async def test_what_is_wrong_with_a_call_is_an_answer(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with agent(out) as client:
        unknown = await client.call_tool("rm", {"path": "/"})
        assert (unknown.is_error, text(unknown)["error"]) == (True, "unknown tool")
        wrong = await client.call_tool("qa_fetch", {"url": 7})
        assert (wrong.is_error, text(wrong)["pointer"]) == (True, "/url")
        early = await client.call_tool(FINISH, {"detail": "bored"})
        assert early.is_error
        assert not (await client.call_tool("qa_fetch", URL)).is_error
    assert (await became(out))["ended"] == "the agent hung up"


async def test_a_run_that_is_over_says_so_and_hangs_up(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with agent(out, turns=2) as client:
        for _ in range(2):
            assert not (await client.call_tool("qa_fetch", URL)).is_error
        third = await client.call_tool("qa_fetch", URL)
        assert (third.is_error, text(third)["error"]) == (True, "this run is over: max_turns: 2 turns")
        with anyio.fail_after(10), pytest.raises(MCPError, match="Connection closed"):
            await until_hung_up(client)
    said = await became(out)
    assert (said["ended"], len(said["asked"])) == ("max_turns: 2 turns", 2)


async def test_many_calls_at_once_are_done_one_after_the_other(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with agent(out, turns=100) as client, anyio.create_task_group() as tasks:
        for _ in range(60):
            tasks.start_soon(client.call_tool, "qa_fetch", URL)
    said = await became(out)
    assert (len(said["asked"]), said["turns"], said["most"]) == (60, 60, 1)
    assert said["together"] == 1


async def test_what_is_asked_after_finish_is_not_done(tmp_path: Path) -> None:
    """All of it is on the wire at once: nothing that stands behind `finish` reaches a tool."""
    out, answers = tmp_path / "out", dict[int, Any]()

    async def ask(place: int, tool: str, args: dict[str, Any]) -> None:
        with suppress(MCPError):  # it hangs up soon after: an answer may come too late to be heard
            answers[place] = await client.call_tool(tool, args)

    calls = [(RUN_PROBE, {"probe": "first"}), (RUN_PROBE, {"probe": "second"}), ("qa_fetch", URL)]
    calls += [(FINISH, {"detail": "done"}), ("qa_fetch", URL), (RUN_PROBE, {"probe": "first"}), (FINISH, {})]
    async with agent(out) as client, anyio.create_task_group() as tasks:
        for place, (tool, args) in enumerate(calls):
            tasks.start_soon(ask, place, tool, args)
    said = await became(out)
    assert [tool for tool, _ in said["asked"]] == [RUN_PROBE, RUN_PROBE, "qa_fetch", FINISH]
    assert (said["ended"], said["turns"]) == ("the agent finished", 4)
    assert [answers[place].is_error for place in range(3)] == [False] * 3
    late = [text(answers[place])["error"] for place in (4, 5, 6) if place in answers]
    assert set(late) <= {f"this run is over: {said['ended']}"}


async def test_a_finish_that_is_refused_ends_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with agent(out) as client:
        assert (await client.call_tool(FINISH, {"detail": "bored"})).is_error
        await anyio.sleep(2 * LINGER_S)
        assert not (await client.call_tool("qa_fetch", URL)).is_error
    said = await became(out)
    assert (said["ended"], said["turns"]) == ("the agent hung up", 2)


def raw(out: Path, *lines: bytes) -> tuple[dict[str, Any], bytes]:
    """What became of a desk whose agent writes these lines and hangs up, and what it was answered."""
    done = subprocess.run(
        [sys.executable, STAND, str(out), "50"],
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), done.stdout


def test_garbage_is_survived_and_nothing_else_reaches_the_wire(tmp_path: Path) -> None:
    said, answers = raw(tmp_path / "out", b"\xff\xfe{", b"[" * 5000, b'"text"', b'{"jsonrpc":"2.0"}')
    assert (said["ended"], said["asked"], said["fault"]) == ("the agent hung up", [], "")
    assert b"must not reach" not in answers
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in answers.splitlines())


def test_a_message_without_end_ends_the_conversation(tmp_path: Path) -> None:
    said, _ = raw(tmp_path / "out", b" " * (MAX_MESSAGE + 2))
    assert said["ended"] == said["fault"] == f"the agent sent a message of more than {MAX_MESSAGE} bytes"
