"""qa_fetch with `alive`: a request that ends its server, and requests that only look like it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sandbox import http
from sandbox.errors import Deadline, Failure
from sandbox.pages.endings import Ended, watched
from sandbox.pages.latency import Measured
from tests.sandbox.doubles import Bench, Server, bench, http_answer, read_request

pytestmark = pytest.mark.anyio
AWAY_S = 0.4


async def asked(path: str) -> tuple[dict[str, Any], list[str]]:
    """What the tool says of a path of a server that ends at `/%`, and is back after `AWAY_S`: it closes that
    connection and its listener."""
    stands: list[Bench] = []
    returns: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site = stands[0].site
        got = await read_request(reader)
        site.got.append(got)
        if got.path == "/%":
            site.leave()
            returns.append(asyncio.create_task(back(site)))
        elif got.path != "/cut":
            writer.write(http_answer(200, b"here"))

    async def back(site: Server) -> None:
        await asyncio.sleep(AWAY_S)
        await site.listen()

    async with bench(raw=serve) as it:
        stands.append(it)
        args = {"url": f"{it.site.url}{path}", "alive": f"{it.site.url}/"}
        return await it.run("qa_fetch", args), [one.path for one in it.site.got]


async def test_a_request_that_ends_its_server_is_told_from_its_silence_and_return() -> None:
    result, got = await asked("/%")
    assert (result["ended"], result["status"], result["error_class"]) == (True, 0, "http")
    assert AWAY_S * 900 < result["silent_ms"] < 10_000
    assert got == ["/", "/%", "/"]


async def test_a_connection_that_is_cut_ends_nothing() -> None:
    result, got = await asked("/cut")
    assert (result["ended"], result["error_class"]) == (False, "unreachable")
    assert got == ["/", "/cut", "/"]


async def test_an_answer_is_an_answer() -> None:
    result, got = await asked("/x")
    assert (result["ended"], result["status"], result["text"]) == (False, 200, "here")
    assert got == ["/", "/x"]


async def test_a_gateway_speaks_for_a_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [200, 502, 502, 503, 200]

    def get(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply:
        return http.HttpReply(said.pop(0), {}, b"", 1.0)

    monkeypatch.setattr("sandbox.pages.endings.get", get)
    page, alive = http.HttpRequest("GET", "http://s/%"), http.HttpRequest("GET", "http://s/")
    assert isinstance(watched(page, alive, Deadline(9)), Ended)
    assert said == []
    said[:] = [200, 502, 200]
    with pytest.raises(Failure, match="HTTP 502"):
        watched(page, alive, Deadline(9))
    said[:] = [502, 200, 400]
    assert isinstance(watched(page, alive, Deadline(9)), Measured)


async def test_a_server_that_is_not_back_in_time_was_not_seen_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([200])

    def get(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply:
        return http.HttpReply(next(answers, 502), {}, b"", 1.0)

    monkeypatch.setattr("sandbox.pages.endings.get", get)
    page = http.HttpRequest("GET", "http://s/")
    with pytest.raises(Failure) as lost:
        watched(page, page, Deadline(0.3))
    assert (lost.value.error_class, str(lost.value)) == ("unreachable", "HTTP 502")


async def test_the_other_page_is_of_the_same_server() -> None:
    async with bench() as it:
        other = it.site.url.replace("127.0.0.1", "localhost")
        result = await it.run("qa_fetch", {"url": f"{it.site.url}/%", "alive": f"{other}/"})
    assert (result["error_class"], it.site.got) == ("bad_request", [])
    assert result["error"] == "/args/alive: not on the page's own server"


@pytest.mark.parametrize("more", [{"repeat": 2}, {"control": "{url}/"}, {"rate": 1.0}])
async def test_it_is_asked_once_and_by_itself(more: dict[str, Any]) -> None:
    async with bench() as it:
        given = {
            name: value.replace("{url}", it.site.url) if isinstance(value, str) else value
            for name, value in more.items()
        }
        result = await it.run("qa_fetch", {"url": it.site.url, "alive": it.site.url, **given})
    assert result["error"].startswith("/args/alive: ")
