"""What an answer of 402 asks to be paid, in the forms that are in use. Pure.

Read twice: outside a jail, by the broker, which has a payment signed for what passed it; inside, by the tool
that makes the payment.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sandbox import strict_json
from sandbox.agents.sse import Decoder, StreamFault

V2, MPP, V1 = "x402-2", "mpp", "x402-1"
FORMS = (V2, MPP, V1)
"""x402 version 2 (a header), MPP (`WWW-Authenticate: Payment`, IETF draft-ryan-httpauth-payment), and x402
version 1 (the body), in the order in which they are read."""
MAX_OFFERS = 8
"""Offers of one form that are looked at."""
MAX_HEADER = 16_000
MAX_AMOUNT = 1 << 62
PAYMENT_REQUIRED = 402
X402 = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2"
"""The extension by which an agent of A2A takes payments."""
MCP_PAYMENT, MCP_RECEIPT = "x402/payment", "x402/payment-response"
"""Where in `_meta` of a call of MCP, and of its result, payment and receipt are."""
A2A_REQUIRED, A2A_RECEIPTS = "x402.payment.required", "x402.payment.receipts"
"""Where in the metadata of a task's status message terms and receipts are."""
_EACH_TIME = frozenset(
    ("_meta", "metadata", "id", "taskId", "contextId", "messageId", "artifactId", "timestamp")
)
"""Members of a result that differ where nothing else does."""
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


def a2a_payment(payment: Mapping[str, Any]) -> Json:
    """The metadata of a message that carries a payment."""
    return {"x402.payment.status": "payment-submitted", "x402.payment.payload": payment}


def offers(status: int, headers: Mapping[str, str], body: bytes) -> list[PaymentOffer]:
    """The offers of an answer; `headers` by lower-case names, repeated ones joined by a comma."""
    status, headers, body = in_http(status, headers, body)
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


# Answers of JSON-RPC ----------------------------------------------------------------------------------


def in_http(status: int, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
    """An answer of MCP or A2A in the words of HTTP: 402 with terms, 400 for an error, a header for a receipt,
    and a body without what differs each time. Any other answer stays as it is.

    Terms are in a tool's result (`structuredContent`, or its text), in an error's `data` (x402 version 1), or
    in the metadata of a task's status message.
    """
    try:
        return _translated(status, headers, body)
    except RecursionError:  # nested too deeply to be walked
        return status, headers, body


def _translated(status: int, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
    said = _rpc_answer(headers.get("content-type", ""), body) if status < PAYMENT_REQUIRED else {}
    error, result = said.get("error"), said.get("result")
    if not isinstance(error, dict) and not isinstance(result, dict):
        return status, headers, body
    result = result if isinstance(result, dict) else {}
    task = result.get("task", result)
    about = _inside(task, "status", "message", "metadata")
    more = dict[str, str]()
    if isinstance(ident := _inside(task, "id"), str) and "status" in task:
        more["x-task"] = ident[:200]
    receipts = about.get(A2A_RECEIPTS) if isinstance(about, dict) else None
    receipt = (
        receipts[-1] if isinstance(receipts, list) and receipts else _inside(result, "_meta", MCP_RECEIPT)
    )
    if isinstance(receipt, dict) and receipt:
        more |= dict.fromkeys(("payment-response", "x-payment-response"), _encoded(receipt))
    for terms in (
        _inside(result, "structuredContent"),
        *map(_object, _texts(result)),
        _inside(error, "data"),
        about.get(A2A_REQUIRED) if isinstance(about, dict) else None,
    ):
        if isinstance(terms, dict) and isinstance(terms.get("accepts"), list) and "x402Version" in terms:
            header = {"payment-required": _encoded(terms)} if terms["x402Version"] == 2 else {}
            return PAYMENT_REQUIRED, more | header, json.dumps(terms if not header else {}).encode()
    state = str(_inside(task, "status", "state")).lower()
    failed = (
        result.get("isError") is True or isinstance(error, dict) or state.endswith(("failed", "rejected"))
    )
    shown = {"error": error.get("message")} if isinstance(error, dict) else _lasting(result)
    return (400 if failed else status), more, json.dumps(shown, sort_keys=True).encode()


def _rpc_answer(kind: str, body: bytes) -> Json:
    """The last answer of JSON-RPC in a body, be it JSON or a stream of events; empty for none."""
    found: list[object] = [_object(body)]
    if "event-stream" in kind.lower():
        decoder = Decoder(primed=True)
        with suppress(StreamFault):
            decoder.feed(body)
        found = list(decoder.events)
    answers = [
        one for one in found if isinstance(one, dict) and one.get("jsonrpc") == "2.0" and "method" not in one
    ]
    return next(reversed(answers), {})


def _inside(said: object, *path: str) -> Any:  # noqa: ANN401  any JSON
    """The value at a path; an empty object for none."""
    for key in path:
        said = said.get(key) if isinstance(said, dict) else None
    return {} if said is None else said


def _texts(result: Json) -> Iterator[bytes]:
    content = result.get("content")
    for part in content[:1] if isinstance(content, list) and result.get("isError") is True else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"].encode("utf-8", "replace")


def _lasting(value: object) -> object:
    """A result without identifiers and times, which differ where nothing else does."""
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if key not in _EACH_TIME}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


def _encoded(said: Json) -> str:
    return base64.b64encode(json.dumps(said, separators=(",", ":")).encode()).decode()
