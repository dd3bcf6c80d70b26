"""The fleet's own listener: what a platform asks it for is heard once it is asked, and nothing else is."""

from __future__ import annotations

import asyncio
import socket
from random import Random
from urllib.parse import urlsplit

import pytest
from pydantic import ValidationError

from fleet.broker import listener as room
from fleet.broker.listener import WORD, Listener, listening
from fleet.config import Platform
from fleet.drivers.explore.listened import heard
from tests.gate.conftest import HandClock

HERE = {"site": "http://127.0.0.1:8000"}
ASKED, OTHER = "qah0123456789ab", "qahba9876543210"


def _platform(**web: object) -> Platform:
    return Platform.model_validate({"name": "x", "web": {**HERE, **web}})


async def _send(url: str, request: bytes) -> bytes:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_an_explorers_word_is_one_that_the_listener_knows() -> None:
    address = heard(Random(1))
    assert address.startswith("{listener}/")
    assert WORD.fullmatch(address.removeprefix("{listener}/").encode())


@pytest.mark.anyio
async def test_a_word_is_heard_of_what_was_sent_and_since_it_was_sent() -> None:
    clock = HandClock()
    async with listening(_platform(), clock) as one:
        sent = {"url": f"http://x/?to={one.url}/{ASKED}", "fields": {"a": [f"{one.url}/{OTHER}"]}}
        assert one.heard(sent, clock.monotonic()) == []
        before = clock.monotonic()
        answer = await _send(one.url, b"GET /" + ASKED.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert one.heard(sent, before) == [ASKED]
        assert one.heard({"url": f"{one.url}/{OTHER}"}, before) == []
        clock.seconds += 1
        assert one.heard(sent, clock.monotonic()) == []


@pytest.mark.anyio
async def test_what_is_no_word_in_a_first_line_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_WORDS", 2)
    clock = HandClock()
    async with listening(_platform(), clock) as one:
        for request in (b"\x16\x03\x01\r\n", b"GET / HTTP/1.1\r\nX: " + ASKED.encode() + b"\r\n\r\n"):
            await _send(one.url, request)
        assert one.heard({"a": ASKED}, 0) == []
        words = [f"qah{number:012x}" for number in range(3)]
        for word in words:
            await _send(one.url, f"GET /{word} HTTP/1.1\r\n\r\n".encode())
        assert one.heard({"a": words}, 0) == words[1:]


LISTENS = {
    "a port of its own": ({}, True),
    "another host": ({"site": "http://10.1.2.3:8000"}, False),
    "one more host elsewhere": ({"hosts": ("example.org:80",)}, False),
    "off": ({"listener": "off"}, False),
    "a stated one": ({"site": "http://10.1.2.3:8000", "listener": "http://10.1.2.4:8899"}, True),
}


@pytest.mark.parametrize(("web", "listens"), LISTENS.values(), ids=LISTENS)
def test_where_there_is_a_listener(web: dict[str, object], listens: bool) -> None:
    assert _platform(**web).web.listens is listens


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8:80", "http://example.org:8899", "http://0.0.0.0:8899", "http://[::]:8899"]
)
def test_a_listener_is_at_an_address_of_a_private_network(url: str) -> None:
    with pytest.raises(ValidationError, match="not an address of this machine in a private network"):
        _platform(listener=url)


@pytest.mark.anyio
async def test_a_port_that_is_taken_costs_the_listener_alone(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with listening(_platform(listener=url), HandClock()) as one:
            assert isinstance(one, Listener)
            assert one.url == ""
    assert f"web.listener: {url}: " in caplog.text


@pytest.mark.anyio
async def test_an_address_of_another_machine_opens_no_port_here(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with listening(_platform(listener=f"http://10.255.255.254:{port}"), HandClock()) as one:
        assert one.url == ""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    assert "nothing is heard there" in caplog.text
