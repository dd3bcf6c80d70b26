"""The model driver at an endpoint that cannot stream: the same turns, shown as if they had been streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.events.model import MessageDone, MessageStarted
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Answer, Raw
from tests.doubles.model_scripts import in_order
from tests.drivers.modelled import run

pytestmark = pytest.mark.anyio


def whole(*calls: tuple[str, dict[str, Any]], text: str | None = None) -> Answer:
    """One answer in one piece."""
    asked = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for n, (name, args) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text} | ({"tool_calls": asked} if asked else {})
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "whole",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if asked else "stop"}],
        "usage": {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77},
    }
    return Raw([json.dumps(body).encode()], content_type="application/json")


async def test_it_works_through_the_plan_and_every_answer_is_asked_for_in_one_piece() -> None:
    probes = [("run_probe", {"probe": "first"}), ("run_probe", {"probe": "second"})]
    script = in_order(whole(*probes, text="Both at once."), whole(("finish", {"detail": "done"})))
    desk, model = await run(script, MemoryDesk(), stream=False)
    assert [tool for _, tool, _ in desk.asked] == ["run_probe", "run_probe", "finish"]
    assert [turn.proposed for turn in desk.turns] == [("c0", "c1"), ("c0",)]
    assert [asked.body.get("stream", False) for asked in model.asked] == [False, False]
    started = [event for event in desk.shown if isinstance(event, MessageStarted)]
    assert [(event.index, event.kind, event.text) for event in started[:2]] == [
        (0, "text", "Both at once."),
        (1, "tool_request", '{"probe": "first"}'),
    ]
    assert [event.index for event in desk.shown if isinstance(event, MessageDone)] == [0, 1, 2, 3]
    assert [(usage.input_tokens, usage.output_tokens) for usage in desk.settled if usage] == [(70, 7)] * 2


async def test_an_answer_that_is_no_answer_is_a_turn_that_failed() -> None:
    nonsense = Raw([b'{"choices": []}'], content_type="application/json")
    desk, _ = await run(
        in_order(nonsense, whole(("finish", {"detail": "x"}))), MemoryDesk(probes=()), stream=False
    )
    assert [turn.failure for turn in desk.turns] == ["provider_error", ""]
