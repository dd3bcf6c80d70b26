"""What a statement of a price is read as, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.oracles.agent.stated_prices import listed, stated
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from sandbox.agents.wires.a2a import CARD

API = {"paths": {"/r": {"get": {"x-payment-info": {"price": {"amount": "0.0009", "currency": "USD"}}}}}}


@pytest.mark.parametrize(
    ("said", "units"),
    [
        ("GET /r costs 1,900 units. GET /s costs 5 units.", 1_900),
        ("- `GET /r`: $0.0009 a request", 900),
        ("One call of https://h.example/r is 0.0009 USDC.", 900),
        ("`/r`: 900 base units\n`/r/more`: 7 units", 900),
        (API, 900),
        ({"tools": [{"name": "a", "description": "Reads /r. Costs 900 units."}, {"amount": "4"}]}, 900),
        ([{"resource": "/r", "amount": "900", "asset": "0x1"}, {"resource": "/s", "amount": "1"}], 900),
        ({"url": "http://h.example/r", "_meta": {"agents-x402/priceUSD": 0.0009}}, 900),
        ("GET /r costs up to 900 units.", None),  # a condition
        ("/r and /s cost 900 units.", None),  # of two things
        ("/r costs 900 units, with a key 5 units.", None),
        ("/r was 5 units.", None),
        ("/r costs 900 units.\nGET /r costs 5 units.", None),  # it disagrees with itself
        ("/reports costs 900 units.", None),
        ("/x/r costs 900 units.", None),
        ({"url": "/r", "price": 900}, None),  # of what?
        ({"url": "/r", "amount": True}, None),
        ("/r holds 900 rows.", None),
        ("/r weighs 900 units of wheat.", None),
        (None, None),
    ],
)
def test_a_price_is_one_amount_for_one_thing(said: Any, units: int | None) -> None:
    assert stated("/r", said, 6) == units


def test_without_decimals_only_units_are_a_price() -> None:
    assert (stated("/r", "/r is $0.0009", None), stated("/r", "/r costs 9 units", None)) == (None, 9)
    assert stated("/r", "/r is $0.00000009", 6) is None  # less than a unit


def test_a_tool_is_priced_by_what_is_said_of_it_and_not_of_its_arguments() -> None:
    wide = {"properties": {"n": {"description": "Up to 5 units."}}}
    tools: list[dict[str, Any]] = [{"name": "a", "description": "Costs 9 units.", "inputSchema": wide}]
    tools += [{"name": "b", "annotations": 5, "_meta": [7]}]
    assert [listed(tools, name, None) for name in ("a", "b", "c")] == [9, None, None]


NO_CARDS: tuple[object, ...] = ({"skills": 5}, {"skills": [5, {"examples": 7}]}, [], "x", {"skills": "buy"})


@pytest.mark.parametrize("card", NO_CARDS)
def test_a_card_that_is_none_states_no_price(card: object) -> None:
    sells = {"skills": [{"examples": ["buy"], "description": "Costs 8 units."}]}
    terms = {"status": 402, "quoted": True, "amount": 9}
    quote = Exchange("qa_pay", {"url": "{site}/a2a", "message": "buy"}, terms)

    def seen(said: object) -> list[str]:
        page = Exchange("qa_fetch", {"url": f"{{site}}{CARD}"}, {"status": 200, "text": json.dumps(said)})
        found = judge([page, quote], Facts(site="http://h"))
        return [one.sighting.title for one in found if one.oracle == "payment-terms"]

    assert seen(card) == []
    assert seen(sells) == [f"{{site}}/a2a asks 9 units, and the card at {{site}}{CARD} says 8"]
