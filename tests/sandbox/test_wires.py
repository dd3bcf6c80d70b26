"""Every wire of agents, through the real guest and a real broker: one answer means the same in each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.agents.wires import KEYED, LACKS, TOKENS
from sandbox.agents.wires.a2a import UNKNOWN_TASK
from sandbox.agents.wires.port import CHARGES
from tests.sandbox.doubles import Bench, Got, bench, http_answer, json_answer
from tests.sandbox.wire_speakers import SECRETS, SPEAKERS, USERS, Speaker

pytestmark = pytest.mark.anyio
every = pytest.mark.parametrize("by", SPEAKERS.values(), ids=SPEAKERS)
keyed = pytest.mark.parametrize("by", [one for one in SPEAKERS.values() if one.wire], ids=KEYED)
tasked = pytest.mark.parametrize("by", [SPEAKERS["a2a-1.0"], SPEAKERS["a2a-0.3"]], ids=["1.0", "0.3"])


async def call(it: Bench, by: Speaker, **args: Any) -> dict[str, Any]:
    return await it.run("qa_call", {"target": "fern", "message": "hi"} | args, **by.context(it.site.url))


def test_each_wire_is_spoken_by_a_test() -> None:
    assert {one.wire for one in SPEAKERS.values()} == {"", *KEYED} == set(LACKS) == set(TOKENS)


@every
async def test_a_whole_answer(by: Speaker) -> None:
    async with bench(lambda _: by.whole("good day é😀")) as it:
        result = await call(it, by, message="say ", fill=3, unit="ä")
        assert (result["ok"], result["status"], result["reply"]) == (True, 200, "good day é😀")
        assert (result["empty"], result["stream_ok"], result["wire"]) == (False, False, by.wire)
        assert result["finish_reason"].lower() in ("stop", "completed")
        (got,) = it.site.got
        assert (got.method, by.message(got)) == ("POST", "say äää")


@every
async def test_a_stream_is_put_together(by: Speaker) -> None:
    async with bench(lambda _: by.stream("good ", "day", " é😀")) as it:
        result = await call(it, by, stream=True)
        assert (result["ok"], result["stream_ok"], result["reply"]) == (True, True, "good day é😀")
        assert result["events"] == len(by.events("good ", "day", " é😀"))


@every
async def test_a_stream_without_its_end_is_broken(by: Speaker) -> None:
    async with bench(lambda _: by.stream("good ", "day", ends=False)) as it:
        result = await call(it, by, stream=True)
        assert (result["ok"], result["stream_ok"]) == (False, False)
        assert result["stream_error"] == "the stream ends without a finish reason"


@every
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'data: {"a": "\xc3"}\n\n', "not UTF-8"),
        (b"data: {\n\n", "an event that is not JSON: '{'"),
        (b"nonsense\n\n", "a line that is not a field: 'nonsense'"),
        (b'data: {"a": 1}', "the stream ends inside an event"),
    ],
)
async def test_broken_framing_is_named(by: Speaker, body: bytes, fault: str) -> None:
    answer = http_answer(200, body, "content-type: text/event-stream")
    async with bench(lambda _: answer) as it:
        result = await call(it, by, stream=True)
        assert (result["ok"], result["stream_error"], result["error_class"]) == (False, fault, "garbage")


@every
async def test_half_of_a_character_in_an_event_is_a_fault(by: Speaker) -> None:
    whole = by.stream("a", "XX", "b").partition(b"\r\n\r\n")[2].replace(b"XX", b"\\ud83d")
    answer = http_answer(200, whole, "content-type: text/event-stream")
    async with bench(lambda _: answer) as it:
        result = await call(it, by, stream=True)
        assert result["stream_error"] == "half of a character in an event"


@every
async def test_an_empty_answer_is_seen_as_empty(by: Speaker) -> None:
    async with bench(lambda _: by.whole("")) as it:
        result = await call(it, by)
        assert (result["ok"], result["empty"], result["reply"]) == (True, True, "")


@every
async def test_a_refusal_is_no_answer(by: Speaker) -> None:
    async with bench(lambda _: by.error("say something")) as it:
        result = await call(it, by, message="")
        assert (result["ok"], result["error_class"], result["empty"]) == (False, "http", False)
        assert result["error"].endswith("say something")
        streamed = await call(it, by, stream=True)
        assert (streamed["ok"], streamed["error_class"], streamed["stream_error"]) == (False, "http", "")


@every
@pytest.mark.parametrize("body", [b"[]", b"{}", b"hello", b"", b"[" * 100_000, b'{"result": {"task": 7}}'])
async def test_what_is_no_answer_of_an_agent_is_said_to_be_none(by: Speaker, body: bytes) -> None:
    async with bench(lambda _: http_answer(200, body, "content-type: application/json")) as it:
        result = await call(it, by)
        assert (result["ok"], result["error_class"], result["empty"]) == (False, "garbage", False)


@every
async def test_a_false_sender_is_put_where_it_is_asked_for(by: Speaker) -> None:
    async with bench(lambda _: by.whole("x")) as it:
        places = {"claim_fields": ["sender"], "claim_headers": ["x-user"]}
        result = await call(it, by, claim_from="nobody-we-know", **places)
        assert result["claimed"] == "nobody-we-know"
        (got,) = it.site.got
        assert got.headers["x-user"] == "nobody-we-know"
        assert b'"sender": "nobody-we-know"' in got.body


@every
async def test_the_same_request_is_sent_twice_as_it_was(by: Speaker) -> None:
    async with bench(lambda _: by.whole("x")) as it:
        result = await call(it, by, twice=True)
        first, second = it.site.got
        assert (first.body, result["status_again"]) == (second.body, 200)


@keyed
async def test_each_caller_shows_its_own_secret_and_no_result_holds_it(by: Speaker) -> None:
    async with bench(lambda got: by.whole(f"you sent {got.headers.get('authorization')}")) as it:
        sent = {}
        for who, token in (
            ("caller", "good"),
            ("other", "good"),
            *(("caller", one) for one in TOKENS[by.wire][1:]),
        ):
            result = await call(it, by, caller=who, token=token)
            sent[who, token] = it.site.got[-1].headers.get("authorization")
            assert not [one for one in SECRETS.values() if one in json.dumps(result)]
        half = SECRETS["one"][: len(SECRETS["one"]) // 2]
        assert sent == {
            ("caller", "good"): f"Bearer {SECRETS['one']}",
            ("other", "good"): f"Bearer {SECRETS['other']}",
            ("caller", "none"): None,
            ("caller", "garbage"): "Bearer qa-invented-token-0000000000",
            ("caller", "truncated"): f"Bearer {half}",
        }
        claimed = await call(it, by, claim_from="other")
        assert (claimed["claimed"], claimed["address"]) == (USERS["other"], USERS["one"])


@keyed
@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "stale"},
        {"claim_from": "owner"},
        {"claim_headers": ["authorization"], "claim_from": "x"},
        {"then": "delete"},
        {"then_as": "caller"},
        {"version": "9\n"},
    ],
)
async def test_what_a_wire_has_no_place_for_is_a_mistake(by: Speaker, wrong: dict[str, Any]) -> None:
    async with bench(lambda _: by.whole("x")) as it:
        result = await call(it, by, **wrong)
        assert (result["error_class"], it.site.got) == ("bad_request", [])
        assert CHARGES in LACKS[by.wire]


async def test_a_chat_keeps_the_fields_that_mean_something_and_believes_no_tool_that_is_asked_for() -> None:
    by = SPEAKERS["chat"]
    tools = [{"function": {"name": "delete_file", "arguments": "{}"}}]

    def answer(finish: str) -> bytes:
        message = {"content": None, "tool_calls": tools}
        return json_answer(200, {"choices": [{"message": message, "finish_reason": finish}]})

    async with bench(lambda _: answer("stop")) as it:
        assert (await call(it, by))["tool_calls"] == ["delete_file"]
        it.site.answer = lambda _: answer("tool_calls")
        asks = await call(it, by)
        assert (asks["tool_calls"], asks["finish_reason"]) == ([], "tool_calls")
        body = json.loads(it.site.got[-1].body)
        assert (body["model"], body["stream"]) == ("fern-1", False)
        taken = await call(it, by, claim_from="x", claim_fields=["user"])
        assert taken["error"] == "/args/claim_fields: user means something in this wire"


# Tasks --------------------------------------------------------------------------------------------


def served(by: Speaker, states: dict[str, str], *, foreign: int = -32001) -> Any:
    """An agent whose task `t-1` has a maker, the account one; `states` by method, "" for an error."""

    def answer(got: Got) -> bytes:
        if got.method == "GET":
            return json_answer(200, {"capabilities": {"streaming": True, "pushNotifications": False}})
        asked = json.loads(got.body)
        method = asked["method"].rpartition("/")[2].lower().removesuffix("task")
        own = got.headers.get("authorization", "").endswith(SECRETS["one"])
        ident = asked["params"].get("id", "t-1")
        if method in ("sendmessage", "send"):
            return json_answer(200, by.result(by.task(states["send"], "hello")))
        if ident == UNKNOWN_TASK or not own:
            code = -32001 if ident == UNKNOWN_TASK else foreign
            return json_answer(200, {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}})
        return json_answer(200, by.result(by.task(states[method], "hello", wrapped=False)))

    return answer


@tasked
async def test_a_task_that_is_not_done_is_asked_for_until_it_is(by: Speaker) -> None:
    states = {"send": "working", "get": "completed"}
    async with bench(served(by, states)) as it:
        result = await call(it, by)
        assert (result["reply"], result["state"], result["ok"]) == ("hello", "completed", True)
        running = await call(it, by, running=True)
        assert (running["state"], running["finish_reason"]) == ("working", "working")
        waits = [json.loads(got.body)["params"].get("configuration") for got in it.site.got]
        key, yes, no = (
            ("returnImmediately", False, True) if by.wire == "a2a-1.0" else ("blocking", True, False)
        )
        assert [one[key] for one in waits if one] == [yes, no]


@tasked
async def test_what_another_one_is_told_of_a_task_stands_beside_what_nobody_made(by: Speaker) -> None:
    async with bench(served(by, {"send": "completed", "get": "completed"}, foreign=-32002)) as it:
        result = await call(it, by, then="get", then_as="other")
        assert (result["then_ok"], result["then_code"], result["unknown_code"]) == (False, -32002, -32001)
        assert (result["state"], result["state_after"]) == ("completed", "completed")
        own = await call(it, by, then="get")
        assert (own["then_ok"], own["then_state"], own["then_code"]) == (True, "completed", 0)
        versions = {got.headers["a2a-version"] for got in it.site.got}
        assert versions == {by.wire.removeprefix("a2a-")}


@tasked
async def test_the_card_is_read_first_and_a_version_can_be_named(by: Speaker) -> None:
    async with bench(served(by, {"send": "completed", "get": "completed"})) as it:
        result = await call(it, by, card=True, version="99.0")
        assert (result["card_status"], result["declares"]) == (200, ["streaming"])
        assert [got.path for got in it.site.got] == ["/.well-known/agent-card.json", "/a2a"]
        assert it.site.got[-1].headers["a2a-version"] == "99.0"
        assert "card_status" not in await call(it, by)


@tasked
async def test_a_message_is_an_answer_and_a_failed_task_is_none(by: Speaker) -> None:
    new = by.wire == "a2a-1.0"
    parts = [{"text": "hi"}, {"text": " you"}]
    said: dict[str, Any] = {"messageId": "m", "role": "ROLE_AGENT" if new else "agent", "parts": parts}
    reply = {"message": said} if new else said | {"kind": "message"}
    async with bench(lambda _: json_answer(200, by.result(reply))) as it:
        result = await call(it, by, then="cancel")
        assert (result["ok"], result["reply"], result["state"]) == (True, "hi you", "")
        assert (len(it.site.got), result["then_ok"]) == (1, False)  # no task was made
        it.site.answer = lambda _: json_answer(200, by.result(by.task("failed")))
        failed = await call(it, by)
        assert (failed["ok"], failed["error"], failed["state"]) == (False, "the task is failed", "failed")


async def test_a_list_of_tasks_is_of_1_0_alone() -> None:
    new, old = SPEAKERS["a2a-1.0"], SPEAKERS["a2a-0.3"]

    def answer(got: Got) -> bytes:
        listed = json.loads(got.body)["method"] == "ListTasks"
        task = new.task("completed", "hello", wrapped=False)
        return json_answer(200, new.result({"tasks": [task]} if listed else {"task": task}))

    async with bench(answer) as it:
        assert (await call(it, new, then="list", then_as="nobody"))["then_ok"] is True
        assert "authorization" not in it.site.got[1].headers
        refused = await call(it, old, then="list")
        assert refused["error"] == "/args/then: version 0.3 has no list of tasks over JSON-RPC"
        assert len(it.site.got) == 3
