"""Classes of injection that show in the difference between answers. Pure."""

from __future__ import annotations

import re
from random import Random

from bench.findings.blueprint import Blueprint
from bench.findings.rules import EffectRule, EvidenceCall, Posted, at, like
from bench.findings.switches import Draw, Switch

BRACKETS = (("{{", "}}"), ("${", "}"), ("<%=", "%>"), ("#{", "}"))
SUM = re.compile(r"(\d{1,6})\s*([*+-])\s*(\d{1,6})")


def sql_injection(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("entries", "search"))
    there = like(plan.paths[place])

    def shows(item: Posted) -> bool:
        asked = [one for one in item.calls if there(one.path)]
        quoted = [one for one in asked if "'" in one.sent]
        return bool(quoted) and (any(one.status >= 500 for one in quoted) or len(asked) > 1)

    return Switch(
        klass="sql-injection",
        place=place,
        rung="observe",
        tool="qa_fetch",
        tell=f"a quote in {plan.params['term']} of {place} ends the literal of a query",
        rule=EffectRule(shows, r"sql|inject|quote|condition|\b500\b|server error"),
        ground=frozenset({f"answer:{place}"}),
    )


def template_expression(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("render", "search", "prefs"))
    left, right = chance.choice(BRACKETS)

    def computed(one: EvidenceCall) -> bool:
        return any(_result(found) in one.text for found in SUM.finditer(one.sent))

    return Switch(
        klass="template-expression",
        place=place,
        kind=left,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} works out sums between {left} and {right}",
        rule=EffectRule(at(plan.paths[place], computed), r"template|expression|comput|evaluat|inject"),
        ground=frozenset({f"echo:{place}", f"answer:{place}"}),
        data={"left": left, "right": right},
    )


def _result(found: re.Match[str]) -> str:
    one, other = int(found[1]), int(found[3])
    return str(one * other if found[2] == "*" else one + other if found[2] == "+" else one - other)


CLASSES: dict[str, Draw] = {"sql-injection": sql_injection, "template-expression": template_expression}
