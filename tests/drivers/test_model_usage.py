"""What a model costs: read at the end, set aside before, never free because nobody said."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters

from fleet.drivers.model.endpoint import open_endpoint
from fleet.drivers.model.exchange import ModelExchange
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Answer, ModelPrompt, Say, ScriptedCall, serve_model
from tests.doubles.model_scripts import always, good, in_order
from tests.drivers.modelled import DONE, KEY, outcome, run, section

pytestmark = pytest.mark.anyio

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
ZEROS = dict.fromkeys(USAGE, 0)
DETAILED = USAGE | {
    "prompt_tokens_details": {"cached_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 60},
}


@pytest.mark.parametrize(
    ("usage", "numbers", "dollars"),
    [
        (USAGE, (1_000, 100, None, None), "0.004500"),
        (DETAILED, (1_000, 100, 400, 60), "0.003420"),
        (None, (None, None, None, None), None),
        ({}, (None, None, None, None), None),
        ({"prompt_tokens": -5, "completion_tokens": 7, "total_tokens": 2}, (None,) * 4, None),
        ({"prompt_tokens": 10**15, "completion_tokens": 7, "total_tokens": 7}, (None, 7, None, None), None),
    ],
)
@pytest.mark.filterwarnings("ignore:Failed to extract usage")
async def test_usage_is_what_the_endpoint_said_at_the_end_and_nothing_else(
    usage: dict[str, Any] | None, numbers: tuple[int | None, ...], dollars: str | None
) -> None:
    probes = [ScriptedCall("run_probe", {"probe": probe}) for probe in ("first", "second")]
    script = in_order(Say(calls=probes, usage=usage), Say(calls=[ScriptedCall("finish", {"detail": "x"})]))
    desk, _ = await run(script, prices=True)
    used = desk.settled[0]
    assert used is not None
    found = (used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens)
    assert (found, used.cost_usd) == (numbers, dollars)
    assert (used.model_calls, used.tool_calls, used.model) == (1, 2, "scripted")
    assert desk.turns[0].usage is not None


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize("usage", [{"prompt_tokens": "many"}, {"prompt_tokens": [1]}, {"a": 1}, ZEROS])
async def test_a_usage_that_is_none_is_unknown_or_spoils_the_answer_but_never_free(usage: Any) -> None:
    desk = MemoryDesk(max_turns=3)
    await outcome(always(Say(text="hm", usage=usage)), desk, prices=True)
    for used in desk.settled:
        assert used is None or (used.input_tokens, used.cost_usd) == (None, None)


async def test_what_a_refusal_cost_is_charged() -> None:
    desk = MemoryDesk()
    assert await outcome(always(Say(refusal="no")), desk) == "agent_stuck"
    assert [used.input_tokens for used in desk.settled if used] == [100] * 3


async def test_before_the_end_of_an_answer_nobody_knows_what_it_cost() -> None:
    desk = MemoryDesk()
    async with (
        serve_model(always(DONE)) as model,
        desk.turn() as turn,
        open_endpoint(section(model.url), KEY, 5.0) as endpoint,
    ):
        nothing = ModelRequestParameters()
        exchange = ModelExchange(
            model=endpoint, parameters=nothing, settings={}, prices=None, turn=turn, index=0, key=KEY
        )
        with pytest.raises(RuntimeError, match="not read to its end"):
            exchange.usage()
        await exchange.run([ModelRequest.user_text_prompt("hello")])
        assert exchange.usage().input_tokens == 100


async def test_before_each_request_the_prompt_and_the_longest_answer_are_set_aside() -> None:
    desk = MemoryDesk()
    seen: list[list[int]] = []

    def script(asked: ModelPrompt) -> Answer:
        seen.append(list(desk.reserved))
        return good(["first", "second"])(asked)

    await run(script, desk, max_tokens=500)
    assert all(len(reserved) == number for number, reserved in enumerate(seen, start=1))
    assert all(reserved[-1] > 500 + 100 for reserved in seen)
    assert desk.reserved == [120] * len(seen)
