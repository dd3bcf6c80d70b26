"""An oracle of re-entry: a call pays once, though its caller calls again while it is paid. Pure.

The question is the same call twice, after the same deposit: by a caller whose code only takes what it is
paid, and by one whose code makes the call again. Both are simulated; the second may take no more than the
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fleet.findings.field_words import amount
from fleet.oracles.chain.simulated import Simulated, number, of
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

TAKES = "0x00"
"""Code that takes coin and does nothing."""
COIN = "balance"
_SAME = ("simulate", "types", "args", "sender", "setup", "wei", "watch")


def _paid(call: Simulated | None) -> tuple[int, int] | None:
    """What the contract held before the call, and what it paid."""
    if call is None or not call.succeeded or [one.spelled for one in call.readings] != [COIN]:
        return None
    before, after = number(call.readings[0].before), number(call.readings[0].after)
    return None if before is None or after is None else (before, before - after)


def _withdrawn(code: str, after: int) -> Exchange:
    args: dict[str, Any] = {"simulate": "0x3ccfd60b", "code": {"sender": code}, "watch": [COIN]}
    return Exchange("qa_chain", args, {"ok": True, "succeeded": True, "before": [9], "after": [after]})


@oracle(
    id="re-entry",
    says="a call pays once, though its caller calls again while it is paid",
    severity=Severity.CRITICAL,
    surface="security",
    judges=("chain",),
    example=(_withdrawn(TAKES, 8), _withdrawn("0x33", 7)),
    control=(_withdrawn(TAKES, 8), _withdrawn("0x33", 8)),
)
def re_entry(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    attack = _paid(of(last))
    if attack is None or last.args.get("code", {}).get("sender", TAKES) == TAKES:
        return
    for at, exchange in enumerate(seen[:-1]):
        same = all(exchange.args.get(key) == last.args.get(key) for key in _SAME)
        once = _paid(of(exchange)) if exchange.args.get("code") == {"sender": TAKES} and same else None
        if once is not None and once[0] == attack[0] and 0 < once[1] < attack[1]:
            selector = str(last.args.get("simulate"))
            paid, due = (amount(wei).replace("credits", "ether") for wei in (attack[1], once[1]))
            call = of(last)
            name = call.spoken if call else selector
            title = f"{name} pays {paid} when re-entered, not {due}"
            yield observed(title, f"re-entry {selector}", "before", "after", led=(at,))
            return
