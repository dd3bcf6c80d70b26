"""What an answer asks to be paid, by each form of terms; the broker reads the same from what passes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fleet.broker.services import quotes_in
from sandbox.payment_offers import MPP, V1, V2, offers

ASSET, PAYEE = "0x" + "70" * 20, "0x" + "be" * 20
TERMS = {"scheme": "exact", "asset": ASSET, "payTo": PAYEE}
OLD = {"x402Version": 1, "accepts": [TERMS | {"network": "base", "maxAmountRequired": "7"}]}
NEW = {"x402Version": 2, "accepts": [TERMS | {"network": "eip155:8453", "amount": "9"}]}
CHARGE: dict[str, Any] = {
    "amount": "8",
    "currency": ASSET,
    "recipient": PAYEE,
    "methodDetails": {"chainId": 8453, "credentialTypes": ["authorization"]},
}


def coded(said: object) -> str:
    return base64.b64encode(json.dumps(said).encode()).decode()


def challenge(request: object = CHARGE, method: str = "evm") -> str:
    return (
        f'Payment id="a \\"1\\"", realm="tolls", method="{method}", intent=charge, request="{coded(request)}"'
    )


ALL = {"payment-required": coded(NEW), "www-authenticate": f'Bearer realm="x", {challenge()}'}


def test_each_form_beside_the_others_is_read_in_one_order_inside_a_jail_and_outside() -> None:
    body = json.dumps(OLD).encode()
    found = offers(402, ALL, body)
    assert [(one.form, one.network, one.amount) for one in found] == [
        (V2, "eip155:8453", 9),
        (MPP, "eip155:8453", 8),
        (V1, "base", 7),
    ]
    assert {(one.scheme, one.asset, one.payee) for one in found} == {("exact", ASSET, PAYEE)}
    assert [one.bound for one in found] == ["", '["a \\"1\\"","tolls"]', ""]
    head = "".join(f"{name}: {value}\r\n" for name, value in ALL.items())
    framings = (
        f"content-length: {len(body)}\r\n\r\n".encode() + body,
        b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    )
    for framed in framings:
        passed = quotes_in(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 402 Pay\r\n" + head.encode() + framed)
        assert [(one.network, one.amount, one.bound) for one in passed] == [
            (one.network, one.amount, one.bound) for one in found
        ]
    cut = quotes_in(b"HTTP/1.1 402 Pay\r\n" + head.encode() + framings[0][:-5])
    assert [one.amount for one in cut] == [9, 8]  # the body is not whole
    assert quotes_in(b"HTTP/1.1 200 OK\r\n" + head.encode() + framings[0]) == []


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Payment",
        'Payment id="1", realm="x"',
        challenge(request=[1]),
        challenge(method="tempo"),
        challenge(CHARGE | {"methodDetails": {"chainId": 8453, "credentialTypes": ["hash"]}}),
        challenge(
            CHARGE | {"methodDetails": {"chainId": 8453, "credentialTypes": ["authorization"], "splits": [1]}}
        ),
        challenge(CHARGE | {"amount": 8}),
        challenge(CHARGE | {"currency": 8}),
    ],
)
def test_a_challenge_that_is_no_charge_in_the_token_is_none_that_is_paid(header: str) -> None:
    found = offers(402, {"www-authenticate": header}, b"")
    assert [one for one in found if one.scheme == "exact" and one.asset and one.amount] == []


@pytest.mark.parametrize("amount", [5, "-5", "٣", "9" * 101, None])
def test_an_amount_that_is_not_in_digits_is_none(amount: object) -> None:
    for form in ({"x402Version": 2, "accepts": [TERMS | {"amount": amount}]}, OLD | {"accepts": [[], 1]}):
        found = offers(402, {"payment-required": coded(form)}, json.dumps(form).encode())
        assert [one for one in found if one.amount] == []
