"""`fleet run` on containers whose engine or owner ends in the middle: no answer is made up, none is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fleet.clock import SystemClock
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.runs.desk.exit_codes import exit_code
from tests.acceptance.conftest import persona, probe, step
from tests.docker.jails import containers, jailed, volumes
from tests.dockerd import DockerEngine, restarted, running_engine
from tests.platforms.firing import Home
from tests.platforms.stand import Stand

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.docker,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not os.environ.get("DOCKER_FULL"), reason="runs on containers take minutes: make docker"
    ),
]

PROBES = 8
"""More than the jails that wait when the engine dies."""
FRONT = 'tools = ["qa_fetch"]\nbudget = { calls = 60, writes = 20, reports = 5 }'
RUN = """
import json, sys
from pathlib import Path
from fleet.app.persona_sets import load
from fleet.cli.console import run
from fleet.cli.run.run import fire_one
print(json.dumps(run(lambda: fire_one(load(Path(sys.argv[1])), None, True)), default=str))
"""
"""`fleet run` of a persona's file."""


@asynccontextmanager
async def running(engine: DockerEngine, at: Home) -> AsyncIterator[subprocess.Popen[str]]:
    """A run as a process, which may act and post; its persona only looks at a page that is healthy."""
    looks = (step("qa_fetch", url=f"{{site}}/?{number}") for number in range(PROBES))
    probes = [probe(f"look-{n}", look, expect="result.status == 200") for n, look in enumerate(looks)]
    persona(at.state.parent, FRONT, *probes)
    write_dial(at.state, Rung.EXERCISE, "an engine dies", "test", SystemClock())
    jail = f'{{ backend = "docker", socket = "{engine.socket}" }}'
    with subprocess.Popen(  # noqa: ASYNC220 - starts at once; it is waited for in a thread
        [sys.executable, "-c", RUN, str(at.state.parent / "personas" / "qa-row.md")],
        env=at.environment() | {"QA_FLEET_JAIL": jail},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def ended(process: subprocess.Popen[str]) -> tuple[int, Any, str]:
    """Its exit code, its report, and what it said."""
    out, err = await asyncio.to_thread(process.communicate, timeout=120)
    return process.returncode, json.loads(out) if out.strip() else None, err


async def answered(at: Home, number: int) -> None:
    """Wait until a run has that many answers in its record."""
    for _ in range(3000):
        texts = [path.read_text() for path in at.state.glob("runs/*/trajectory.jsonl")]
        if any(text.count('"tool.responded"') >= number for text in texts):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no call was answered")


async def test_a_killed_engine_ends_the_run_and_the_next_one_works(bare_stand: Stand, at: Home) -> None:
    before = await bare_stand.entries()
    with running_engine() as engine:
        async with running(engine, at) as process:
            await answered(at, 1)
            engine.kill()
            _, lost, err = await ended(process)
        assert (lost["outcome"], lost["findings"], exit_code(lost)) == ("jail_lost", [], 75), err
        assert "times in a row: the engine did not" in lost["detail"]
        assert jailed(engine) == []
        with restarted(engine) as successor:
            async with running(successor, at) as process:
                _, done, err = await ended(process)
            assert (done["outcome"], done["findings"], exit_code(done)) == ("done", [], 0), err
            assert (containers(successor), volumes(successor), jailed(successor)) == ([], [], [])
    assert await bare_stand.entries() == before


@pytest.mark.parametrize(("number", "exits"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
async def test_an_interrupted_run_removes_its_containers(
    dockerd: DockerEngine, bare_stand: Stand, at: Home, number: signal.Signals, exits: int
) -> None:
    async with running(dockerd, at) as process:
        await answered(at, 1)
        assert containers(dockerd)
        process.send_signal(number)
        code, _, err = await ended(process)
    assert (containers(dockerd), jailed(dockerd)) == ([], [])
    assert code == exits, err
