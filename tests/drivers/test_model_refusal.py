"""What is sent fits the strictest schema, and what an endpoint says against it is shown, fit to be seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.model.refusal import MAX_WORDS, without_key, words
from fleet.drivers.session import RunOver
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Raw, Refuse, Say
from tests.doubles.model_scripts import always, good, in_order
from tests.doubles.model_wire.openai_request import invalid
from tests.doubles.model_wire.wire import WIRES
from tests.drivers.chats import REFUSED, TAKEN, TOOL_CALL
from tests.drivers.modelled import CALL, KEY, driven, good_end, outcome, run

pytestmark = pytest.mark.anyio


async def test_a_message_of_calls_alone_has_an_empty_text() -> None:
    """llama-cpp-python takes no null there."""
    _, model = await run(in_order(Say(calls=[CALL]), *good_end()))
    answered = [one for one in model.asked[-1].messages if one["role"] == "assistant"]
    assert [one["content"] for one in answered] == ["", ""]
    assert all(invalid(asked.body) is None for asked in model.asked)


async def test_an_answer_at_once_with_no_text_is_sent_back_with_an_empty_one() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    answer = Raw((json.dumps(whole).encode(),), "application/json")
    async with driven(always(answer), stream=False) as (driver, model):
        with pytest.raises(RunOver, match="max_turns"):
            await driver(MemoryDesk(max_turns=2))
    assert [one["content"] for one in model.asked[1].messages if one["role"] == "assistant"] == [""]


async def test_reasoning_and_long_talk_that_is_cut_fit_the_schema_too() -> None:
    talk = [Say(reasoning="I think.", calls=[CALL]), Say(text="x" * 15_000, calls=[CALL])]
    _, model = await run(in_order(*talk, *good_end()), context=4_000)
    assert len(model.asked) == 4
    assert all(invalid(asked.body) is None for asked in model.asked)


async def test_the_longest_answer_is_limited_by_the_name_that_every_endpoint_knows() -> None:
    _, model = await run(good(["first", "second"]), max_tokens=64)
    limits = [{key: asked.body[key] for key in asked.body if "tokens" in key} for asked in model.asked]
    assert limits == [{"max_tokens": 64}] * len(limits)


@pytest.mark.parametrize("body", TAKEN)
def test_what_the_strict_schema_takes(body: dict[str, Any]) -> None:
    assert invalid(body) is None


@pytest.mark.parametrize(("body", "complaint"), REFUSED)
def test_what_the_strict_schema_refuses(body: dict[str, Any], complaint: str) -> None:
    found = invalid(body)
    assert found is not None
    assert found["error"]["type"] == "internal_server_error"
    assert "validation error" in found["error"]["message"]
    assert complaint in found["error"]["message"]


WRONG = "{'type': 'string_type', 'msg': 'Input should be a valid string'}"
LLAMA = {
    "error": {
        "message": f'1 validation error:\n  {WRONG}\n\n  File "/srv/app.py", line 376',
        "type": "internal_server_error",
        "param": None,
        "code": None,
    }
}
FASTAPI = {"detail": [{"loc": ["body", "messages", 2], "msg": "bad", "input": 1}]}
SHAPES: list[tuple[int, dict[str, Any], str]] = [
    (500, LLAMA, f"HTTP 500: 1 validation error: {WRONG}"),
    (422, FASTAPI, "HTTP 422: body.messages.2: bad"),
    (400, {"detail": "no such model"}, "HTTP 400: no such model"),
    (400, {"error": "too many tools"}, "HTTP 400: too many tools"),
    (400, {"message": "\x1b[31mred\u202e\n\nand\tmore"}, "HTTP 400: red and more"),
    (400, {"error": {"message": f"your key {KEY} is bad"}}, "HTTP 400: your key [redacted:secret] is bad"),
    (404, {"error": {"message": "w " * 5_000}}, "HTTP 404: w w w"),
    (404, {"unknown": 1}, "HTTP 404 (ModelNotFoundError)"),
]


@pytest.mark.parametrize(("status", "body", "expected"), SHAPES)
async def test_a_refusal_is_shown_in_the_words_of_who_refused(
    status: int, body: dict[str, Any], expected: str
) -> None:
    desk = MemoryDesk()
    shown = await outcome(always(Refuse(status=status, body=body)), desk)
    assert shown.startswith(f"provider: {expected}")
    assert len(shown) <= MAX_WORDS + 40
    assert shown.isprintable()


@pytest.mark.parametrize("kind", sorted(WIRES))
async def test_every_protocol_hands_on_the_words(kind: str) -> None:
    refuse = Refuse(status=400, body=dict(WIRES[kind].refusal(400)))
    assert await outcome(always(refuse), MemoryDesk(), kind=kind) == "provider: HTTP 400: no"


async def test_what_does_not_fit_is_not_sent_again() -> None:
    asked = []

    def script(one: Any) -> Refuse:
        asked.append(one)
        return Refuse(status=500, body=LLAMA)

    await outcome(script, MemoryDesk())
    assert len(asked) == 1


def test_no_piece_of_the_key_is_shown() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    assert without_key(f"key {key}!", key) == "key [redacted:secret]!"
    assert without_key(f"key {key[10:30]}", key) == "key [redacted:secret]"
    assert (
        without_key(f"key {key[12:18]} and {key[20:26]}", key)
        == "key [redacted:secret] and [redacted:secret]"
    )
    assert without_key(f"key {key[12:17]}", key) == f"key {key[12:17]}"
    assert key.encode().hex() not in without_key(f"hex {key.encode().hex()}", key)
    assert without_key("no key at all", "") == "no key at all"


def test_words_of_a_hostile_body_are_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(50):
        deep = {"error": deep}
    assert words(deep) == ""
    assert words("<html>502</html>") == ""
    assert words({"error": {"message": 5}}) == ""
    assert words([{"loc": ["a"], "msg": str(n)} for n in range(20)]).count(";") == 7
