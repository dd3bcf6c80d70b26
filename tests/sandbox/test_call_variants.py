"""qa_call: the second identity, false senders, broken tokens, repeated requests, advertised costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.doubles import CALLER, Bench, Got, bench, http_answer, json_answer
from tests.sandbox.test_call import PRICE, SSE, call, charging, document, events

pytestmark = pytest.mark.anyio
STRANGER = "0x" + "0e" * 20
OFF = 30 * 86_400


def served(got: Got) -> bytes:
    return json_answer(200, document("x"))


async def ask(it: Bench, **args: Any) -> dict[str, Any]:
    ctx = {"keys": {"caller": CALLER, "other": STRANGER}}
    return await it.run("qa_call", {"target": "claude", "message": "hi"} | args, **ctx)


@pytest.mark.parametrize(
    ("variant", "sent"),
    [
        ("good", f"{CALLER}:1:0xsig"),
        ("none", None),
        ("garbage", "not-a-token"),
        ("stale", f"{CALLER}:1-{OFF}:0xsig"),
        ("future", f"{CALLER}:1--{OFF}:0xsig"),
        ("foreign", f"{CALLER}:1:0xother"),
        ("zero", f"{CALLER}:1:0x{'00' * 65}"),
        ("wrong-route", f"{CALLER}:1:0xsig"),
        ("truncated", f"{CALLER}:1:0xsig"[:-20]),
    ],
)
async def test_a_token_differs_in_one_way(variant: str, sent: str | None) -> None:
    async with bench(served) as it:
        await ask(it, token=variant)
        assert it.site.got[0].headers.get("x-goog-api-key") == sent
        assert ("caller", "gemini-other") in it.signer.tokens or variant != "wrong-route"


async def test_the_other_identity_calls_and_pays_for_itself() -> None:
    async with bench(served) as it:
        result = await ask(it, caller="other")
        assert (result["address"], it.signer.tokens) == (STRANGER, [("other", "gemini")])
        assert it.site.got[0].headers["x-goog-api-key"].endswith(":0xother")


async def test_a_false_sender_stands_where_it_is_put() -> None:
    async with bench(served) as it:
        it.chain.owners["claude"] = "0x" + "11" * 20
        for claim, where in (
            ("0xbeef", {}),
            ("other", {"claim_fields": ["sender", "user"]}),
            ("owner", {"claim_headers": ["x-user"]}),
        ):
            result = await ask(it, claim_from=claim, **where)
            expected = {"0xbeef": "0xbeef", "other": STRANGER, "owner": "0x" + "11" * 20}[claim]
            assert result["claimed"] == expected
            got = it.site.got[-1]
            fields = {key: value for key, value in json.loads(got.body).items() if value == expected}
            headers = [key for key, value in got.headers.items() if value == expected]
            assert (set(fields), headers) == (
                {"0xbeef": {"from"}, "other": {"sender", "user"}, "owner": set()}[claim],
                ["x-user"] if claim == "owner" else [],
            )


async def test_what_a_false_sender_paid_is_seen() -> None:
    async with bench() as it:
        charging(it, json_answer(200, document("x")))
        result = await ask(it, claim_from="other")
        assert (result["charged"], result["charged_claimed"]) == (PRICE, PRICE)  # one credit for all here


async def test_the_very_same_request_is_sent_twice() -> None:
    async with bench() as it:
        statuses = iter((200, 409))

        def serve(_: Got) -> bytes:
            it.chain.credit -= PRICE
            return json_answer(next(statuses), document("x") | {"error": "seen before"})

        it.site.answer = serve
        result = await ask(it, twice=True)
        assert (result["status"], result["charged"], result["status_again"]) == (200, PRICE, 409)
        assert (result["charged_again"], result["error_again"]) == (PRICE, "HTTP 409: seen before")
        first, second = it.site.got
        assert (first.body, first.headers["x-goog-api-key"]) == (
            second.body,
            second.headers["x-goog-api-key"],
        )


async def test_a_long_message_is_short_to_write() -> None:
    async with bench(served) as it:
        await ask(it, message="say ", fill=5, unit="äb")
        assert json.loads(it.site.got[0].body)["contents"][0]["parts"][0]["text"] == "say äbäbä"


@pytest.mark.parametrize(
    "wrong",
    [
        {"caller": "claude"},
        {"token": "best"},
        {"fill": -1},
        {"fill": 1 << 30},
        {"claim_fields": ["agent"]},
        {"claim_fields": ["a b"]},
        {"claim_headers": ["host"]},
        {"claim_headers": ["x-goog-api-key"]},
        {"claim_headers": ["x\ny"]},
        {"claim_fields": [f"f{at}" for at in range(17)]},
    ],
)
async def test_what_is_not_on_offer_is_a_mistake_and_nothing_is_sent(wrong: dict[str, Any]) -> None:
    async with bench(served) as it:
        result = await ask(it, **wrong)
        assert (result["error_class"], it.site.got) == ("bad_request", [])
        assert result["error"].startswith(f"/args/{next(iter(wrong)).replace('headers', '')[:6]}")


@pytest.mark.parametrize(
    ("said", "wei"),
    [
        ({"price_wei": "7"}, 7),
        ({"usage": {"costWei": 9}}, 9),
        ({"price_wei": 0}, 0),
        ({"price": 3}, None),
        ({"price_wei": "x"}, None),
        ({"price_wei": 10**19}, None),  # more than an expectation can count
        ({"pricePerTokenWei": 3}, None),
    ],
)
async def test_what_an_answer_says_that_it_costs(said: dict[str, Any], wei: int | None) -> None:
    headers = ("x-ratelimit-limit: 30", "x-other: 1")
    async with bench(lambda _: json_answer(200, document("x") | said, *headers)) as it:
        result = await call(it)
        assert result.get("advertised_wei") == wei
        assert ("advertised_wei" in result) == (wei is not None)  # an expectation can ask whether it is there
        assert result["terms"] == ["x-ratelimit-limit: 30"]
        assert result["credit"] == str(it.chain.credit)


async def test_an_empty_answer_is_empty_and_one_with_a_tool_call_is_not() -> None:
    async with bench(lambda _: json_answer(200, document(""))) as it:
        assert (await call(it))["empty"] is True
        answer = document("")
        answer["candidates"][0]["content"]["parts"] = [{"functionCall": {"name": "look"}}]
        it.site.answer = lambda _: json_answer(200, answer)
        assert (await call(it))["empty"] is False
        it.site.answer = lambda _: json_answer(400, {"error": "no"})
        assert (await call(it))["empty"] is False


async def test_half_of_a_character_in_an_event_breaks_a_stream() -> None:
    halves = (document("\ud83d", ""), document("\ude00"))
    async with bench(lambda _: http_answer(200, events(*halves), SSE)) as it:
        result = await call(it, stream=True)
        assert (result["stream_ok"], result["stream_error"]) == (False, "half of a character in an event")
