"""Signatures of agent cards: each algorithm, both canonical forms, and what proves nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from Crypto.Hash import SHA256
from Crypto.PublicKey import RSA
from Crypto.Signature import pkcs1_15

from fleet.devnet.surfaces.herbarium_wires import encoded
from fleet.oracles.agent.card_signatures import FORGED, KEYS, SIGNED, refuted

CARD = {"name": "fern", "skills": [], "description": ""}
KEY = RSA.generate(1024)
RSA_KEYS = json.dumps({"keys": [{"kid": "k", "n": encoded(KEY.n.to_bytes(128, "big")), "e": "AQAB"}]})


def signed(payload: dict[str, Any], **header: object) -> str:
    """CARD, with a signature of a payload."""
    protected = encoded(json.dumps({"alg": "RS256", "kid": "k", **header}).encode())
    whole = SHA256.new(f"{protected}.{encoded(rfc8785.dumps(payload))}".encode())
    one = {"protected": protected, "signature": encoded(pkcs1_15.new(KEY).sign(whole))}
    return json.dumps(CARD | {"signatures": [one]})


@pytest.mark.parametrize(
    ("card", "keys", "wrong"),
    [
        (signed(CARD), RSA_KEYS, False),
        (signed({"name": "fern"}), RSA_KEYS, False),
        (signed({"name": "moss"}), RSA_KEYS, True),
        (signed({"name": "moss"}, kid="other"), RSA_KEYS, False),
        (signed({"name": "moss"}, alg="HS256"), RSA_KEYS, False),
        (SIGNED, KEYS, False),
        (FORGED, KEYS, True),
        (FORGED, "", False),
        (FORGED, '{"keys": [{"kid": "1", "crv": "Ed25519", "x": 7}]}', False),
        (json.dumps({"signatures": [7, {"protected": "-"}]}), KEYS, False),
        ("[" * 5_000, KEYS, False),
    ],
    ids=["whole", "lean", "forged", "no-key", "secret", "ed", "ed-forged", "none", "odd-key", "odd", "deep"],
)
def test_only_a_signature_that_no_form_of_the_card_fits_is_refuted(card: str, keys: str, wrong: bool) -> None:
    assert refuted(card, keys) is wrong


@pytest.mark.parametrize(("bits", "exponent"), [(16_384, 65_537), (1_024, (1 << 33) + 1)])
def test_a_key_that_takes_long_to_try_is_none(bits: int, exponent: int) -> None:
    modulus = (KEY.n << (bits - 1_024)) | 1
    parts = {"n": modulus.to_bytes(bits // 8, "big"), "e": exponent.to_bytes(8, "big")}
    keys = {"keys": [{"kid": "k", **{name: encoded(value) for name, value in parts.items()}}]}
    assert refuted(signed({"name": "moss"}), json.dumps(keys)) is False
