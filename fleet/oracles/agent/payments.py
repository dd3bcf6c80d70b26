"""Oracles of what is paid for (x402): who is served, what is charged, and what was said of it. Pure.

What was charged is read from the chain. A payment is wrong where its payer made it so; a resource that
answers 402 without one, in the same call, is the control of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from fleet.oracles.agent.mcp_servers import is_list
from fleet.oracles.agent.stated_prices import listed, price, stated
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import is_html, parsed, visible
from fleet.severity import Severity
from fleet.text import counted, line
from sandbox.agents.wires.a2a import CARD

oracle = partial(Oracle, judges=("payment",), surface="security")
_URL, _OTHER = "{site}/reports/daily", "{site}/reports/weekly"
_PAYEE = "0x" + "ab" * 20
_WRONG: Mapping[str, str] = {
    "less": "a payment of 1 unit",
    "own": "a payment to its payer",
    "ended": "a payment whose time is over",
    "forged": "a forged payment",
    "changed": "1 unit, by changed terms",
    "empty": "no payment at all",
}


def _exchange(result: Mapping[str, Any], **args: object) -> Exchange:
    """An exchange of an example: 402 first, by default, with terms of 1000 units."""
    quoted = {"ok": True, "status": 402, "quoted": True, "amount": 1000, "payee": _PAYEE}
    return Exchange("qa_pay", {"url": _URL} | args, quoted | dict(result))


def _at(one: Exchange) -> str:
    """The resource, without its query; a tool of it; an agent."""
    tool = f" tool {line(str(one.args['name']), 60)}" if one.args.get("name") else ""
    return line(str(one.args.get("url", "")).partition("?")[0], 80) + tool


def _seen(
    one: Exchange,
    title: str,
    signature: str,
    *fields: str,
    led: tuple[int, ...] = (),
    where: Mapping[str, str] | None = None,
) -> Observation:
    """An observation; a tool is a place of its own on its server."""
    route = {"route": _at(one)} if one.args.get("name") else {}
    return observed(title, signature, *fields, led=led, where=route | dict(where or {}))


def _number(one: Exchange, key: str) -> int:
    value = one.result.get(key)
    return value if type(value) is int else 0


def _asked(one: Exchange) -> bool:
    """Whether the resource asked for a payment when there was none."""
    return one.result.get("quoted") is True and one.result.get("status") == 402


@oracle(
    id="unpaid-service",
    says="what is paid for is given for a payment that holds",
    severity=Severity.HIGH,
    example=(_exchange({"status_paid": 200, "served": 1}, pay="forged"),),
    control=(_exchange({"ok": False, "status_paid": 402, "served": 0}, pay="forged"),),
)
def unpaid_service(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last, how = seen[-1], str(seen[-1].args.get("pay", ""))
    small = how in ("less", "changed") and _number(last, "amount") <= 1  # one unit is all of it
    if how in _WRONG and _asked(last) and _number(last, "served") and not small:
        title = f"{_at(last)} is given for {_WRONG[how]}"
        yield _seen(
            last, title, f"unpaid-service {how}", "status", "status_paid", "served", where={"claim": how}
        )


@oracle(
    id="payment-reused",
    says="one payment pays once",
    severity=Severity.HIGH,
    example=(
        _exchange(
            {"status_paid": 200, "served": 1, "status_other": 402, "status_then": 200, "served_then": 1},
            pay="whole",
            then="elsewhere",
            other=_OTHER,
        ),
    ),
    control=(
        _exchange(
            {"status_paid": 200, "served": 1, "status_other": 402, "status_then": 402, "served_then": 0},
            pay="whole",
            then="elsewhere",
            other=_OTHER,
        ),
    ),
)
def payment_reused(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The same answer once more may be a kept one, which costs its server nothing; another one is served
    anew."""
    last, then = seen[-1], str(seen[-1].args.get("then", ""))
    if not _asked(last) or not _number(last, "served"):
        return
    again = _number(last, "served_then") > 0
    distinct = _number(last, "distinct")
    title, where = "", {"claim": then}
    if then == "again" and again and last.result.get("same_then") is False:
        title = f"{_at(last)} is given anew for a payment that was used"
    elif then == "elsewhere" and again and last.result.get("status_other") == 402:
        other = str(last.args.get("other", "")).partition("?")[0]
        title, where = (
            f"{line(other, 80)} is given for a payment that {_at(last)} had",
            where | {"route": other},
        )
    elif then == "together" and distinct > 1:
        title = f"{_at(last)} is given {counted(distinct, 'time')} for one payment, sent at once"
    if title:
        yield _seen(last, title, f"payment-reused {then}", "served", "served_then", "distinct", where=where)


@oracle(
    id="payment-kept",
    says="what is refused, or fails, is not charged",
    severity=Severity.HIGH,
    example=(_exchange({"ok": False, "status_paid": 404, "taken": 1000, "settled": 1}, pay="whole"),),
    control=(_exchange({"ok": False, "status_paid": 404, "taken": 0}, pay="whole"),),
)
def payment_kept(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status, charged = _number(last, "status_paid"), _number(last, "taken")
    if status >= 400 and charged and not _number(last, "served"):
        answers = "fails" if last.args.get("name") or last.args.get("message") else f"answers {status}"
        title = f"{_at(last)} {answers} and keeps a payment of {counted(charged, 'unit')}"
        signature = f"payment-kept {'refused' if status < 500 else 'failed'}"
        yield _seen(
            last, title, signature, "status_paid", "taken", where={"claim": signature.partition(" ")[2]}
        )


@oracle(
    id="payment-terms",
    says="what is asked for a resource is what documents say, everywhere the same, and for its owner",
    severity=Severity.HIGH,
    example=(_exchange({"body_amount": 900}),),
    control=(_exchange({"body_amount": 1000}),),
)
def payment_terms(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if not _asked(last) or last.args.get("pay"):
        return
    amount, body, payee = (
        _number(last, "amount"),
        last.result.get("body_amount"),
        str(last.result.get("payee")),
    )
    url = facts.actual(str(last.args.get("url", "")))
    known = (
        None if last.args.get("name") or last.args.get("message") else facts.prices.get(url.partition("?")[0])
    )
    said = []
    if type(body) is int and body != amount:
        said.append(("body", f"asks {amount} units in its header, and {body} in its body", "body_amount"))
    if known is not None and known != amount:
        said.append(("price", f"asks {counted(amount, 'unit')}, and documents say {known}", "amount"))
    if facts.payee and payee.lower() != facts.payee:
        said.append(("payee", f"asks for a payment to {line(payee, 44)}, and not to {facts.payee}", "payee"))
    for what, words, name in said:
        yield _seen(last, f"{_at(last)} {words}", f"payment-terms {what}", name, where={"claim": what})
    for place, one in enumerate(seen[:-1]):
        what, document = _document(one)
        told = _stated(last, urlsplit(url).path, document, facts)
        if told not in (None, amount, known):  # what the profile repeats is judged by it
            source = line(str(one.args.get("url", "")), 80)
            title = f"{_at(last)} asks {counted(amount, 'unit')}, and {what} at {source} says {told}"
            yield _seen(last, title, f"payment-terms {what}", "amount", led=(place,), where={"claim": what})


def _stated(last: Exchange, path: str, document: object, facts: Facts) -> int | None:
    """[units] What a document states for what is paid: a tool by its definition, a message by the skill that
    has it as an example."""
    if name := str(last.args.get("name") or ""):
        return listed(document if isinstance(document, list | tuple) else (), name, facts.decimals)
    if message := last.args.get("message"):
        skills = document.get("skills") if isinstance(document, Mapping) else None
        for one in skills if isinstance(skills, list) else ():
            examples = one.get("examples") if isinstance(one, Mapping) else None
            if isinstance(examples, list) and message in examples:
                return price(one, facts.decimals)
        return None
    return stated(path, document, facts.decimals)


def _document(one: Exchange) -> tuple[str, object]:
    """What an answer is that may state prices, and what it says."""
    if one.tool == "qa_mcp" and is_list(one):
        return "the list of tools", one.result.get("tools")
    if one.tool != "qa_fetch" or one.result.get("status") != 200:
        return "", None
    text = str(one.result.get("text", ""))
    card = urlsplit(str(one.args.get("url", ""))).path.endswith(CARD)
    return "the card" if card else "a document", parsed(text) or (
        visible(text) if is_html(one.result) else text
    )


@oracle(
    id="payment-receipt",
    says="a receipt says what the chain says",
    severity=Severity.MEDIUM,
    example=(
        _exchange({"status_paid": 200, "served": 1, "receipt": "paid", "receipt_holds": False}, pay="whole"),
    ),
    control=(
        _exchange(
            {"status_paid": 200, "served": 1, "receipt": "paid", "receipt_holds": True, "settled": 1},
            pay="whole",
        ),
    ),
)
def payment_receipt(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    told, settled = last.result.get("receipt"), _number(last, "settled")
    title = ""
    if told == "paid" and last.result.get("receipt_holds") is False and _number(last, "served") == 1:
        title = f"{_at(last)} names a transaction that did not take it"
    elif told == "failed" and settled and _number(last, "served"):
        title = f"{_at(last)} says failed, and it was taken"
    if title:
        yield _seen(last, title, f"payment-receipt {told}", "receipt", "receipt_holds", "settled")


@oracle(
    id="payment-named",
    says="one identifier of a payment is charged once",
    severity=Severity.MEDIUM,
    example=(
        _exchange({"served": 1, "taken": 1000, "taken_then": 1000, "named": True}, pay="whole", then="named"),
    ),
    control=(
        _exchange(
            {"served": 1, "taken": 1000, "taken_then": 0, "status_then": 409, "named": True},
            pay="whole",
            then="named",
        ),
    ),
)
def payment_named(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    both = _number(last, "taken") and _number(last, "taken_then")
    if last.args.get("then") == "named" and last.result.get("named") is True and both:
        title = f"{_at(last)} charges two payments under one identifier"
        yield _seen(last, title, "payment-named", "taken", "taken_then", "named")
