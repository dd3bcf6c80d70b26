"""Followers of changes: what they get is bounded, and a slow one costs no other one anything."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise

import anyio
import anyio.lowlevel
import httpx
import pytest

from fleet.events.daemon_events import PersonaAdded
from fleet.events.model import Footer, Header, ToolRequested
from fleet.service.connections import CONNECTIONS
from fleet.service.http_server import listen
from fleet.service.listeners import loopback
from fleet.web import live as web_live
from fleet.web import site
from fleet.web.live import ROOM, LiveState
from tests.web.conftest import AT, Served

pytestmark = pytest.mark.anyio


def told(live: LiveState, number: int) -> None:
    live.daemon(PersonaAdded(at=AT, persona=f"qa-{number}", sha256="0"))


async def test_what_a_slow_follower_missed_is_counted_and_the_latest_is_there() -> None:
    live = LiveState()
    slow, quick = live.follow(), live.follow()
    late, mine = slow.messages(600), quick.messages(600)
    got = 0
    for number in range(0, ROOM + 6, 10):
        for one in range(number, number + 10):
            told(live, one)
        got += len(json.loads(await anext(mine))["lines"])
    message = json.loads(await anext(late))
    assert got == ROOM + 6
    assert [one["words"] for one in message["lines"]] == [f"persona qa-{n} added" for n in range(6, ROOM + 6)]
    assert message["dropped"] == 6
    await mine.aclose()
    await late.aclose()


async def test_what_comes_together_is_one_message_written_once() -> None:
    live = LiveState()
    crowd = [live.follow().messages(600) for _ in range(3)]
    for number in range(3):
        told(live, number)
    texts = [await anext(one) for one in crowd]
    assert [one["words"] for one in json.loads(texts[0])["lines"]] == [
        f"persona qa-{n} added" for n in range(3)
    ]
    assert all(one is texts[0] for one in texts)
    for one in crowd:
        await one.aclose()


async def test_a_run_is_counted_while_it_is_in_flight() -> None:
    live = LiveState()
    messages = live.follow().messages(600)
    head = Header(
        run="r", at=AT, persona="qa-a", persona_sha256="0", driver="playbook", platform="p", chain_id=1,
        rung="observe", jail="bwrap", budget={}, trigger="t",
    )  # fmt: skip
    live.run(head)
    for call in range(1, 8):
        live.run(ToolRequested(run="r", at=AT, call=call, tool="qa_fetch", args={"url": "x"}))
    known = live.runs["r"]
    assert (known.calls, known.question) == (7, 'qa_fetch {"url": "x"}')
    change = json.loads(await anext(messages))
    await messages.aclose()
    assert [one["words"] for one in change["lines"]] == ["qa-a r: qa-a by playbook on p at observe"]
    live.run(Footer(run="r", at=AT, outcome="done", calls=7))
    assert live.runs == {}


async def test_changes_are_events_and_a_place_is_given_back(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "STAY_S", 0.6)
    monkeypatch.setattr(site, "CROWD", 1)
    live = served.pages._live

    async def speak() -> None:
        with anyio.fail_after(60):
            while not live.followers:
                await anyio.lowlevel.checkpoint()
        assert (await served.ask("/changes")).status_code == 429
        told(live, 1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(speak)
        answer = await served.ask("/changes")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: change\ndata: " in answer.text
    assert "persona qa-1 added" in answer.text
    assert live.followers == set()


async def test_followers_take_no_place_of_the_pages_and_leave_with_their_stream(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "STAY_S", 600.0)
    line, live = loopback(0), served.pages._live
    line.listen()
    port = line.getsockname()[1]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, served.app, [line])
        async with AsyncExitStack() as stack:
            crowd = []
            for _ in range(CONNECTIONS + 6):  # each follows before the next one connects
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                writer.write(b"GET /changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
                await reader.readuntil(b"retry: ")
                crowd.append(reader)
            assert len(live.followers) == CONNECTIONS + 6
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"http://127.0.0.1:{port}/log")).status_code == 200
            told(live, 1)
            for reader in crowd:
                await reader.readuntil(b"persona qa-1 added")
            monkeypatch.setattr(site, "STAY_S", 0.2)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(b"GET /changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await reader.read()).endswith(b"0\r\n\r\n")  # and the connection ends with it
        tasks.cancel_scope.cancel()


async def test_a_crowd_is_told_in_turns_so_that_others_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_live, "AT_ONCE", 3)
    live, got = LiveState(), 0
    crowd = [live.follow().messages(600) for _ in range(10)]

    async def read(messages: AsyncGenerator[str, None]) -> None:
        nonlocal got
        await anext(messages)
        got += 1
        await messages.aclose()

    async with anyio.create_task_group() as tasks:
        for messages in crowd:
            tasks.start_soon(read, messages)
        told(live, 1)
        seen = [0]
        while seen[-1] < len(crowd):
            await asyncio.sleep(0)
            seen += [got] if got != seen[-1] else []
    assert max(later - earlier for earlier, later in pairwise(seen)) == 3


async def test_a_follower_lives_as_long_as_it_reads(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOIN_S", "PAUSE_S"):
        monkeypatch.setattr(web_live, name, 0.0)
    line, live = loopback(0), served.pages._live
    line.listen()
    port = line.getsockname()[1]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(listen, served.app, [line], head_s=600.0, life_s=0.2))
        async with AsyncExitStack() as stack:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(b"GET /changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await reader.readuntil(b"retry: ")
            other, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            assert await other.read() == b""  # the life of a connection that came later is over
            told(live, 1)
            await reader.readuntil(b"persona qa-1 added")

            deaf = socket.socket()
            stack.callback(deaf.close)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            deaf.connect(("127.0.0.1", port))
            deaf.sendall(b"GET /changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with anyio.fail_after(30):
                while len(live.followers) < 2:
                    await anyio.lowlevel.checkpoint()
                number = 2
                while len(live.followers) == 2:  # until what nobody reads fills it, and a life more
                    live.daemon(PersonaAdded(at=AT, persona=f"qa-{number}-{'x' * 100_000}", sha256="0"))
                    await reader.readuntil(f"qa-{number}-".encode())
                    number += 1
            told(live, number)
            await reader.readuntil(f"persona qa-{number} added".encode())
        tasks.cancel_scope.cancel()


def test_few_files_mean_few_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, places in ((1_024, 256), (65_536, site.CROWD), (resource.RLIM_INFINITY, site.CROWD)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert site._places() == places
