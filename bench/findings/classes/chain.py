"""Classes of the platform's own facet. Pure."""

from __future__ import annotations

from random import Random

from bench.findings.blueprint import Blueprint
from bench.findings.classes.functions import function
from bench.findings.reach import SELECTOR
from bench.findings.rules import EffectRule, speaks_of
from bench.findings.switches import Draw, Switch


def _of(plan: Blueprint, klass: str, place: str, kind: str, tell: str, title: str) -> Switch:
    found = function(plan, place)
    return Switch(
        klass=klass,
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_chain",
        tell=f"{found.signature}: {tell}",
        needs=SELECTOR,
        rule=EffectRule(speaks_of(found.name, found.selector), title),
        ground=frozenset({f"function:{place}"}),
        data={"function": found.signature, "selector": found.selector},
    )


def chain_owner(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("setFee", "setCap", "collect"))
    title = r"stranger|anyone|owner|permit|state|revert|changes|unguarded"
    return _of(plan, "chain-owner", place, "", "anyone may call it", title)


def chain_stranger(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("give", "weigh"))
    title = r"stranger|anyone|owner|permit|another|changes|not (its|the)|revert"
    return _of(plan, "chain-stranger", place, "", "a stranger may call it for another's thing", title)


def chain_limit(plan: Blueprint, chance: Random) -> Switch:
    place, kind = chance.choice(("make", "weigh")), chance.choice(("zero", "edge", "none"))
    return _of(
        plan,
        "chain-limit",
        place,
        kind,
        f"the limit of the weight fails: {kind}",
        r"limit|edge|beyond|most|least|accept|revert",
    )


def chain_view(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("ownerOf", "count", "total"))
    return _of(
        plan,
        "chain-view",
        place,
        "",
        "disagrees with the other views",
        r"view|disagree|differ|count|contradict",
    )


CLASSES: dict[str, Draw] = {
    "chain-owner": chain_owner,
    "chain-stranger": chain_stranger,
    "chain-limit": chain_limit,
    "chain-view": chain_view,
}
