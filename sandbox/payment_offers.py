"""What an answer of 402 asks to be paid, in the forms that are in use. Pure.

Read twice: outside a jail, by the broker, which has a payment signed for what passed it; inside, by the tool
that makes the payment.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox import strict_json

V2, MPP, V1 = "x402-2", "mpp", "x402-1"
FORMS = (V2, MPP, V1)
"""x402 version 2 (a header), MPP (`WWW-Authenticate: Payment`, IETF draft-ryan-httpauth-payment), and x402
version 1 (the body), in the order in which they are read."""
MAX_OFFERS = 8
"""Offers of one form that are looked at."""
MAX_HEADER = 16_000
MAX_AMOUNT = 1 << 62
PAYMENT_REQUIRED = 402
_PARAM = r'[A-Za-z_-]{1,32}[ \t]*=[ \t]*(?:"(?:[^"\\]|\\.)*"|[^\s,"]+)'
_CHALLENGE = re.compile(rf"(?:^|[\s,])Payment[ \t]+({_PARAM}(?:[ \t]*,[ \t]*{_PARAM})*)", re.IGNORECASE)
_PARAMS = re.compile(r'([A-Za-z_-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PaymentOffer:
    """One way to pay. `amount` in units of `asset`, 0 for none that can be read; `network` as CAIP-2, or the
    name that version 1 has; `entry` as it was stated, in the whole `terms`; `bound`: the text whose keccak256
    the nonce of a payment must be, "" for any nonce."""

    form: str
    scheme: str
    network: str
    asset: str
    payee: str
    amount: int
    entry: Json
    terms: Json
    bound: str = ""


def offers(status: int, headers: Mapping[str, str], body: bytes) -> list[PaymentOffer]:
    """The offers of an answer; `headers` by lower-case names, repeated ones joined by a comma."""
    if status != PAYMENT_REQUIRED:
        return []
    return [
        *_of_x402(V2, decoded(headers.get("payment-required", "")), "amount"),
        *_challenges(headers.get("www-authenticate", "")),
        *_of_x402(V1, _object(body), "maxAmountRequired"),
    ]


def units(said: object) -> int:
    """An amount in digits; 0 for none, or for more than there is."""
    digits = isinstance(said, str) and said.isascii() and said.isdigit() and len(said) < 20
    return int(str(said)) if digits and int(str(said)) <= MAX_AMOUNT else 0


def decoded(text: str) -> Json | None:
    """The object in base64, of either alphabet, padded or not; None for none."""
    if not text or len(text) > MAX_HEADER:
        return None
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return _object(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except ValueError:
        return None


def _object(raw: bytes) -> Json | None:
    try:
        said = strict_json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _of_x402(form: str, terms: Json | None, amount: str) -> Iterator[PaymentOffer]:
    terms = terms or {}
    listed = terms.get("accepts") if terms.get("x402Version") == int(form[-1]) else None
    for entry in listed[:MAX_OFFERS] if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            scheme, network, asset, payee = (
                _word(entry.get(key)) for key in ("scheme", "network", "asset", "payTo")
            )
            yield PaymentOffer(form, scheme, network, asset, payee, units(entry.get(amount)), entry, terms)


def _challenges(header: str) -> Iterator[PaymentOffer]:
    """Charges by EIP-3009 (method `evm`); `terms` are the challenge, `entry` is its request."""
    for found in list(_CHALLENGE.finditer(header[:MAX_HEADER]))[:MAX_OFFERS]:
        pairs = _PARAMS.findall(found[1])
        terms = {key.lower(): re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in pairs}
        entry = decoded(terms.get("request", "")) or {}
        details = entry.get("methodDetails")
        details = details if isinstance(details, dict) else {}
        kinds = details.get("credentialTypes")
        charge = (terms.get("method"), terms.get("intent")) == ("evm", "charge") and terms.get("id")
        exact = charge and isinstance(kinds, list) and "authorization" in kinds and not details.get("splits")
        yield PaymentOffer(
            MPP,
            "exact" if exact else _word(terms.get("intent")),
            f"eip155:{details.get('chainId')}"[:60],
            _word(entry.get("currency")),
            _word(entry.get("recipient")),
            units(entry.get("amount")),
            entry,
            terms,
            json.dumps([terms.get("id"), terms.get("realm", "")], separators=(",", ":"), ensure_ascii=False),
        )


def _word(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= 100 else ""
