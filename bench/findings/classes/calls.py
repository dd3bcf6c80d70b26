"""Classes of the wire of agent calls: tokens, charges, streams. Pure."""

from __future__ import annotations

import re
from random import Random

from bench.findings.blueprint import Blueprint
from bench.findings.reach import TOKEN
from bench.findings.rules import EffectRule, EvidenceCall, Posted, at, number, said
from bench.findings.switches import Draw, Switch

PLAIN = frozenset({"target", "message", "stream", "fund", "raw", "claim_from", "url", "method", "body"})


def token_taken(plan: Blueprint, chance: Random) -> Switch:
    kind = chance.choice(("stale", "foreign", "truncated", "unsigned"))

    def bad(one: EvidenceCall) -> bool:
        odd = {key: value for key, value in one.args.items() if key not in PLAIN and value}
        told = re.search(r"token|unsigned|auth|sign|stale|forg|trunc|header", " ".join(odd), re.IGNORECASE)
        return told is not None and one.status in (200, 402)  # credit is asked for after the token

    def shows(item: Posted) -> bool:
        call = plan.call_path()
        return said(bad)(item) or at(call, bad)(item)

    return Switch(
        klass="token-taken",
        place="call",
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"calls are served with a token that is {kind}",
        needs="" if kind == "unsigned" else TOKEN,
        rule=EffectRule(shows, r"token|unsigned|sign|stale|forged|truncated|without"),
        ground=frozenset({"identity"}),
    )


def paid_refusal(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    place = chance.choice(("json", "contents", "length", "agent"))
    return Switch(
        klass="paid-refusal",
        place=place,
        rung="exercise",
        tool="qa_call",
        tell=f"a call that is refused for its {place} is charged",
        rule=EffectRule(
            said(lambda one: one.status >= 400 and number(one.result.get("charged")) > 0),
            r"charged|paid|refus|cost",
        ),
        ground=frozenset({f"refusal:{place}"}),
    )


def _charged(one: EvidenceCall) -> float:
    """The highest charge of one call, which may have been sent twice."""
    return max(number(one.result.get(name)) for name in ("charged", "charged_again"))


def overcharge(plan: Blueprint, chance: Random) -> Switch:
    kind = chance.choice(("again", "long", "stream", "foreign"))
    times, over = chance.choice((2, 3)), chance.choice((80, 300, 700, 1200))
    return Switch(
        klass="overcharge",
        place="call",
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"a message costs {times} times its price ({kind})",
        rule=EffectRule(
            said(lambda one: one.status == 200 and _charged(one) > plan.price_wei),
            r"charg|price|cost|paid",
        ),
        ground=frozenset({"charge"}),
        data={"times": times, "over": over},
    )


def stream_edge(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    kind = chance.choice(("cut", "endless", "order", "short"))

    def shows(item: Posted) -> bool:
        streams = [one for one in item.calls if one.is_call and one.args.get("stream") and one.status == 200]
        wholes = [
            one for one in item.calls if one.is_call and not one.args.get("stream") and one.status == 200
        ]
        if kind in ("cut", "endless"):
            return any(one.result.get("stream_error") for one in streams)
        return any(
            one.says == other.says and one.result.get("reply") != other.result.get("reply")
            for one in streams
            for other in wholes
        )

    return Switch(
        klass="stream-edge",
        place="call",
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"a streamed reply is broken: {kind}",
        rule=EffectRule(shows, r"stream|event|UTF-8|finish|differ|order"),
        ground=frozenset({"stream"}),
        data={"width": chance.choice((7, 10, 13))},
    )


def gas_quote(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    kind = chance.choice(("low", "high"))
    factor = 1 / chance.randint(5, 12) if kind == "low" else float(chance.randint(6, 15))

    def off(used: float, quote: float) -> bool:
        return quote > 0 and used > 0 and (used > 3 * quote if kind == "low" else quote > 3 * used)

    def shows(item: Posted) -> bool:
        for one in item.calls:
            if off(number(one.result.get("gas_used")), number(one.result.get("gas_quote"))):
                return True
        quoted = [one for one in item.calls if one.path == "/api/estimate" and one.status == 200]
        return bool(quoted) and len(item.calls) > 1

    return Switch(
        klass="gas-quote",
        place="estimate",
        kind=kind,
        rung="exercise",
        tool="qa_publish",
        tell=f"the quote for writing an app is {kind} by a factor of {max(factor, 1 / factor):.0f}",
        rule=EffectRule(shows, r"gas|quote|estimate"),
        ground=frozenset({"answer:estimate"}),
        data={"factor": factor},
    )


CLASSES: dict[str, Draw] = {
    "token-taken": token_taken,
    "paid-refusal": paid_refusal,
    "overcharge": overcharge,
    "stream-edge": stream_edge,
    "gas-quote": gas_quote,
}
