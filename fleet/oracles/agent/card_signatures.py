"""Signatures of agent cards: JWS (RFC 7515) over the canonical card (RFC 8785) without them. Pure."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import rfc8785
from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC, RSA
from Crypto.Signature import DSS, eddsa, pkcs1_15

Json = dict[str, Any]
LONGEST_KEY, LONGEST_EXPONENT = 8192, 32
"""Bits of an RSA key that is tried: a stranger's larger one could take hours."""
_PUBLIC = "RIDp0AZdHew_y0f8gZrlleCATwNFql7SC0zwoSsSfFo"
KEYS = json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": _PUBLIC}]})
_SIGNATURES = [
    {
        "protected": "eyJhbGciOiAiRWREU0EiLCAia2lkIjogIjEifQ",
        "signature": "QBCDpPXq4LTvs_qt0wq541F7MybiZA4uQLk7-l1oYVfRbr4RB8PgXhK_MmVjd5fjV9HqxGrelCCJWbP_OpNgBQ",
    }
]
SIGNED = json.dumps({"name": "fern", "skills": [], "signatures": _SIGNATURES})
FORGED = json.dumps({"name": "moss", "skills": [], "signatures": _SIGNATURES})
"""A card of an example as it was signed, and with another name."""


def refuted(card_text: str, keys_text: str) -> bool:
    """Whether there is a signature whose key is there and which no form of the card fits; never raises."""
    card, keys = _read(card_text), _read(keys_text).get("keys")
    for one in _objects(card.get("signatures")):
        protected = str(one.get("protected") or "")
        header = _read(_decoded(protected).decode("utf-8", "replace"))
        named = [key for key in _objects(keys) if key.get("kid") == header.get("kid")]
        if len(named) != 1:
            continue
        forms = (f"{protected}.{_encoded(form)}".encode() for form in _forms(card))
        seen = [
            _fits(header.get("alg"), named[0], form, _decoded(str(one.get("signature")))) for form in forms
        ]
        if seen and all(each is False for each in seen):
            return True
    return False


def _forms(card: Json) -> Iterator[bytes]:
    """What may have been signed: the card as it is, and without fields that have their default value, which
    the specification leaves out and some signers leave in."""
    plain = {key: value for key, value in card.items() if key != "signatures"}
    for form in (plain, _lean(plain)):
        try:
            yield rfc8785.dumps(form)
        except (rfc8785.CanonicalizationError, RecursionError):
            continue


def _lean(value: Any) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, dict):
        lean = {key: _lean(one) for key, one in value.items()}
        return {key: one for key, one in lean.items() if one not in ("", 0, False, None, [], {})}
    return [_lean(one) for one in value] if isinstance(value, list) else value


def _fits(alg: object, key: Json, signed: bytes, signature: bytes) -> bool | None:
    """None where the key or the algorithm is none that is known here."""
    verifier: Any
    try:
        if alg == "RS256":
            modulus, exponent = _number(key["n"]), _number(key["e"])
            if modulus.bit_length() > LONGEST_KEY or exponent.bit_length() > LONGEST_EXPONENT:
                return None
            verifier = pkcs1_15.new(RSA.construct((modulus, exponent)))
        elif alg == "ES256" and key.get("crv") == "P-256":
            point = ECC.construct(curve="P-256", point_x=_number(key["x"]), point_y=_number(key["y"]))
            verifier = DSS.new(point, "fips-186-3")
        elif alg == "EdDSA" and key.get("crv") == "Ed25519":
            verifier = eddsa.new(eddsa.import_public_key(_decoded(str(key["x"]))), "rfc8032")
        else:
            return None
    except (KeyError, ValueError, TypeError):
        return None
    try:
        verifier.verify(signed if alg == "EdDSA" else SHA256.new(signed), signature)
    except ValueError:
        return False
    return True


def _read(text: str) -> Json:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _objects(value: object) -> list[Json]:
    return [one for one in value[:8] if isinstance(one, dict)] if isinstance(value, list) else []


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text), "big")
