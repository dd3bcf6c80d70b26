"""What is permitted before a run begins: each technique is in one category, and one in none is refused.
By what the spec of a tool says of it: no tool is named here.

Boundaries and thresholds of a category stand in the profile and are signed with it; `docs/safety.md` shows
this table, and how a decision is made within it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fleet.gate.impact import ATTACK, FILE, techniques
from sandbox.spec import SAFE, Effect, Points, ToolSpec
from sandbox.tools import TOOLS

Holds = Callable[[ToolSpec, Effect, str], bool]
"""Whether it has what a tool does with an effect, in one of its ways (`impacts` of its spec)."""


class ActionCategory(NamedTuple):
    """One category, in words for who permits it."""

    name: str
    holds: Holds
    applies: str
    criteria: str
    escalates: str
    limits: str


def _acts(effect: Effect, spec: ToolSpec, *points: Points) -> bool:
    return effect is Effect.ACT and not {*points}.isdisjoint((spec.points_at or {}).values())


CATEGORIES = (
    ActionCategory(
        "What no visitor asks",
        lambda spec, _, way: way == FILE or (way == ATTACK and not _acts(Effect.ACT, spec, Points.AGENT)),
        "hosts of the profile; a critical one where approved; any rung",
        "inputs that a page or a description names, each attack once and least harmful first",
        "`escalation.impact`; credentials, other people's data, traces of a break-in, lock-outs, challenges",
        "`impact_shares`, `impact_kilobytes`, `escalation.never`, `web.never`",
    ),
    ActionCategory(
        "Reading",
        lambda _, effect, __: effect is Effect.LOOK,
        "hosts of the profile, its node and servers of tools; a critical host where approved; any rung",
        "kinds of pages that were read least, then what was found most to differ",
        "a name that leads elsewhere, orders to machines, answers without an end, a silent target",
        "rates of host, network and all; `limits.pages`, `limits.answer_megabytes`; `budget.calls`",
    ),
    ActionCategory(
        "Computing",
        lambda _, effect, __: effect is Effect.COMPUTE,
        "programs, in a jail of this machine; any rung",
        "inputs that reach what no earlier one did",
        "a jail that does what it may not: STOP",
        "memory, processes, processor time and output of the jail",
    ),
    ActionCategory(
        "Talking to agents",
        lambda spec, effect, _: _acts(effect, spec, Points.AGENT),
        "agents that the profile names, on hosts where acts are permitted; from `exercise` up",
        "pairs of calls that differ in one thing",
        "`escalation.impact`; orders to machines, credentials, other people's data",
        "`budget.calls`, the agent's free credit, `escalation.never`",
    ),
    ActionCategory(
        "Paying",
        lambda spec, effect, _: _acts(effect, spec, Points.PAID),
        "resources of `[payments]`; from `exercise` up",
        "the terms that the broker saw, within the profile's",
        "`escalation.impact`; terms that differ from what is documented",
        "`most`, `per_run`, `holds`",
    ),
    ActionCategory(
        "Accounts",
        lambda spec, effect, _: (
            effect is Effect.ACT and spec.signs_in and not _acts(effect, spec, Points.MCP)
        ),
        "below `act_paths`, two accounts of the run or those that `[accounts]` names; from `exercise` up",
        "one account asks for what is the other's, never for a third one's",
        "`escalation.impact`; no account can be made, lock-outs",
        "no wrong passphrase for named accounts; accounts that were made are removed",
    ),
    ActionCategory(
        "Changing pages",
        lambda spec, effect, _: effect is Effect.ACT and bool(spec.acts_at),
        "below `act_paths`, on hosts not in production, or where approved; from `exercise` up",
        "what was made by this run is asked for first, and removed at its end",
        "`escalation.impact`; what cannot be removed again (`fleet runs left`)",
        "`budget.writes`, `impact_kilobytes`, `escalation.never`, never on a critical host",
    ),
    ActionCategory(
        "Names of one's own",
        lambda spec, effect, _: effect is Effect.ACT and bool(spec.acts_on) and not spec.acts_at,
        "the profile's chain, names that this run mints; from `exercise` up",
        "only where a probe needs one",
        "a reorganisation that takes back what was posted",
        "`budget.writes`, gas, the never-list of functions",
    ),
    ActionCategory(
        "Reporting",
        lambda _, effect, __: effect is Effect.REPORT,
        "the platform's log; any rung",
        "what was proven three times of three",
        "severities of `[post] hold` wait for a person",
        "`budget.reports`, 2,048 bytes, `[post] mask`",
    ),
)
"""The first one that holds."""


def category_of(spec: ToolSpec, effect: Effect, technique: str) -> ActionCategory | None:
    """The category of a technique of a tool, by its name; None for one without a category."""
    way = technique.removeprefix(spec.name).strip()
    return next((one for one in CATEGORIES if one.holds(spec, effect, way)), None)


def table() -> str:
    """All of them in Markdown, with what each has of the tools that are there."""
    head = ("category", "applies to", "actions", "decides by", "a person is asked or told", "limits")
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    has: dict[str, list[str]] = {one.name: [] for one in CATEGORIES}
    for one in techniques():
        tool, _, way = one.name.partition(" ")
        spec = TOOLS[tool]
        reads = way in (*SAFE, "look") or (way in (FILE, ATTACK) and spec.effect is Effect.LOOK)
        effect = Effect.LOOK if reads else Effect.ACT if way else spec.effect
        if found := category_of(spec, effect, one.name):
            has[found.name].append(f"`{one.name}`")
    for category in CATEGORIES:
        cells = (category.name, category.applies, ", ".join(has[category.name]), category.criteria)
        rows.append(f"| {' | '.join((*cells, category.escalates, category.limits))} |")
    return "\n".join(rows) + "\n"
