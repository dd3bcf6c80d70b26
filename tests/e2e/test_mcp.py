"""An outside agent drives one run: a real MCP client starts `fleet personas mcp`, as an agent would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from fleet.drivers.mcp import MAX_MESSAGE
from fleet.events.model import Footer, GateDenied, Header
from fleet.events.trajectory import read
from tests.e2e.conftest import Fleet, processes_of

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(240)]


def started(state: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "fleet.cli", "personas", "mcp", "qa-ux", "--platform", "devnet"],
        env={"STATE_DIRECTORY": str(state), "HOME": str(state)},
    )


@asynccontextmanager
async def agent(state: Path) -> AsyncIterator[Client]:
    async with Client(started(state)) as client:
        yield client


def ended(fleet: Fleet, before: set[str]) -> dict[str, Any]:
    """The run that is new, once it has an outcome: clean-up outlives the agent."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        runs = [run for run in fleet("runs", "list", "--json").data if run["run"] not in before]
        if runs and runs[0]["state"] == "ended":
            found: dict[str, Any] = runs[0]
            return found
        time.sleep(0.5)
    raise AssertionError("the run has no outcome")


def known(fleet: Fleet) -> set[str]:
    said = fleet("runs", "list", "--json")
    return {run["run"] for run in said.data} if said.code == 0 else set()


def text(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.content[0].text)
    return answer


@pytest.mark.anyio
async def test_an_agent_meets_the_gate_and_what_it_shows_is_proven_and_posted(
    devnet: Fleet, shared: Path
) -> None:
    assert devnet("dial", "exercise", "--reason", "test").code == 0
    before = known(devnet)
    async with agent(shared) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"qa_call", "qa_fetch", "qa_browse", "run_probe", "report_finding", "finish"}
        off_limits = await client.call_tool("qa_fetch", {"url": "http://169.254.169.254/latest"})
        assert text(off_limits)["error"].startswith("scope: ")
        raised = await client.call_tool("qa_publish", {"name": "claude", "source": "fn frame() {}"})
        assert (raised.is_error, text(raised)["error"]) == (True, "no tool 'qa_publish' is on offer")
        seen = await client.call_tool("run_probe", {"probe": "method-405"})
        assert (seen.is_error, text(seen)["state"]) == (False, "finding")
        lie = {
            "title": "the guide cannot be had at all",
            "severity": "critical",
            "steps": [{"tool": "qa_fetch", "args": {"url": "{site}/llms.txt"}}],
            "expect": "result.status == 599",
        }
        told = text(await client.call_tool("report_finding", lie))
        assert (told["state"], told["then"]) == ("finding", "a person reviews it")
    run = await anyio.to_thread.run_sync(ended, devnet, before)
    assert (run["persona"], run["trigger"]) == ("qa-ux", "mcp")
    events = list(read(shared / "runs" / run["run"] / "trajectory.jsonl"))
    head, foot = events[0], events[-1]
    assert isinstance(head, Header)
    assert isinstance(foot, Footer)
    assert (head.driver, foot.outcome) == ("mcp", run["outcome"])
    assert {event.rule for event in events if isinstance(event, GateDenied)} >= {"scope", "arguments"}
    findings = devnet("items", "findings", "--json").data
    mine = {row["title"]: row["state"] for row in findings if row["run"] == run["run"]}
    posted = {title for title, state in mine.items() if state == "posted"}
    assert [title for title in posted if "GET /api/persona of /llms.txt answers 405" in title] == list(posted)
    assert {title: state for title, state in mine.items() if title not in posted} == {
        "GET {site}/llms.txt: 200": "unverified"
    }
    assert not (shared / "runs" / run["run"] / "keys").exists()


def test_an_agent_that_is_killed_leaves_a_run_that_ends(devnet: Fleet, shared: Path) -> None:
    """As its client does it: the whole process group, by SIGKILL; clean-up goes on in another session."""
    before = known(devnet)
    there = started(shared)
    with subprocess.Popen(
        [there.command, *there.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(there.env or {})},
        start_new_session=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        who = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who}
        server.stdin.write(json.dumps(hello).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        os.killpg(server.pid, signal.SIGKILL)
    run = ended(devnet, before)
    assert (run["outcome"], run["detail"]) == ("incomplete", "13 of 13 probes are open")
    assert [line for line in processes_of(shared) if " mcp " in line] == []


def test_a_message_without_end_ends_the_run_and_the_command_while_the_agent_stays(
    devnet: Fleet, shared: Path
) -> None:
    before, there = known(devnet), started(shared)
    with subprocess.Popen(
        [there.command, *there.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(there.env or {})},
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        with suppress(BrokenPipeError):
            server.stdin.write(b" " * (MAX_MESSAGE + 2))
            server.stdin.flush()
        assert server.wait(90) == 2
        said = server.stderr.read().decode()
        with suppress(BrokenPipeError):
            server.stdin.close()
    assert f"fleet: the agent sent a message of more than {MAX_MESSAGE} bytes\n" in said
    assert "  try: send each message on one line" in said
    assert ended(devnet, before)["trigger"] == "mcp"


def test_a_person_at_a_terminal_is_told_what_it_is_for(fleet: Fleet) -> None:
    said = fleet("personas", "mcp", "qa-ux")
    assert (said.code, said.out) == (2, "")
    assert "stdin is not a pipe" in said.err
