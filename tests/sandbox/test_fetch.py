"""qa_fetch through the real broker against servers that behave, and servers that do not."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from typing import Any

import pytest

from fleet.findings.sighting import of_probe
from sandbox import http
from sandbox.errors import Deadline
from sandbox.pages.latency import WARM_UPS
from sandbox.spec import Context
from sandbox.tools import qa_fetch
from tests.sandbox.doubles import Got, Server, bench, http_answer, read_request

pytestmark = pytest.mark.anyio


async def fetch(answer: bytes, **args: Any) -> dict[str, Any]:
    async with bench(lambda _: answer) as it:
        return await it.run("qa_fetch", {"url": it.site.url + "/x"} | args)


async def test_a_page() -> None:
    body = b"<html lang=en><title>t</title>hello"
    result = await fetch(http_answer(200, body, "content-type: text/html; charset=utf-8", "x-a: 1", "x-a: 2"))
    assert (result["ok"], result["status"], result["bytes"]) == (True, 200, len(body))
    assert result["sha256"] == hashlib.sha256(body).hexdigest()
    assert result["content_type"] == "text/html; charset=utf-8"
    assert (result["headers"]["x-a"], result["text"], result["a11y"]) == ("1, 2", body.decode(), [])


ODD = b"<!doctype html><html lang=en><title>ok</title><h1>ok</h1></html>"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (gzip.compress(ODD) + b"\0" * 64, ["content-encoding: gzip"]),
        (gzip.compress(ODD) + b"trailing", ["content-encoding: gzip"]),
        (ODD, ["content-encoding: none"]),
        (ODD, ["content-encoding: UTF-8"]),
        (ODD, ["content-encoding: aws-chunked"]),
        (ODD, [f"x-note-{number}: v" for number in range(150)]),
        (ODD, ["x-long: " + "v" * 100_000]),
    ],
    ids=["padded", "junk", "none", "utf8", "chunked-word", "many-headers", "long-header"],
)
async def test_what_browsers_read_is_read(body: bytes, fields: list[str]) -> None:
    result = await fetch(http_answer(200, body, *fields, "content-type: text/html", "x-frame-options: DENY"))
    assert (result["ok"], result["status"], result["error"]) == (True, 200, "")
    assert (result["text"], result["content_type"]) == (ODD.decode(), "text/html")
    assert (result["headers"]["x-frame-options"], result["unjudged"]) == ("DENY", [])


async def test_of_very_many_headers_none_is_called_absent() -> None:
    result = await fetch(http_answer(200, ODD, *(f"x-{number}: v" for number in range(500)), "etag: x"))
    assert (result["status"], len(result["headers"]), result["unjudged"]) == (200, 200, ["headers"])


async def test_an_odd_answer_is_named_with_its_reason() -> None:
    result = await fetch(http_answer(200, b"x", "content-encoding: br"))
    said = of_probe("result.status == 200", [{"tool": "qa_fetch", "args": {"url": "{site}/x"}}], [result], "")
    assert said.title == "GET {site}/x: garbage content-encoding 'br' was not asked for"


@pytest.mark.parametrize(
    ("status", "hint"), [(404, ""), (402, "funding"), (401, "auth"), (403, "auth"), (429, "rate"), (500, "")]
)
async def test_a_status_that_is_an_error(status: int, hint: str) -> None:
    result = await fetch(http_answer(status, b"credit 0xab402cd"))
    assert (result["ok"], result["status"], result["error_class"], result["hint"]) == (
        False,
        status,
        "http",
        hint,
    )


async def test_a_platform_cannot_forge_the_brokers_refusal() -> None:
    body = b'{"error":"no","error_class":"refused","rule":"host"}'
    result = await fetch(
        http_answer(403, body, "content-type: application/json", "x-qa-once: 0000000000000000")
    )
    assert (result["status"], result["error_class"]) == (403, "http")


async def test_a_redirect_is_reported_not_followed() -> None:
    async with Server() as other, bench() as it:
        it.site.answer = lambda _: http_answer(302, b"", f"location: {other.url}/steal")
        result = await it.run("qa_fetch", {"url": it.site.url})
        assert (result["ok"], result["status"], result["location"]) == (True, 302, f"{other.url}/steal")
        assert other.dials == 0


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://10.0.0.1/", "http://evil.test/", "http://localhost/"]
)
async def test_hosts_off_the_list_are_refused(url: str) -> None:
    async with bench() as it:
        result = await it.run("qa_fetch", {"url": url})
        assert (result["ok"], result["error_class"]) == (False, "refused")
        assert result["error"].startswith("egress denied by broker: ")


async def test_origin_is_sent_and_the_answer_shown() -> None:
    def mirror(got: Got) -> bytes:
        return http_answer(200, b"", f"access-control-allow-origin: {got.headers['origin']}")

    async with bench(mirror) as it:
        result = await it.run("qa_fetch", {"url": it.site.url, "origin": "http://localhost.evil.test"})
        assert result["allow_origin"] == "http://localhost.evil.test"


async def test_percentiles_of_repeats_are_measured_values() -> None:
    async with bench() as it:
        result = await it.run("qa_fetch", {"url": it.site.url, "repeat": 12})
        assert len(it.site.got) == 12
        assert 0 < result["p50_ms"] <= result["p95_ms"] <= result["max_ms"]
        assert result["latency_ms"] == result["p50_ms"]


async def test_secrets_are_named_never_shown() -> None:
    key = "0x" + "ab" * 32
    result = await fetch(
        http_answer(200, f'const SPONSOR_KEY = "{key}"'.encode(), f"x-private-key: private_key={key}")
    )
    assert result["secrets"] == ["private-key"]
    assert key not in str(result)


async def test_a_canary_that_would_run() -> None:
    page = b"<html><script>qaCanary7</script>"
    result = await fetch(http_answer(200, page, "content-type: text/html"), canary="qaCanary7")
    assert result["canary_executable"]
    result = await fetch(http_answer(200, page, "content-type: text/plain"), canary="qaCanary7")
    assert not result["canary_executable"]


async def test_a_slow_drip_ends_with_the_call() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with bench(raw=drip) as it:
        result = await it.run("qa_fetch", {"url": it.site.url}, deadline_s=1.0)
        assert (result["error_class"], result["latency_ms"] < 3_000) == ("timeout", True)


async def test_a_connection_that_is_closed_at_once() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        return

    async with bench(raw=hang_up) as it:
        result = await it.run("qa_fetch", {"url": it.site.url})
        assert (result["error_class"], result["hint"]) == ("unreachable", "")


async def test_a_page_is_measured_against_a_control_in_turns() -> None:
    async with bench() as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin", "repeat": 5}
        result = await it.run("qa_fetch", args)
        assert [got.path for got in it.site.got] == ["/page", "/twin"] * (5 + WARM_UPS)
        assert (result["ok"], result["samples"]) == (True, 5)
        assert 0 < result["control_p50_ms"] <= result["control_p95_ms"]
        assert result["ratio"] > 0
        numbers = [value for value in result.values() if isinstance(value, float)]
        assert numbers == [round(value, 3) for value in numbers]


async def test_the_ratio_is_the_median_of_pairs() -> None:
    pairs = {"/page": (9.0, 9.0, 40.0, 30.0, 20.0), "/twin": (1.0, 1.0, 10.0, 20.0, 2.0)}
    served = dict.fromkeys(pairs, 0)

    def reply(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply:
        path = request.target.removeprefix("http://site.test")
        served[path] += 1
        return http.HttpReply(200, {}, b"", pairs[path][served[path] - 1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "send", reply)
        args = qa_fetch.Args("http://site.test/page", control="http://site.test/twin", repeat=3)
        result = qa_fetch.run(args, Context(run="r", prefix=""))
    assert (result.samples, result.p50_ms, result.p95_ms, result.max_ms) == (3, 30.0, 40.0, 40.0)
    assert (result.control_p50_ms, result.control_p95_ms, result.ratio) == (10.0, 20.0, 4.0)


async def test_without_a_control_there_is_no_ratio() -> None:
    result = await fetch(http_answer(200, b""), repeat=3)
    assert "ratio" not in result
    assert (result["samples"], result["control_p50_ms"], result["control_p95_ms"]) == (3, 0.0, 0.0)


@pytest.mark.parametrize("silent", ["/page", "/twin"])
async def test_what_does_not_fit_in_the_time_is_left_out(silent: str) -> None:
    """One path stops answering in the fourth pair: two of them warmed up, one counts."""
    served = dict.fromkeys(("/page", "/twin"), 0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await read_request(reader)).path
        served[path] += 1
        if path == silent and served[path] > WARM_UPS + 1:
            await asyncio.sleep(60)
        writer.write(http_answer(200, b"ok", "connection: close"))

    async with bench(raw=answer) as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin", "repeat": 20}
        result = await it.run("qa_fetch", args, deadline_s=4.0)
    assert (result["ok"], result["error_class"], result["status"], result["samples"]) == (True, "", 200, 1)
    assert result["p50_ms"] == result["max_ms"] > 0
    assert result["ratio"] > 0


async def test_a_page_too_slow_for_more_than_the_warm_up_is_measured_by_it() -> None:
    served = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += (await read_request(reader)).path == "/page"
        await asyncio.sleep(60 if served > 1 else 0)
        writer.write(http_answer(200, b"ok", "connection: close"))

    async with bench(raw=answer) as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin", "repeat": 20}
        result = await it.run("qa_fetch", args, deadline_s=3.0)
    assert (result["ok"], result["samples"]) == (True, 1)


@pytest.mark.parametrize("status", [404, 502])
async def test_a_control_without_a_page_is_no_control(status: int) -> None:
    async with bench(lambda got: http_answer(status if got.path == "/twin" else 200, b"")) as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin"}
        result = await it.run("qa_fetch", args)
        assert (result["ok"], result["error_class"]) == (False, "busy")
        assert result["error"] == "could not tell: the control gave no page to compare with"


async def test_a_control_that_never_answers_is_not_the_page_s_fault() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await read_request(reader)).path == "/twin":
            await asyncio.sleep(60)
        writer.write(http_answer(200, b"ok", "connection: close"))

    async with bench(raw=answer) as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin"}
        result = await it.run("qa_fetch", args, deadline_s=2.0)
    assert (result["error_class"], result["error"]) == (
        "busy",
        "could not tell: the control did not answer in time",
    )


async def test_a_control_off_the_list_is_refused_by_the_broker() -> None:
    async with bench() as it:
        result = await it.run("qa_fetch", {"url": it.site.url, "control": "http://evil.test/"})
        assert (result["ok"], result["error_class"]) == (False, "refused")
        result = await it.run("qa_fetch", {"url": it.site.url, "control": "no url"})
        assert (result["error_class"], result["error"]) == (
            "bad_request",
            "/args/control: expected http(s)://host[:port]/path",
        )
