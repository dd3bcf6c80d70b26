"""The page that follows a run: over a real unix socket, no record twice, none missing, for the owner only."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx
import pytest

from fleet.clock import SystemClock
from fleet.events.live import Hub
from fleet.events.model import Event
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
from fleet.service.follow import CROWD, Followers
from fleet.service.http_server import serve
from fleet.service.listeners import listeners
from fleet.service.snapshot import DaemonSnapshot
from tests.events.samples import FOOTER, HEADER, answers, asks, ends, piece, said, starts

pytestmark = pytest.mark.anyio


class Idle:
    """A daemon of which nobody asks anything else."""

    is_ready, beat_age_s = True, 0.0

    async def snapshot(self) -> DaemonSnapshot:
        raise NotImplementedError

    async def metrics(self) -> bytes:
        return b""


class Run:
    """One run with its file below a state directory."""

    def __init__(self, state: Path, hub: Hub, run: str = "r1") -> None:
        (state / "runs" / run).mkdir(parents=True)
        self.path = state / "runs" / run / "trajectory.jsonl"
        sink = TrajectoryFile(self.path, sync=False)
        self.stream = Stream(run, clock=SystemClock(), sink=sink, readers=(hub,))

    def emit(self, *events: Event) -> None:
        for event in events:
            self.stream.emit(event)


@asynccontextmanager
async def served(state: Path, hub: Hub, *, stay_s: float = 20.0) -> AsyncIterator[httpx.AsyncClient]:
    lines = listeners(state, _free_port())
    address = lines[1].getsockname()[1]
    async with anyio.create_task_group() as tasks:
        followers = Followers(hub, state, stay_s)

        async def run() -> None:
            await serve(Idle(), state, lines, followers=followers)

        tasks.start_soon(run)
        transport = httpx.AsyncHTTPTransport(uds=str(state / "fleet.sock"))
        async with httpx.AsyncClient(transport=transport, base_url="http://fleet") as client:
            with anyio.fail_after(20):
                while not (await _up(client)):  # noqa: ASYNC110 -- a server says so to nobody
                    await anyio.sleep(0.02)
            client.headers["x-port"] = str(address)
            yield client
        tasks.cancel_scope.cancel()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


async def _up(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/healthz")).status_code == 200
    except httpx.TransportError:
        return False


async def follow(client: httpx.AsyncClient, last: str = "", run: str = "r1") -> list[tuple[str, str]]:
    """Every event until the page ends: its id and its type."""
    found: list[tuple[str, str]] = []
    headers = {"last-event-id": last} if last else {}
    async with client.stream("GET", f"/runs/{run}/events", headers=headers, timeout=60) as answer:
        assert answer.status_code == 200
        ident = ""
        async for line in answer.aiter_lines():
            key, _, value = line.partition(": ")
            if key == "id":
                ident = value
            elif key == "data" and value != "{}":
                found.append((ident, json.loads(value)["type"]))
                ident = ""
    return found


async def test_what_is_recorded_comes_first_then_what_happens_until_the_footer(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER, asks(1))
    got: list[tuple[str, str]] = []
    async with served(tmp_path, hub) as client, anyio.create_task_group() as tasks:

        async def read() -> None:
            got.extend(await follow(client))

        tasks.start_soon(read)
        await anyio.sleep(0.2)
        run.emit(answers(1), starts(0), piece(0, "x"), ends(0))
        await anyio.sleep(0.05)
        run.emit(FOOTER)
    assert got == [
        ("1", "header"),
        ("2", "tool.requested"),
        ("3", "tool.responded"),
        ("", "message.started"),
        ("", "message.delta"),
        ("4", "message.said"),
        ("", "message.done"),
        ("5", "footer"),
    ]


async def test_no_record_is_missing_or_twice_however_busy_the_run_is(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER, *(asks(call) for call in range(300)))
    got: list[tuple[str, str]] = []
    async with served(tmp_path, hub) as client, anyio.create_task_group() as tasks:

        async def read() -> None:
            got.extend(await follow(client))

        tasks.start_soon(read)
        for call in range(300):
            run.emit(answers(call))
            await anyio.lowlevel.checkpoint()
        run.emit(FOOTER)
    assert [int(ident) for ident, _ in got] == list(range(1, 603))


async def test_whoever_comes_again_goes_on_where_it_was_and_is_told_the_end(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER, asks(1), answers(1))
    async with served(tmp_path, hub, stay_s=0.1) as client:
        assert await follow(client, last="2") == [("3", "tool.responded")]
        run.emit(said(0, "x"), FOOTER)
        assert await follow(client, last="3") == [("4", "message.said"), ("5", "footer")]
        assert (await client.get("/runs/r1/events", headers={"last-event-id": "5"})).status_code == 204


async def test_a_run_of_the_past_is_shown_whole(tmp_path: Path) -> None:
    Run(tmp_path, Hub()).emit(HEADER, FOOTER)
    async with served(tmp_path, Hub()) as client:
        assert await follow(client) == [("1", "header"), ("2", "footer")]


@pytest.mark.parametrize("run", ["nobody", "..%2f..", "R1", "a" * 65])
async def test_a_run_that_is_none_is_not_found(tmp_path: Path, run: str) -> None:
    async with served(tmp_path, Hub()) as client:
        assert (await client.get(f"/runs/{run}/events")).status_code == 404


async def test_a_port_of_loopback_does_not_show_a_run(tmp_path: Path) -> None:
    Run(tmp_path, Hub()).emit(HEADER, FOOTER)
    async with served(tmp_path, Hub()) as client, httpx.AsyncClient() as other:
        port = client.headers["x-port"]
        assert (await other.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200
        assert (await other.get(f"http://127.0.0.1:{port}/runs/r1/events")).status_code == 404


async def test_a_caller_that_goes_away_is_forgotten(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER)
    async with served(tmp_path, hub) as client:
        async with client.stream("GET", "/runs/r1/events") as answer:
            assert answer.status_code == 200
        await anyio.sleep(0.1)
        run.emit(asks(1), answers(1))
        await anyio.sleep(0.1)
        run.emit(FOOTER)
        assert (await follow(client))[-1] == ("4", "footer")


async def test_whoever_does_not_keep_up_is_sent_away_and_misses_nothing(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER)
    got: list[tuple[str, str]] = []
    async with served(tmp_path, hub) as client, anyio.create_task_group() as tasks:

        async def read() -> None:
            got.extend(await follow(client))

        tasks.start_soon(read)
        await anyio.sleep(0.3)
        run.emit(*(asks(call) for call in range(1_500)), FOOTER)
    first = [int(ident) for ident, _ in got]
    assert first == list(range(1, len(first) + 1))
    assert len(first) < 1_502
    async with served(tmp_path, hub) as client:
        rest = [int(ident) for ident, _ in await follow(client, last=str(first[-1]))]
    assert first + rest == list(range(1, 1_503))


async def test_no_more_follow_than_there_is_room_for_however_fast_they_come(tmp_path: Path) -> None:
    hub = Hub()
    run = Run(tmp_path, hub)
    run.emit(HEADER)
    ask = b"GET /runs/r1/events HTTP/1.1\r\nHost: fleet\r\n\r\n"
    async with served(tmp_path, hub) as client:
        lines = [await asyncio.open_unix_connection(str(tmp_path / "fleet.sock")) for _ in range(CROWD + 4)]
        for _, writer in lines:
            writer.write(ask)
        with anyio.fail_after(30):
            said = [int((await reader.readline()).split()[1]) for reader, _ in lines]
        assert sorted(said) == [200] * CROWD + [429] * 4
        for _, writer in lines:
            writer.close()
        with anyio.fail_after(30):
            while await status(client) == 429:  # noqa: ASYNC110 -- until the server has seen them go
                await anyio.sleep(0.02)
        assert hub.follow("r1") is not None


async def status(client: httpx.AsyncClient) -> int:
    async with client.stream("GET", "/runs/r1/events") as answer:
        return answer.status_code
