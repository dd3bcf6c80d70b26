"""Oracles of a publish: what is reported reads back, and what is quoted is near what is used. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from sandbox.tools import TOOLS

LOW, HIGH = 3, 4
"""The band of a quote: at least a third of the gas that was used, at most four times as much.

Any write shows a quote that is too low. Only the first write of a name shows one that is too high: a later
one overwrites what is there, for a quarter of the gas.
"""


oracle = partial(Oracle, judges=("publication",), surface="on-chain")


def _published(used: int, quoted: int) -> Exchange:
    answer = {"published": True, "app_read_back": True, "gas_used": used, "gas_quote": quoted, "size": 80}
    return Exchange("qa_publish", {"name": "{name}"}, answer)


@oracle(
    id="lost-publish",
    says="what is reported as published reads back",
    severity=Severity.HIGH,
    example=(Exchange("qa_publish", {}, {"published": True, "app_read_back": False}),),
    control=(Exchange("qa_publish", {}, {"published": True, "app_read_back": True}),),
)
def lost_publish(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("published") and not result.get("app_read_back"):
        yield observed(
            "an app that is reported as published does not read back", "lost-publish", "app_read_back"
        )


@oracle(
    id="gas-misquoted",
    says="gas is quoted within a third and four times of what a publish uses",
    severity=Severity.MEDIUM,
    example=(_published(900_000, 100_000),),
    control=(_published(900_000, 850_000),),
)
def gas_misquoted(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    used, quoted = last.result.get("gas_used", 0), last.result.get("gas_quote")
    if not last.result.get("published") or used <= 0 or not quoted or quoted < 0:
        return
    led: tuple[int, ...] = ()
    if used > LOW * quoted:
        kind = "low"
    elif quoted > HIGH * used and (first := _minted(seen)) is not None:
        kind, led = "high", (first,)
    else:
        return
    size = last.result.get("size", 0)
    title = f"publishing {size} bytes uses {used} gas, quoted {quoted}"
    yield observed(title, f"gas-quote {kind}", "gas_quote", "gas_used", led=led)


def _minted(seen: Sequence[Exchange]) -> int | None:
    """Where the name of the last publish was created, if it was published once since."""
    name = seen[-1].args.get("name")
    same = [at for at, one in enumerate(seen) if one.args.get("name") == name]
    spec = TOOLS.get(seen[same[0]].tool)
    mints = len(same) == 2 and spec is not None and spec.mints == "name"
    return same[0] if mints and seen[same[0]].result.get("ok") else None
