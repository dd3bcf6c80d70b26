"""What a resource, a tool or an agent asks for (x402, MPP), a payment, right or wrong, and what was paid.

The terms are those that the broker saw pass; the signature is the purse's, from outside. What is sent with it
is made here, wrong on purpose where a payee should refuse.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from sandbox import http, strict_json
from sandbox.chain import rpc
from sandbox.errors import Deadline, Failure, hint
from sandbox.pages.page_request import page_request
from sandbox.paid_calls import MessageCall, PageCall, PaidCall, ToolCall, encoded
from sandbox.payment_offers import (
    FORMS,
    MAX_AMOUNT,
    MPP,
    PAYMENT_REQUIRED,
    V1,
    V2,
    PaymentOffer,
    decoded,
    offers,
    units,
)
from sandbox.spec import ABSENT, Context, Cost, Effect, Impact, Mistake, OneOf, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

PAYS = ("", "whole", "less", "own", "ended", "forged", "changed", "empty")
WRONG = PAYS[2:]
"""What no payee may take: one unit, a payment to the payer, one whose time is over, one that the payer did
not sign, one unit with terms that say one unit, and none."""
THEN = ("", "again", "elsewhere", "together", "named")
AT_ONCE = 4
"""Requests at a time with one payment."""
SETTLE_S, LATE_S, LOOK_S = 5.0, 1.0, 0.2
"""Longest wait for a payment on chain behind an answer, behind a refusal, and between two looks."""
MAX_TEXT = 4_000
MAX_INPUTS = 10
RECEIPTS = {V2: "payment-response", MPP: "payment-receipt", V1: "x-payment-response"}
ECHOED = (
    "id",
    "realm",
    "method",
    "intent",
    "request",
    "expires",
    "digest",
    "opaque",
    "description",
    "header",
)
"""Parts of a challenge of MPP that its payment repeats."""
IDENTIFIER = "payment-identifier"
_HASH = re.compile(r"0x[0-9a-f]{64}")
_USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"
"""Topic of AuthorizationUsed(address,bytes32)."""
_MOVED = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Topic of Transfer(address,address,uint256)."""


@dataclass(frozen=True, slots=True)
class Args:
    """Without `pay`, only the terms are asked."""

    url: str
    """What is paid for: below a resource that the profile names under `[payments]`."""
    method: str = "GET"
    """GET or POST."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Sent as one JSON object; the arguments of a tool."""
    name: str = ""
    """A tool of the MCP server that answers there."""
    message: str = ""
    """What the agent is asked that is called there by A2A."""
    pay: Annotated[str, OneOf(PAYS)] = ""
    """`whole`: what was quoted. Wrong on purpose: `less` by all but one unit, to the payer's `own` address,
    `ended` a minute ago, `forged` in one byte of its signature, `changed` with terms of one unit, `empty`."""
    then: Annotated[str, OneOf(THEN)] = ""
    """After it, the same payment `again`, or `elsewhere` for `other`; `together`: at once, several times;
    `named`: another payment under the same identifier."""
    other: str = ""
    """Another resource, for `elsewhere`."""
    form: Annotated[str, OneOf(("", *FORMS))] = ""
    """By which form of terms it is paid; "" for the first of those that the purse can pay by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means that the resource asked for a payment, and gave what was asked if one was made."""

    status: int = 0
    """HTTP status without a payment."""
    quoted: bool = False
    """Whether terms were stated that the purse can pay by."""
    forms: tuple[str, ...] = ()
    """In which forms."""
    amount: int = 0
    """[units] What they ask."""
    payee: str = ""
    """Who is to be paid."""
    network: str = ""
    """Where, as CAIP-2 has it."""
    asset: str = ""
    """In which token."""
    resource: str = ""
    """What for, by the terms' own word."""
    body_amount: int | None = field(default=None, metadata=ABSENT)
    """[units] What the body of the answer asks; absent where it has no terms."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Parameters of the query that the terms give as an example."""
    named: bool = False
    """Whether it takes an identifier of a payment."""
    status_paid: int = 0
    """HTTP status with the payment."""
    served: int = 0
    """Answers below 300 to this payment."""
    distinct: int = 0
    """How many of them differ."""
    text: str = ""
    """Text of the first of them, or of the refusal."""
    receipt: Annotated[str, OneOf(("", "paid", "failed", "unread"))] = ""
    """What the receipt says of the payment; empty without one."""
    receipt_tx: str = ""
    """The transaction that it names."""
    receipt_holds: bool | None = field(default=None, metadata=ABSENT)
    """Whether that transaction took this payment; absent where it names none, or it is not known."""
    taken: int = 0
    """[units] What the payment took on chain."""
    settled: int = 0
    """Payments of this call that were taken."""
    status_other: int = 0
    """HTTP status of the other resource without a payment."""
    status_then: int = 0
    """HTTP status of what followed."""
    served_then: int = 0
    """Answers below 300 to it."""
    same_then: bool = False
    """Whether its body is the first one's."""
    taken_then: int = 0
    """[units] What a second payment took on chain."""


@dataclass(frozen=True, slots=True)
class _Terms:
    """The offers of an answer, and which of them is paid; -1 for none."""

    offers: Sequence[PaymentOffer] = ()
    option: int = -1
    forms: tuple[str, ...] = ()

    @property
    def chosen(self) -> PaymentOffer:
        return self.offers[self.option] if self.option >= 0 else _NONE


_NONE = PaymentOffer("", "", "", "", "", 0, {}, {})


def effect_of(args: Mapping[str, Any]) -> Effect:
    """The terms of a page are only looked at; a payment is an act, and so is a call of a tool or an agent."""
    return Effect.ACT if any(args.get(key, "") for key in ("pay", "name", "message")) else Effect.LOOK


def run(args: Args, ctx: Context) -> Result:
    deadline = Deadline(ctx.deadline_s * 0.9)
    ask = _call(args, ctx, deadline)
    try:
        return _run(args, ask, ctx, deadline)
    finally:
        ask.close()


def _run(args: Args, ask: PaidCall, ctx: Context, deadline: Deadline) -> Result:
    first = _sent(ask, deadline)
    terms = _terms(first, args.form, ctx)
    result = _quoted(first, terms)
    if not args.pay:
        return result
    if not result.quoted:
        return replace(
            result, ok=False, error="it states no terms that the purse can pay by", error_class="http"
        )
    if terms.chosen.form != V2 and args.then == "named":
        raise Mistake("/args/then: x402 version 2 alone has identifiers of payments")
    if terms.chosen.form == V1 and args.pay == "changed":
        raise Mistake("/args/pay: a payment of x402 version 1 repeats no terms")
    other = _other(args)
    if other:
        result = replace(result, status_other=_sent(other, deadline).status)
    start = rpc.number(rpc.call("eth_blockNumber", [], deadline))
    name = f"qa-{os.urandom(12).hex()}" if args.then == "named" else ""
    payment = _Payment.made(args.pay, ask.target, terms, name, deadline)
    replies = _answers(ask, payment, AT_ONCE if args.then == "together" else 1, deadline)
    result = _answered(result, replies, terms.chosen.form)
    result = _settled(result, payment, start, ctx, deadline, whole=args.pay == "whole")
    if args.then == "named":
        terms = _terms(_sent(ask, deadline), args.form, ctx)  # the broker knows the last answer alone
        if terms.option < 0:
            raise Failure("refused", "it states no terms for a second payment")
        second = _Payment.made(args.pay, ask.target, terms, name, deadline)
        result = _followed(result, replies, _answers(ask, second, 1, deadline))
        later = _settled(result, second, start, ctx, deadline, whole=True)
        result = replace(result, taken_then=later.taken, settled=result.settled + later.settled)
    elif args.then in ("again", "elsewhere"):
        result = _followed(result, replies, _answers(other or ask, payment, 1, deadline))
    return result


def _call(args: Args, ctx: Context, deadline: Deadline) -> PaidCall:
    if args.pay not in PAYS or args.then not in THEN or args.method not in ("GET", "POST"):
        raise Mistake("/args: expected `pay`, `then` and `method` as documented")
    if args.then and args.pay != "whole":
        raise Mistake("/args/then: only after a whole payment")
    if bool(args.other) is not (args.then == "elsewhere"):
        raise Mistake("/args/other: expected for `elsewhere`, and only then")
    url = http.absolute(args.url)
    if (args.name and args.message) or len(args.name + args.message) > MAX_TEXT:
        raise Mistake("/args: a tool's name, or a message, of bounded length")
    if args.name:
        return ToolCall(url, args.name, args.fields, deadline)
    if args.message:
        return MessageCall(url, args.message, ctx)
    return PageCall(
        page_request(args.method, url, headers={}, fields=args.fields, body="", body_type="text/plain")
    )


def _other(args: Args) -> PaidCall | None:
    return PageCall(http.HttpRequest("GET", http.absolute(args.other, "/args/other"))) if args.other else None


def _sent(
    ask: PaidCall, deadline: Deadline, form: str = "", payment: Mapping[str, Any] | None = None
) -> http.HttpReply:
    reply = http.send(ask.request(form, payment), deadline)
    if reply.by_broker:
        raise rpc.denial(reply)
    return ask.read(reply)


# What is asked for ---------------------------------------------------------------------------------


def _terms(reply: http.HttpReply, form: str, ctx: Context) -> _Terms:
    listed = offers(reply.status, reply.headers, reply.body)
    ours = [at for at, one in enumerate(listed) if _is_ours(one, ctx)]
    forms = tuple(dict.fromkeys(listed[at].form for at in ours))
    return _Terms(listed, next((at for at in ours if form in ("", listed[at].form)), -1), forms)


def _is_ours(one: PaymentOffer, ctx: Context) -> bool:
    networks = (f"eip155:{ctx.chain_id}", *((ctx.network,) if ctx.network else ()))
    same = one.scheme == "exact" and one.network in networks and one.asset.lower() == ctx.asset
    return same and bool(one.payee and one.amount)


def _quoted(reply: http.HttpReply, terms: _Terms) -> Result:
    one = terms.chosen
    resource = one.terms.get("resource", one.entry.get("resource"))
    url = resource.get("url") if isinstance(resource, dict) else resource
    asked = reply.status == PAYMENT_REQUIRED
    return Result(
        ok=terms.option >= 0,
        latency_ms=reply.latency_ms,
        error="" if terms.option >= 0 else f"HTTP {reply.status}" if not asked else "no terms to pay by",
        error_class="" if terms.option >= 0 else "http",
        hint=hint(reply.status) if reply.status >= 400 and not asked else "",
        status=reply.status,
        quoted=terms.option >= 0,
        forms=terms.forms,
        amount=one.amount,
        payee=clean(one.payee, 100),
        network=clean(one.network, 60),
        asset=clean(one.asset, 60),
        resource=clean(url, 300) if isinstance(url, str) else "",
        body_amount=_body_amount(reply, one),
        inputs=next((found for offer in terms.offers if (found := _inputs(offer))), {}),
        named=isinstance(_extensions(one.terms).get(IDENTIFIER), dict),
    )


def _body_amount(reply: http.HttpReply, one: PaymentOffer) -> int | None:
    """What the body asks for the same token and payee, if it has terms as well."""
    try:
        said = strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    listed = said.get("accepts") if isinstance(said, dict) else None
    mine = [one.asset.lower(), one.payee.lower()]
    for each in listed[:8] if isinstance(listed, list) and one.form not in ("", V1) else ():
        if isinstance(each, dict) and [str(each.get(key)).lower() for key in ("asset", "payTo")] == mine:
            return units(each.get("amount", each.get("maxAmountRequired"))) or None
    return None


def _extensions(said: Mapping[str, Any]) -> Mapping[str, Any]:
    found = said.get("extensions")
    return found if isinstance(found, dict) else {}


def _inputs(one: PaymentOffer) -> dict[str, str]:
    """The example of a query in an offer: in the extension `bazaar`, or version 1's `outputSchema`."""
    found: Any = _extensions(one.terms).get("bazaar", {"info": one.entry.get("outputSchema")})
    for key in ("info", "input", "queryParams"):
        found = found.get(key) if isinstance(found, dict) else None
    pairs = list(found.items())[:MAX_INPUTS] if isinstance(found, dict) else []
    return {
        clean(str(name), 60): clean(str(value), 100) for name, value in pairs if isinstance(value, str | int)
    }


# A payment -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Payment:
    """What a request carries; payer and nonce of the authorisation in it, "" without one."""

    form: str
    said: dict[str, Any]
    payer: str = ""
    nonce: str = ""

    @classmethod
    def made(cls, how: str, url: str, terms: _Terms, name: str, deadline: Deadline) -> _Payment:
        offer = terms.chosen
        if how == "empty":
            return cls(offer.form, {})
        more: dict[str, object] = {"value": 1} if how in ("less", "changed") else {}
        more |= {"own": True} if how == "own" else {"seconds": -60} if how == "ended" else {}
        signed = rpc.payment(url, terms.option, deadline, **more)
        signature, one = str(signed.get("signature", "")), dict(signed["authorization"])
        if how == "forged":
            signature = signature[:20] + ("1" if signature[20] == "0" else "0") + signature[21:]
        said = _said(offer, one, signature, changed=how == "changed")
        if name:
            asked = _extensions(offer.terms).get(IDENTIFIER)
            known = asked if isinstance(asked, dict) else {}
            info = known.get("info")
            said["extensions"] = {
                IDENTIFIER: {**known, "info": {**(info if isinstance(info, dict) else {}), "id": name}}
            }
        payer, nonce = (str(one.get(key, "")).lower() for key in ("from", "nonce"))
        return cls(offer.form, said, payer, nonce)


def _said(offer: PaymentOffer, one: dict[str, Any], signature: str, *, changed: bool) -> dict[str, Any]:
    """A payment in the words of its form; `changed`: with terms of one unit."""
    entry = offer.entry | ({"amount": "1"} if changed else {})
    if offer.form == MPP:
        challenge = {key: offer.terms[key] for key in ECHOED if offer.terms.get(key)}
        challenge |= {"request": encoded(entry, url=True)} if changed else {}
        payer = f"did:pkh:{offer.network}:{one.get('from', '')}"
        payload = {"type": "authorization", **one, "signature": signature}
        return {"challenge": challenge, "payload": payload, "source": payer}
    payload = {"signature": signature, "authorization": one}
    if offer.form == V1:
        return {"x402Version": 1, "scheme": offer.scheme, "network": offer.network, "payload": payload}
    resource = {"resource": offer.terms["resource"]} if offer.terms.get("resource") else {}
    return {"x402Version": 2, "payload": payload, "accepted": entry} | resource


def _answers(ask: PaidCall, payment: _Payment, times: int, deadline: Deadline) -> Sequence[http.HttpReply]:
    """The replies to a request with this payment, several times at once; Failure for the broker's."""

    def sent(_: int) -> http.HttpReply:
        return _sent(ask, deadline, payment.form, payment.said)

    if times == 1:
        return [sent(0)]
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(sent, range(times)))


def _good(replies: Sequence[http.HttpReply]) -> list[http.HttpReply]:
    return [one for one in replies if 200 <= one.status < 300]


def _answered(result: Result, replies: Sequence[http.HttpReply], form: str) -> Result:
    good = _good(replies)
    shown = next(iter(good), replies[0])
    given = shown.headers.get(RECEIPTS[form], "")  # of others that came at once, a refusal is a receipt too
    told = decoded(given)
    paid = told is not None and (told.get("success") is True or told.get("status") == "success")
    word = "" if not given else "unread" if told is None else "paid" if paid else "failed"
    failed = not good
    return replace(
        result,
        ok=not failed,
        error=f"HTTP {shown.status}{_why(shown)}" if failed else "",
        error_class="http" if failed else "",
        status_paid=shown.status,
        served=len(good),
        distinct=len({hashlib.sha256(one.body).digest() for one in good}),
        text=clean(mask(decode(shown.body))[0], MAX_TEXT),
        receipt=word,
        receipt_tx=clean(str((told or {}).get("reference" if form == MPP else "transaction", "")), 80),
    )


def _why(reply: http.HttpReply) -> str:
    """What a refusal says in its terms, or in its body."""
    try:
        body = strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        body = None
    body = body if isinstance(body, dict) else {}
    said = (decoded(reply.headers.get("payment-required", "")) or body).get("error", body.get("detail"))
    return f": {clean(mask(said)[0], 200)}" if isinstance(said, str) and said else ""


def _followed(result: Result, before: Sequence[http.HttpReply], after: Sequence[http.HttpReply]) -> Result:
    first = next(iter(_good(before)), before[0])
    return replace(
        result,
        status_then=after[0].status,
        served_then=len(_good(after)),
        same_then=after[0].body == first.body,
    )


# On chain ------------------------------------------------------------------------------------------


def _settled(
    result: Result, payment: _Payment, start: int, ctx: Context, deadline: Deadline, *, whole: bool
) -> Result:
    """What the chain says of a payment: of a whole one, once it says something, or after a while."""
    payer = payment.payer
    if not payer:
        return result
    wait = LATE_S if whole and not result.served else SETTLE_S if whole else 0.0
    until = time.monotonic() + min(wait, deadline.left() / 2)
    while True:
        head = rpc.call("eth_blockNumber", [], deadline)
        topics = [_USED, "0x" + payer[2:].rjust(64, "0"), payment.nonce]
        asked = {"address": ctx.asset, "fromBlock": hex(start), "toBlock": head, "topics": topics}
        logs = rpc.call("eth_getLogs", [asked], deadline)
        listed = logs if isinstance(logs, list) else []
        used = {str(one.get("transactionHash")) for one in listed if isinstance(one, dict)}
        if used or time.monotonic() >= until:
            break
        time.sleep(LOOK_S)
    charged = sum(_moved(tx, payer, ctx, deadline) for tx in used)
    holds = _holds(result.receipt_tx.lower(), used, deadline) if result.receipt == "paid" else None
    return replace(result, taken=charged, settled=len(used), receipt_holds=holds)


def _holds(tx: str, used: set[str], deadline: Deadline) -> bool | None:
    """Whether the transaction of a receipt took the payment; None while it is in no block."""
    if tx in used or not _HASH.fullmatch(tx):
        return tx in used
    known = rpc.call("eth_getTransactionByHash", [tx], deadline)
    return False if not isinstance(known, dict) or known.get("blockNumber") else None


def _moved(tx: str, payer: str, ctx: Context, deadline: Deadline) -> int:
    """Units that left the payer in a transaction."""
    receipt = rpc.call("eth_getTransactionReceipt", [tx], deadline)
    logs = receipt.get("logs") if isinstance(receipt, dict) else None
    total = 0
    for one in (one for one in logs if isinstance(one, dict)) if isinstance(logs, list) else ():
        topics = [str(topic).lower() for topic in one.get("topics", ())]
        mine = len(topics) == 3 and topics[0] == _MOVED and topics[1][-40:] == payer[2:] != topics[2][-40:]
        if mine and str(one.get("address")).lower() == ctx.asset:
            total += rpc.number("0x" + (str(one.get("data"))[2:].lstrip("0") or "0"))
    if total > MAX_AMOUNT:
        raise Failure("garbage", "the chain says that more was paid than there is")
    return total


SPEC = ToolSpec(
    "qa_pay",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "ask what a resource, a tool or an agent costs (x402, MPP), pay, and look what the chain says was paid",
    run,
    needs=("payments",),
    group="web",
    effect_by=effect_of,
    acts_at="url",
    impacts={
        "look": Impact(9, 9, 9, "the terms of something that is paid for"),
        "act": Impact(8, 6, 7, "a payment of a small amount that the profile bounds", "not undone"),
    },
    points_at={"url": Points.PAID, "other": Points.PAGE_OR_NONE},
    batches=True,
    asks=("a payment ({pay}) for {url}", " {name}", " and {then}"),
    ends_in="status_paid",
    judged_as=("payment",),
    example={"url": "{site}/reports/daily"},
    expects="result.quoted && result.amount <= 1000",
    public=PUBLIC
    | {
        "url",
        "method",
        "fields",
        "name",
        "message",
        "pay",
        "then",
        "other",
        "status",
        "quoted",
        "amount",
        "payee",
        "network",
    }
    | {"form", "forms", "asset", "resource", "body_amount", "inputs", "named", "status_paid", "served"}
    | {"distinct", "text", "receipt", "receipt_tx", "receipt_holds", "taken", "settled", "status_other"}
    | {"status_then", "served_then", "same_then", "taken_then"},
    on_chain=frozenset({"receipt_tx"}),
    volatile=VOLATILE | {"receipt_tx", "text"},
)
