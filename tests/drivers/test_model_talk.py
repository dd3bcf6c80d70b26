"""What of the model driver is pure: marks around data, the trimmed conversation, prices, arguments."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from fleet.config import PricesSection
from fleet.drivers.desk import Brief, Reply
from fleet.drivers.model.driver import arguments
from fleet.drivers.model.prices import MICRO, MILLION, cost
from fleet.drivers.model.talk import MAX_DATA, Talk, data, size, trimmed
from fleet.events.model import TurnUsage

NONCE = "0123456789abcdef"
PRICES = PricesSection(input=Decimal(3), output=Decimal(15), cached=Decimal("0.3"))


@given(st.text())
def test_data_cannot_leave_its_marks(text: str) -> None:
    marked = data(f"{text}</data {NONCE}>{text}<data {NONCE}>", NONCE)
    assert marked.count(NONCE) == 2
    assert marked.startswith(f"<data {NONCE}>\n")
    assert marked.endswith(f"\n</data {NONCE}>")


def test_long_data_is_cut_with_a_mark() -> None:
    marked = data("x" * (MAX_DATA + 7), NONCE)
    assert "[…cut: 7 more characters]" in marked
    assert len(marked) < MAX_DATA + 200


def exchange(number: int, result: int, said: int = 10) -> list[ModelMessage]:
    call = ToolCallPart("look", {"n": number}, f"c{number}")
    back = ToolReturnPart("look", "r" * result, f"c{number}")
    return [ModelResponse(parts=[TextPart("s" * said), call]), ModelRequest(parts=[back])]


def conversation(*sizes: tuple[int, int]) -> list[ModelMessage]:
    first = ModelRequest(parts=[SystemPromptPart("system"), UserPromptPart("plan")])
    later = [one for number, (result, said) in enumerate(sizes) for one in exchange(number, result, said)]
    return [first, *later]


SIZES = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), max_size=8)


@given(SIZES, st.integers(0, 30_000))
def test_a_trimmed_conversation_is_short_and_whole(sizes: list[tuple[int, int]], limit: int) -> None:
    before = conversation(*sizes)
    after = trimmed(before, limit)
    assert after[0] == before[0]
    assert after[-2:] == before[-2:]
    assert size(after) <= limit or len(after) <= 3
    asked = [part.tool_call_id for one in after for part in one.parts if isinstance(part, ToolCallPart)]
    told = [part.tool_call_id for one in after for part in one.parts if isinstance(part, ToolReturnPart)]
    assert asked == told
    assert trimmed(after, limit) == after
    if size(before) <= limit:
        assert after == before


def test_results_give_way_before_exchanges_do_and_old_ones_first() -> None:
    before = conversation((1_000, 10), (1_000, 10), (1_000, 10))
    after = trimmed(before, size(before) - 500)
    contents = [str(one.parts[0].content) for one in after[2::2]]  # type: ignore[union-attr]
    assert contents == ["[an older result, cut: 1000 characters]", "r" * 1_000, "r" * 1_000]


def test_every_call_is_answered_in_what_goes_out() -> None:
    talk = Talk(NONCE, 100_000)
    talk.open(Brief(system="brief", plan="plan"))
    response = ModelResponse(parts=[ToolCallPart("a", {}, "1"), ToolCallPart("b", {}, "2")])
    talk.answered(response, {0: Reply("1", "a", {"ok": True})})
    returns = [part for part in talk.messages()[-1].parts if isinstance(part, ToolReturnPart)]
    assert [(one.tool_call_id, one.outcome) for one in returns] == [("1", "success"), ("2", "failed")]
    assert "the turn ended before this call" in str(returns[1].content)


def test_an_answer_that_says_nothing_leaves_no_trace() -> None:
    talk = Talk(NONCE, 100_000)
    talk.open(Brief(system="brief", plan="plan"))
    talk.answered(ModelResponse(parts=[]), {})
    assert len(talk.messages()) == 1


def test_a_long_text_of_the_model_is_not_carried_along() -> None:
    talk = Talk(NONCE, 1_000_000)
    talk.open(Brief(system="brief", plan="plan"))
    talk.answered(ModelResponse(parts=[TextPart("x" * 900_000)]), {})
    assert size(talk.messages()) < 20_000


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (None, {}),
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1', '{"a": 1'),
        ("[1]", "[1]"),
        ("null", "null"),
        ('{"a": Infinity}', '{"a": Infinity}'),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ('{"a":' * 5_000, '{"a":' * 5_000),
    ],
)
def test_arguments_are_an_object_or_the_text_as_it_came(args: Any, found: Any) -> None:
    assert arguments(args) == found


def test_cost_is_exact_and_unknown_where_a_number_is() -> None:
    used = TurnUsage(input_tokens=1_000_001, output_tokens=7, cached_tokens=1)
    assert cost(PRICES, used) == Decimal("3.000106")
    assert cost(None, used) is None
    assert cost(PRICES, TurnUsage(input_tokens=1)) is None
    assert cost(PRICES, TurnUsage(output_tokens=1)) is None
    assert cost(PRICES, TurnUsage(input_tokens=0, output_tokens=0)) == 0


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**8))
def test_no_call_costs_more_than_the_dearest_price(read: int, written: int, cached: int) -> None:
    found = cost(PRICES, TurnUsage(input_tokens=read, output_tokens=written, cached_tokens=cached))
    assert found is not None
    dearest = max(PRICES.input, PRICES.output, PRICES.cached or Decimal(0))
    assert 0 <= found <= (dearest * (read + written) / MILLION).quantize(MICRO, rounding=ROUND_UP)
