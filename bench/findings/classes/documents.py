"""Classes of documents: the same fact stated twice, and not the same. Pure."""

from __future__ import annotations

import re
from random import Random

from bench.findings.blueprint import Blueprint, display
from bench.findings.rules import EffectRule, Posted, like
from bench.findings.switches import Draw, Switch

STATED = {
    "llms": ("price", "lifetime", "longest", "chain", "diamond"),
    "guide": ("price", "lifetime", "longest", "chain", "diamond"),
    "handbook": ("price", "lifetime", "top", "chain", "diamond"),
    "status": ("price", "chain", "diamond"),
    "terms": ("price", "lifetime", "top", "longest", "chain"),
    "reply": ("price",),
    "refused-credit": ("price",),
    "refused-limit": ("top",),
    "refused-length": ("longest",),
}
"""Which source states which facts."""
SPOKEN = ("reply", "refused-credit", "refused-length")


def documents_disagree(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(tuple(STATED))
    kind = chance.choice(STATED[place])
    wei = plan.price_wei * chance.choice((2, 5, 10))
    wrong = {
        "price": display(wei),
        "lifetime": str(plan.lifetime_s * 2 + 60),
        "top": str(plan.top + chance.choice((5, 50))),
        "longest": str(plan.longest + 700),
        "chain": str(chance.choice((1, 10, 42220, 84532))),
        "diamond": "0x" + "".join(chance.choice("0123456789abcdef") for _ in range(40)),
    }[kind]
    path = plan.paths["entries" if place == "refused-limit" else place] if place not in SPOKEN else ""
    pattern = re.compile(rf"(?<![\w.]){re.escape(wrong)}(?![\w]|\.\d)")

    def shows(item: Posted) -> bool:
        wrong_here = [
            one
            for one in item.calls
            if (one.is_call if not path else like(path)(one.path)) and pattern.search(one.text)
        ]
        return bool(wrong_here)

    return Switch(
        klass="documents-disagree",
        place=place,
        kind=kind,
        rung="exercise" if place in SPOKEN else "observe",
        tool="qa_call" if place in SPOKEN else "qa_fetch",
        tell=f"{place} says {wrong} of the {kind}; all other sources say another",
        rule=EffectRule(shows, rf"differ|disagree|another|contradict|says|states|{re.escape(wrong)}"),
        ground=frozenset({f"fact:{place}"} | ({"answer:entries"} if place == "refused-limit" else set())),
        data={"says": wrong, "wei": wei},
    )


CLASSES: dict[str, Draw] = {"documents-disagree": documents_disagree}
