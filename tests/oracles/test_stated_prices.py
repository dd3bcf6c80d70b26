"""What a statement of a price is read as, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles.agent.stated_prices import listed, stated

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
        ("/r costs 900 units.\nGET /r is 5 units.", None),  # it disagrees with itself
        ("/reports costs 900 units.", None),
        ("/x/r costs 900 units.", None),
        ({"url": "/r", "price": 900}, None),  # of what?
        ({"url": "/r", "amount": True}, None),
        ("/r holds 900 rows.", None),
        (None, None),
    ],
)
def test_a_price_is_one_amount_for_one_thing(said: Any, units: int | None) -> None:
    assert stated("/r", said, 6) == units


def test_without_decimals_only_units_are_a_price() -> None:
    assert (stated("/r", "/r is $0.0009", None), stated("/r", "/r is 9 units", None)) == (None, 9)
    assert stated("/r", "/r is $0.00000009", 6) is None  # less than a unit


def test_a_tool_is_priced_by_what_is_said_of_it_and_not_of_its_arguments() -> None:
    wide = {"properties": {"n": {"description": "Up to 5 units."}}}
    tools: list[dict[str, Any]] = [{"name": "a", "description": "Costs 9 units.", "inputSchema": wide}]
    tools += [{"name": "b"}]
    assert [listed(tools, name, None) for name in ("a", "b", "c")] == [9, None, None]
