"""What the purse may authorise, as a table, and that what is signed is EIP-3009 by another library's word."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from eth_utils.address import is_checksum_address
from eth_utils.crypto import keccak

from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.ports import PaymentQuote, PaymentRequest
from fleet.chain.signing.payment import (
    MOVES,
    PAST_S,
    VALID_S,
    PaymentFacts,
    authorisation,
    carried,
    check,
    digest,
    nonce_of,
)
from fleet.config.payments import PaymentsSection
from fleet.errors import Refused

ASSET, PAYEE, PURSE = "0x" + "70" * 20, "0x" + "be" * 20, "0x" + "aa" * 20
LIMITS = PaymentsSection.model_validate(
    {
        "resources": ["{site}/reports"],
        "asset": ASSET,
        "name": "USD Coin",
        "version": "2",
        "most": 1_000,
        "per_run": 5_000,
        "holds": 9_000,
    }
)
FACTS = PaymentFacts(
    rung="exercise",
    never=frozenset(),
    limits=LIMITS,
    chain_id=8453,
    purse=PURSE,
    left=5_000,
    held=9_000,
    node_chain_id=8453,
)
QUOTE = PaymentQuote("exact", "eip155:8453", ASSET, PAYEE, 1_000)
ASKED = PaymentRequest(run="ab12", quote=QUOTE, value=1_000, seconds=60)


def rule(asked: dict[str, Any], quote: dict[str, Any], facts: dict[str, Any]) -> str:
    """The rule that refuses, "" when it is signed."""
    request = dataclasses.replace(ASKED, quote=dataclasses.replace(QUOTE, **quote), **asked)
    try:
        check(request, dataclasses.replace(FACTS, **facts))
    except Refused as refused:
        return refused.rule
    return ""


@pytest.mark.parametrize(
    ("asked", "quote", "facts", "refused"),
    [
        ({}, {}, {}, ""),
        ({}, {}, {"rung": "propose"}, ""),
        ({"value": 1}, {}, {"left": 1}, ""),
        ({"own": True}, {"asset": ASSET.upper().replace("X", "x")}, {}, ""),
        ({"seconds": -PAST_S}, {}, {}, ""),
        ({}, {}, {"rung": "stop"}, "stop"),
        ({}, {}, {"rung": "observe"}, "dial"),
        ({}, {}, {"rung": ""}, "dial"),
        ({}, {}, {"never": frozenset({MOVES})}, "never"),
        ({}, {}, {"node_chain_id": 1}, "chain"),
        ({}, {"network": "eip155:1"}, {}, "network"),
        ({}, {"network": "base"}, {}, "network"),
        ({}, {"network": ""}, {}, "network"),
        ({}, {"network": "base"}, {"limits": LIMITS.model_copy(update={"network": "base"})}, ""),
        ({}, {"network": "sei"}, {"limits": LIMITS.model_copy(update={"network": "base"})}, "network"),
        ({}, {"scheme": "upto"}, {}, "network"),
        ({}, {"asset": "0x" + "71" * 20}, {}, "asset"),
        ({}, {}, {"limits": PaymentsSection()}, "asset"),
        ({}, {"payee": "0x12"}, {}, "payee"),
        ({"own": True}, {"payee": ZERO_ADDRESS}, {}, "payee"),
        ({}, {}, {"limits": LIMITS.model_copy(update={"payee": PURSE})}, "payee"),
        ({}, {"amount": 1_001}, {}, "amount"),
        ({"value": 1}, {"amount": 1_001}, {}, "amount"),
        ({"value": 1_000}, {"amount": 999}, {}, "amount"),
        ({"value": 0}, {}, {}, "amount"),
        ({"value": -1}, {}, {}, "amount"),
        ({"seconds": VALID_S + 1}, {}, {}, "validity"),
        ({"seconds": -PAST_S - 1}, {}, {}, "validity"),
        ({}, {}, {"left": 999}, "budget"),
        ({}, {}, {"held": 9_001}, "purse"),
    ],
)
def test_a_payment_is_signed_within_all_bounds_and_each_bound_refuses(
    asked: dict[str, Any], quote: dict[str, Any], facts: dict[str, Any], refused: str
) -> None:
    assert rule(asked, quote, facts) == refused


@pytest.mark.parametrize("own", [False, True])
def test_the_digest_is_that_of_the_standard(own: bool) -> None:
    made = authorisation(dataclasses.replace(ASKED, own=own), PURSE, 1_800_000_000, b"\7" * 32)
    assert (made.payer, made.payee, made.value) == (PURSE, PURSE if own else PAYEE, 1_000)
    words = ["from address", "to address", "value uint256", "validAfter uint256", "validBefore uint256"]
    kinds = [dict(zip(("name", "type"), one.split(), strict=True)) for one in [*words, "nonce bytes32"]]
    values = [made.payer, made.payee, made.value, made.valid_after, made.valid_before, made.nonce]
    message = encode_typed_data(
        {"name": "USD Coin", "version": "2", "chainId": 8453, "verifyingContract": ASSET},
        {"TransferWithAuthorization": kinds},
        dict(zip((one["name"] for one in kinds), values, strict=True)),
    )
    theirs = keccak(b"\x19" + message.version + message.header + message.body)
    assert digest(made, LIMITS, 8453) == theirs
    assert digest(made, LIMITS, 1) != theirs


def test_a_seller_that_takes_checked_addresses_alone_can_read_a_payment() -> None:
    made = carried(authorisation(ASKED, PURSE, 1_800_000_000, b"\7" * 32), "0x12")
    said = made["authorization"]
    assert is_checksum_address(said["from"])
    assert is_checksum_address(said["to"])
    assert (said["from"].lower(), said["to"].lower(), said["value"]) == (PURSE, PAYEE, "1000")


def test_one_that_is_over_was_valid_before_and_is_not_now() -> None:
    made = authorisation(dataclasses.replace(ASKED, seconds=-60), PURSE, 10_000, b"\7" * 32)
    assert (made.valid_after, made.valid_before) == (10_000 - PAST_S - VALID_S, 9_940)


def test_a_challenge_binds_the_nonce_of_its_payment_and_nothing_else_does() -> None:
    bound = dataclasses.replace(QUOTE, bound='["id-7","tolls"]')
    assert nonce_of(bound) == keccak(b'["id-7","tolls"]') == nonce_of(bound)
    assert nonce_of(QUOTE) != nonce_of(QUOTE)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"resources": []}, "names nothing"),
        ({"asset": None}, "asset, name and version"),
        ({"version": ""}, "asset, name and version"),
        ({"most": 0}, "0 < most"),
        ({"most": 6_000}, "0 < most"),
        ({"per_run": 10_000}, "0 < most"),
        ({"prices": {"{site}/other": 5}}, "not in payments.resources"),
    ],
)
def test_limits_that_bound_nothing_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PaymentsSection.model_validate(LIMITS.model_dump(exclude_unset=True) | changes)
