"""What every backend does alike: the real jails and the double without a fence run the same suite."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.jail.battery.attempts import PROBES
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import End, Image, Jail, Limits, Outcome
from tests.dockerd import DockerEngine
from tests.doubles.jail import LocalJail

IMAGE = Image(
    mounts=((PROBES, "probes"),), guest="probes.acts", limits=Limits(stdout=1 << 16, stderr=1 << 12)
)

pytestmark = [pytest.mark.anyio, pytest.mark.jail]


def open_backend(request: pytest.FixtureRequest, spool: Path) -> Jail:
    """The backend that the fixture's parameter names."""
    if request.param == "docker":
        engine: DockerEngine = request.getfixturevalue("dockerd")
        return DockerJail(IMAGE, pool=0, spool=spool, engine=EngineChoice(socket=engine.socket))
    if request.param == "local":
        return LocalJail(IMAGE)
    return BwrapJail(IMAGE, pool=1 if request.param == "forks" else 0, spool=spool)


@pytest.fixture(params=["bwrap", "forks", "docker", "local"])
async def jail(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Jail]:
    backend = open_backend(request, tmp_path)
    yield backend
    await backend.aclose()
    assert os.listdir(tmp_path) == []


async def act(jail: Jail, do: str, deadline_s: float = 10, **words: Any) -> Outcome:
    return await jail.call(json.dumps({"do": do, **words}).encode() + b"\n", deadline_s=deadline_s)


async def test_an_answer_comes_back(jail: Jail) -> None:
    outcome = await act(jail, "echo", text="hello")
    assert (outcome.end, outcome.code, outcome.stdout) == (End.EXITED, 0, b"hello\n")
    assert outcome.stderr == b""


async def test_a_long_request_arrives_whole(jail: Jail) -> None:
    outcome = await act(jail, "echo", text="x" * 60_000, pad="y" * 400_000)
    assert outcome.stdout == b"x" * 60_000 + b"\n"


@pytest.mark.parametrize("code", [1, 3, 137, 255])
async def test_an_exit_status_is_what_it_was(jail: Jail, code: int) -> None:
    outcome = await act(jail, "leave", code=code)
    assert (outcome.end, outcome.code) == (End.EXITED, code)


async def test_a_signal_is_told_from_a_status(jail: Jail) -> None:
    outcome = await act(jail, "crash", signal=int(signal.SIGSEGV))
    assert (outcome.end, outcome.code) == (End.SIGNALED, signal.SIGSEGV)


async def test_an_exception_of_the_guest_is_a_failure_with_its_words(jail: Jail) -> None:
    outcome = await act(jail, "fail")
    assert (outcome.end, outcome.code) == (End.EXITED, 1)
    assert b"RuntimeError: the guest failed" in outcome.stderr


async def test_the_deadline_ends_it(jail: Jail) -> None:
    outcome = await act(jail, "sleep", deadline_s=0.3)
    assert (outcome.end, outcome.code) == (End.TIMEOUT, 0)
    assert 0.3 <= outcome.seconds < 2
    if not isinstance(jail, LocalJail):
        assert outcome.cpu_s is not None
        assert outcome.memory is not None


@pytest.mark.parametrize(("fd", "kept"), [(1, (1 << 16, 0)), (2, (0, 1 << 12))])
async def test_a_flood_is_cut_at_the_cap(jail: Jail, fd: int, kept: tuple[int, int]) -> None:
    outcome = await act(jail, "flood", fd=fd)
    assert outcome.end is End.FLOOD
    assert (len(outcome.stdout), len(outcome.stderr)) == kept


async def test_output_of_exactly_the_cap_is_no_flood(jail: Jail) -> None:
    outcome = await act(jail, "lines", count=256)
    assert (outcome.end, len(outcome.stdout)) == (End.EXITED, 1 << 16)


async def test_the_way_out_is_served_for_the_time_of_the_call(jail: Jail) -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def egress(listener: socket.socket) -> AsyncIterator[None]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            steps.append((await reader.readline()).decode().strip())
            writer.write(b"broker")
            writer.close()

        async with await asyncio.start_server(answer, sock=listener):
            steps.append("open")
            yield
        steps.append("closed")

    outcome = await jail.call(b'{"do": "connect"}\n', deadline_s=10, egress=egress)
    assert outcome.stdout == b"broker\n"
    assert steps == ["open", "who", "closed"]


async def test_without_a_broker_there_is_no_way_out(jail: Jail) -> None:
    assert (await act(jail, "connect")).stdout == b"ConnectionRefusedError\n"


async def test_a_broker_that_cannot_start_fails_the_call(jail: Jail) -> None:
    @asynccontextmanager
    async def egress(listener: socket.socket) -> AsyncIterator[None]:
        raise RuntimeError("no broker")
        yield

    with pytest.raises(RuntimeError, match="no broker"):
        await jail.call(b'{"do": "echo", "text": "x"}\n', deadline_s=10, egress=egress)


async def test_a_cancelled_call_leaves_nothing(jail: Jail) -> None:
    with anyio.move_on_after(0.5) as scope:
        await act(jail, "sleep")
    assert scope.cancelled_caught
    assert (await act(jail, "echo", text="next")).stdout == b"next\n"


async def test_calls_side_by_side_do_not_mix(jail: Jail) -> None:
    outcomes = await asyncio.gather(*(act(jail, "echo", text=str(number)) for number in range(4)))
    assert [outcome.stdout for outcome in outcomes] == [b"0\n", b"1\n", b"2\n", b"3\n"]
