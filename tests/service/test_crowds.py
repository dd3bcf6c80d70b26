"""Strangers at the port: who says nothing, or not all of it, costs nobody else an answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from fleet.config import FleetConfig, HookSection
from fleet.service.connections import CONNECTIONS, REQUESTS
from fleet.service.ingress_http import CROWD
from fleet.service.snapshot import DaemonSnapshot
from fleet.triggers.hooks.webhook import headers
from tests.service.test_ingress import SECRET, WISH, Door, Well, opened, served

pytestmark = pytest.mark.anyio
PATIENT = 600.0
"""Seconds: a deadline that no test waits for."""
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def door(tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    async with opened(tmp_path) as made:
        yield made


@asynccontextmanager
async def lines(
    port: int, count: int, says: bytes = b"", address: str = "127.0.0.1"
) -> AsyncIterator[list[Line]]:
    """So many connections to the port from an address, each of which says this and no more."""
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            line = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            stack.callback(line[1].close)
            line[1].write(says)
            made.append(line)
        yield made


async def ended(line: Line) -> bytes:
    """All that is said on a connection until the server ends it."""
    said = b""
    with anyio.fail_after(30), suppress(ConnectionResetError):
        while part := await line[0].read(65_536):
            said += part
    return said


async def status(line: Line) -> int:
    with anyio.fail_after(30):
        return int((await line[0].readuntil(b"\r\n")).split()[1])


def is_open(line: Line) -> bool:
    return not line[0].at_eof() and line[0].exception() is None


async def by_socket(door: Door, method: str, path: str, body: bytes = b"") -> int:
    line = httpx.AsyncHTTPTransport(uds=str(door.state / "fleet.sock"))
    async with httpx.AsyncClient(transport=line, base_url="http://fleet") as client:
        return (await client.request(method, path, content=body)).status_code


async def by_port(port: int, ident: str = "", hook: str = "deploy", address: str = "127.0.0.1") -> int:
    """A look at the port's page, or a whole delivery."""
    line = httpx.AsyncHTTPTransport(local_address=address)
    async with httpx.AsyncClient(transport=line, base_url=f"http://127.0.0.1:{port}") as client:
        if not ident:
            return (await client.get("/healthz")).status_code
        signed = headers(SECRET, ident, int(time.time()), b"{}")
        return (await client.post(f"/hooks/{hook}", content=b"{}", headers=signed)).status_code


def head(hook: str, **pairs: str) -> bytes:
    """The head of a delivery of which no byte of the body follows."""
    fields = {"host": "127.0.0.1", "content-length": "100"} | pairs
    return "".join(
        [
            f"POST /hooks/{hook} HTTP/1.1\r\n",
            *(f"{key}: {value}\r\n" for key, value in fields.items()),
            "\r\n",
        ]
    ).encode()


def forged(hook: str = "deploy", **pairs: str) -> bytes:
    """A head that passes, of a delivery that no body can complete."""
    return head(hook, **headers(b"o" * 32, "delivery-1", int(time.time()), b"{}") | pairs)


async def test_a_crowd_that_is_silent_at_the_port_closes_neither_the_socket_nor_the_port(door: Door) -> None:
    async with served(door, head_s=PATIENT, life_s=PATIENT) as port, lines(port, 70) as crowd:
        assert await by_socket(door, "GET", "/healthz") == 200
        assert await by_socket(door, "POST", "/runs", json.dumps(WISH).encode()) == 202
        assert await by_port(port, "delivery-1") == 202
        assert await by_port(port) == 200
        made_room = 70 - CONNECTIONS + 1  # for the crowd's own last ones, and for the delivery
        assert [await ended(line) for line in crowd[:made_room]] == [b""] * made_room
        assert all(is_open(line) for line in crowd[made_room + 1 :])


async def test_a_crowd_at_the_socket_closes_no_port(door: Door) -> None:
    async with served(door, head_s=PATIENT, life_s=PATIENT) as port, AsyncExitStack() as stack:
        for _ in range(CONNECTIONS + 6):
            _, writer = await asyncio.open_unix_connection(str(door.state / "fleet.sock"))
            stack.callback(writer.close)
        assert await by_port(port, "delivery-1") == 202
        assert await by_socket(door, "GET", "/healthz") == 200


async def test_who_has_asked_is_not_put_out_for_who_has_not(door: Door) -> None:
    """A full house of requests at work: the next one is told to come again, and the work goes on."""
    ask = head("deploy", **headers(SECRET, "delivery-1", int(time.time()), b"{}"))
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, CROWD, ask) as at_work,
        lines(port, CONNECTIONS - CROWD) as silent,
        lines(port, CONNECTIONS - CROWD) as more,
    ):
        assert [await ended(line) for line in silent] == [b""] * len(silent)
        assert [is_open(line) for line in at_work + more] == [True] * CONNECTIONS
        at_work[0][1].write(b"x" * 100)
        assert await status(at_work[0]) == 401


class Busy(Well):
    """A daemon whose snapshot does not come."""

    async def snapshot(self) -> DaemonSnapshot:
        await anyio.sleep_forever()
        raise AssertionError


async def test_a_house_full_of_work_says_so_and_each_listener_has_its_own(door: Door) -> None:
    door.well = Busy()
    ask = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, CONNECTIONS, ask) as at_work,
        lines(port, 1) as (late,),
    ):
        assert (await ended(late)).startswith(b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n")
        assert all(is_open(line) for line in at_work)
        assert await by_socket(door, "GET", "/healthz") == 200


@pytest.mark.parametrize("says", [b"", b"POST /hooks/deploy HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"G"])
async def test_a_head_that_does_not_come_ends_its_connection(door: Door, says: bytes) -> None:
    async with served(door, head_s=0.3, life_s=PATIENT) as port, lines(port, 1, says) as (line,):
        assert await ended(line) == b""


async def test_a_second_head_has_its_deadline_too_and_drops_do_not_set_it_back(door: Door) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with served(door, head_s=0.3, life_s=PATIENT) as port, lines(port, 1, whole) as (line,):
        assert await status(line) == 200
        with anyio.fail_after(30), suppress(ConnectionError):
            while is_open(line):
                line[1].write(b"G")
                await asyncio.sleep(0.05)
                with anyio.move_on_after(0.01):
                    await line[0].read(65_536)


async def test_bodies_that_no_head_can_make_good_are_not_awaited(door: Door) -> None:
    """Twelve of each: all are answered at once, and a good one beside them is taken."""
    signed = headers(SECRET, "delivery-1", int(time.time()), b"{}")
    late = headers(SECRET, "delivery-1", int(time.time()) - 400, b"{}")
    unsigned = {key: value for key, value in signed.items() if key != "x-qa-signature"}
    wrong = [
        (head("deploy"), 400),
        (head("deploy", **unsigned), 400),
        (head("nobody", **signed), 404),
        (head("deploy", **signed | {"x-qa-signature": "sha256=0"}), 400),
        (head("deploy", **late), 401),
        (head("deploy", **signed | {"content-length": "300000"}), 413),
    ]
    async with served(door, head_s=PATIENT, life_s=PATIENT) as port:
        for says, expected in wrong:
            async with lines(port, 12, says) as crowd:
                assert [await status(line) for line in crowd] == [expected] * 12
                assert all([b"connection: close" in await ended(line) for line in crowd])
        assert await by_port(port, "delivery-1") == 202
    assert len(await door.rows()) == 2


async def test_bodies_that_do_not_come_cost_only_their_own_webhook(door: Door) -> None:
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, CROWD, forged("other")) as slow,
    ):
        async with lines(port, 4, forged("other")) as more:
            assert [await status(line) for line in slow[:4]] == [429] * 4  # the slowest make room
            assert all(map(is_open, more))
        assert await by_port(port, "delivery-1") == 202
        assert await by_socket(door, "POST", "/runs", json.dumps(WISH).encode()) == 202
        slow[-1][1].write(b"x" * 100)
        assert await status(slow[-1]) == 401
        assert await by_port(port, "delivery-2", hook="other") in (200, 202)  # there is room again


@pytest.mark.parametrize("sent", [0, 1, 99])
@pytest.mark.parametrize("count", [CROWD, 12, 40])
async def test_slow_bodies_take_no_place_of_a_signed_delivery(door: Door, count: int, sent: int) -> None:
    """Plausible heads whose bodies do not come: whoever sends a whole delivery is answered at once."""
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, count, forged() + b"x" * sent),
    ):
        for number in range(3):
            assert await by_port(port, f"signed-{number}") == 202


PIPELINED = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def test_a_connection_has_a_limited_number_of_requests(door: Door) -> None:
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, 1, PIPELINED * (REQUESTS + 50)) as (line,),
    ):
        assert (await ended(line)).count(b"HTTP/1.1 200 OK") == REQUESTS


async def test_who_reads_no_answer_keeps_no_place(door: Door) -> None:
    class Wordy(Well):
        async def metrics(self) -> bytes:
            return b"x" * 4_000_000

    door.well = Wordy()
    ask = PIPELINED.replace(b"healthz", b"metrics") * 70
    async with served(door, head_s=PATIENT, life_s=PATIENT) as port, lines(port, 70, ask) as unread:
        await anyio.sleep(0.5)
        for number in range(3):
            assert await by_port(port) == 200
            assert await by_port(port, f"delivery-{number}") == 202
        assert await by_socket(door, "GET", "/healthz") == 200
        assert unread


CROWD_AT, OTHER_AT = "127.0.0.2", "127.0.0.3"


def delivery(ident: str, **pairs: str) -> tuple[bytes, bytes]:
    """The head and the body of a delivery that is taken."""
    body = b'{"ref": "main"}'
    fields = headers(SECRET, ident, int(time.time()), body) | {"content-length": str(len(body))} | pairs
    return head("deploy", **fields), body


@pytest.mark.parametrize("sent", [0, 1, 14])
@pytest.mark.parametrize("count", [CROWD, 12, 40])
async def test_one_senders_slow_bodies_end_no_slow_delivery_of_another(
    door: Door, count: int, sent: int
) -> None:
    """A signed delivery that comes in pieces is taken, whatever another sender begins after it."""
    first, body = delivery("delivery-1")
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, 1, first + body[:sent], OTHER_AT) as (slow,),
        lines(port, count, forged(), CROWD_AT) as crowd,
    ):
        turned_away = count + 1 - CROWD
        assert [await status(line) for line in crowd[:turned_away]] == [429] * turned_away
        slow[1].write(body[sent:])
        assert await status(slow) == 202
        assert all(map(is_open, crowd[turned_away:]))


@pytest.mark.parametrize("written", ["10.0.0.{}", "10.0.0.9, 10.0.0.{}", "10.0.0.{}, 10.0.0.{}"])
async def test_behind_a_proxy_the_operators_header_tells_senders_apart(door: Door, written: str) -> None:
    def by(number: int) -> dict[str, str]:
        return {"x-forwarded-for": written.format(number, number)}

    door.doors = replace(
        door.doors,
        config=lambda: FleetConfig(hooks={"deploy": HookSection()}, sender_header="x-forwarded-for"),
    )
    first, body = delivery("delivery-1", **by(3))
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, 1, first) as (slow,),
        lines(port, 12, forged(**by(2))) as crowd,
    ):
        assert [await status(line) for line in crowd[:5]] == [429] * 5
        slow[1].write(body)
        assert await status(slow) == 202


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/readyz"])
@pytest.mark.parametrize("requests", [1, 70])
async def test_a_house_full_of_one_callers_work_has_room_for_another(
    door: Door, path: str, requests: int
) -> None:
    """Of seventy connections that ask and read nothing, or whose answers do not come."""
    door.well = Busy()
    ask = PIPELINED.replace(b"/healthz", path.encode()) * requests
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, 70, ask, CROWD_AT) as crowd,
    ):
        await anyio.sleep(0.2)
        for number in range(3):
            assert await by_port(port, address=OTHER_AT) == 200
            assert await by_port(port, f"delivery-{number}", address=OTHER_AT) == 202
        assert crowd


async def test_a_silent_crowd_closes_no_connection_of_another_caller(door: Door) -> None:
    async with (
        served(door, head_s=PATIENT, life_s=PATIENT) as port,
        lines(port, 1, b"G", OTHER_AT) as (early,),
        lines(port, CONNECTIONS + 6, address=CROWD_AT) as crowd,
    ):
        assert [await ended(line) for line in crowd[:7]] == [b""] * 7
        early[1].write(PIPELINED[1:])
        assert await status(early) == 200
