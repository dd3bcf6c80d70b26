"""qa_call: one turn, what it said, what it cost, and the faults of streams and statuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.sandbox.doubles import CALLER, DIAMOND, Bench, Got, Submitted, bench, http_answer, json_answer

pytestmark = pytest.mark.anyio

PRICE = 10**16


def document(text: str, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}]} | more


async def call(it: Bench, **args: Any) -> dict[str, Any]:
    return await it.run("qa_call", {"target": "claude", "message": "hi"} | args)


def charging(it: Bench, answer: bytes) -> None:
    def serve(_: Got) -> bytes:
        it.chain.credit -= PRICE
        return answer

    it.site.answer = serve


async def test_a_turn() -> None:
    async with bench() as it:
        charging(it, json_answer(200, document("hello", caller=CALLER, turns=3)))
        result = await call(it)
        assert (result["ok"], result["reply"], result["status"]) == (True, "hello", 200)
        assert (result["charged"], result["caller"], result["address"]) == (PRICE, CALLER, CALLER)
        assert (result["turns"], result["finish_reason"], result["tool_calls"]) == (3, "STOP", [])
        (got,) = it.site.got
        assert (got.method, got.path) == ("POST", "/v1beta/models/gemini-flash:generateContent")
        assert got.headers["x-goog-api-key"] == f"{CALLER}:1:0xsig"
        assert json.loads(got.body) == {
            "agent": "claude",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        }
        assert it.signer.tokens == [("caller", "gemini")]


async def test_an_agent_of_another_platform_is_called_as_its_profile_says() -> None:
    async with bench(lambda _: json_answer(200, document("x"))) as it:
        url = f"{it.site.url}/agents/ask?v=2"
        said = {"call_url": url, "token_header": "x-token", "route": ""}
        result = await it.run("qa_call", {"target": "claude", "message": "hi"}, **said)
        (got,) = it.site.got
        assert (result["ok"], got.path, got.headers["x-token"]) == (
            True,
            "/agents/ask?v=2",
            f"{CALLER}:1:0xsig",
        )
        assert it.signer.tokens == [("caller", "")]


async def test_what_the_profile_does_not_say_is_not_guessed() -> None:
    async with bench() as it:
        result = await it.run("qa_call", {"target": "claude", "message": "hi"}, call_url="", stream_url="")
        assert (result["error_class"], result["error"]) == (
            "bad_request",
            "/tool: the profile does not say how agents are called here",
        )
        assert (it.site.got, it.signer.tokens, it.node.methods) == ([], [], [])


async def test_a_false_sender_and_a_raw_body() -> None:
    async with bench(lambda _: json_answer(200, document("x"))) as it:
        await call(it, claim_from="0xbeef")
        await call(it, raw="{broken")
        assert json.loads(it.site.got[0].body)["from"] == "0xbeef"
        assert it.site.got[1].body == b"{broken"
        assert [got.headers["x-goog-api-key"][-8:] for got in it.site.got] == [":1:0xsig", ":2:0xsig"]


@pytest.mark.parametrize(
    ("date", "error_class"),
    [
        ("Thu, 01 Jan 1970 00:00:31 GMT", "http"),
        ("Thu, 01 Jan 1970 01:00:01 GMT", "internal"),
        ("yesterday", "http"),
    ],
)
async def test_a_refused_token_is_no_answer_about_the_platform_when_our_clock_is_wrong(
    date: str, error_class: str
) -> None:
    async with bench(lambda _: json_answer(401, {"error": "stale"}, f"date: {date}")) as it:
        assert (await call(it))["error_class"] == error_class


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (400, {"error": "contents must not be empty"}, ""),
        (401, {"error": "stale or future timestamp"}, "auth"),
        (403, {"error": "forbidden"}, "auth"),
        (429, {"error": "rate limit"}, "rate"),
        (500, {"error": "tx 0xab402cd: credit"}, ""),
        (503, {"error": {"message": "proxy misconfigured"}}, ""),
    ],
)
async def test_statuses(status: int, body: Any, hint: str) -> None:
    async with bench(lambda _: json_answer(status, body)) as it:
        result = await call(it)
        assert (result["ok"], result["status"], result["error_class"], result["hint"]) == (
            False,
            status,
            "http",
            hint,
        )
        reason = body["error"] if isinstance(body["error"], str) else body["error"]["message"]
        assert result["error"] == f"HTTP {status}: {reason}"
        assert it.signer.submitted == []


async def test_no_credit_is_funded_once_and_tried_once_more() -> None:
    async with bench() as it:
        it.chain.credit = 0

        def claim(sent: Submitted) -> dict[str, Any]:
            it.chain.credit += 10**18
            return {}

        def serve(_: Got) -> bytes:
            if it.chain.credit < PRICE:
                return json_answer(402, {"error": "no active session or credit"})
            it.chain.credit -= PRICE
            return json_answer(200, document("paid"))

        it.signer.mined, it.site.answer = claim, serve
        result = await call(it)
        assert (result["ok"], result["reply"], result["charged"]) == (True, "paid", PRICE)
        (sent,) = it.signer.submitted
        assert (sent.key, sent.to, sent.data.hex()) == ("caller", DIAMOND, "89934d3a")
        assert it.signer.tokens == [("caller", "gemini")] * 2


async def test_no_credit_after_funding_is_told() -> None:
    async with bench(lambda _: json_answer(402, {"error": "no active session or credit"})) as it:
        result = await call(it)
        assert (result["ok"], result["status"], result["hint"]) == (False, 402, "funding")
        assert (len(it.signer.submitted), len(it.site.got)) == (1, 2)
        assert (await call(it, fund=False))["hint"] == "funding"
        assert (len(it.signer.submitted), len(it.site.got)) == (1, 3)


async def test_a_refused_call_that_costs_is_seen() -> None:
    async with bench() as it:
        charging(it, json_answer(400, {"error": "contents must not be empty"}))
        result = await call(it, message="")
        assert (result["status"], result["charged"]) == (400, PRICE)


async def test_an_empty_reply_is_an_answer_and_nonsense_is_not() -> None:
    async with bench(lambda _: json_answer(200, document(""))) as it:
        result = await call(it)
        assert (result["ok"], result["reply"], result["finish_reason"]) == (True, "", "STOP")
    for body in (b"<html>", b"{}", b"[]", b'{"candidates":[]}', b'"x"'):
        async with bench(lambda _, body=body: http_answer(200, body)) as it:  # type: ignore[misc]
            result = await call(it)
            assert (result["ok"], result["error_class"]) == (False, "garbage")


async def test_tool_calls_are_named() -> None:
    answer = document("done")
    answer["candidates"][0]["content"]["parts"].append({"functionCall": {"name": "delete_file", "args": {}}})
    async with bench(lambda _: json_answer(200, answer)) as it:
        assert (await call(it))["tool_calls"] == ["delete_file"]


async def test_a_long_reply_is_cut_and_its_secrets_masked() -> None:
    text = "Bearer abcdefghijklmnop1234 " + "x" * 5_000
    async with bench(lambda _: json_answer(200, document(text))) as it:
        reply = (await call(it))["reply"]
        assert (len(reply), reply[:16]) == (4_000, "[bearer] xxxxxxx")


def events(*documents: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in documents)


SSE = "content-type: text/event-stream; charset=utf-8"
PIECES = (document("hel", ""), document("lo", "STOP", caller=CALLER, turns=2))


async def test_a_stream() -> None:
    async with bench(lambda _: http_answer(200, events(*PIECES), SSE)) as it:
        result = await call(it, stream=True)
        assert (result["ok"], result["stream_ok"], result["reply"], result["events"]) == (
            True,
            True,
            "hello",
            2,
        )
        assert (result["caller"], result["turns"]) == (CALLER, 2)
        assert it.site.got[0].path.endswith(":streamGenerateContent?alt=sse")


@pytest.mark.parametrize(
    ("body", "content_type", "fault"),
    [
        (events(*PIECES)[:-1], SSE, "the stream ends inside an event"),
        (events(PIECES[0]), SSE, "the stream ends without a finish reason"),
        (b"", SSE, "the stream ends without a finish reason"),
        (events(PIECES[0]) + b'data: "\xe2\x82"\n\n', SSE, "not UTF-8"),
        (events(PIECES[0]) + b"data: {\n\n", SSE, "an event that is not JSON: '{'"),
        (
            json.dumps(PIECES[1]).encode(),
            "content-type: application/json",
            "content type 'application/json' is not an event stream",
        ),
    ],
)
async def test_a_broken_stream(body: bytes, content_type: str, fault: str) -> None:
    async with bench(lambda _: http_answer(200, body, content_type)) as it:
        result = await call(it, stream=True)
        assert (result["ok"], result["stream_ok"], result["stream_error"]) == (False, False, fault)
        assert result["error_class"] == "garbage"


async def test_a_refused_stream_is_a_status() -> None:
    async with bench(lambda _: json_answer(401, {"error": "bad signature"})) as it:
        result = await call(it, stream=True)
        assert (result["status"], result["hint"], result["stream_error"]) == (401, "auth", "")


async def test_a_connection_reset_has_no_hint() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with bench(raw=reset) as it:
        result = await call(it)
        assert (result["ok"], result["error_class"], result["hint"]) == (False, "unreachable", "")


async def test_a_credit_that_cannot_be_read_is_never_guessed() -> None:
    async with bench() as it:
        it.node.views.clear()
        result = await call(it)
        assert (result["ok"], result["error_class"], it.site.got) == (False, "reverted", [])
