"""What must hold before a fix is proposed, in order; the first rule that is broken refuses.

    stop        STOP is set
    dial        the dial is below `propose`
    item        the item is not on the worklist, or a stranger's
    held        a person has dismissed or snoozed it
    state       it is not open and confirmed
    proof       it is not confirmed
    repro       it has no runnable repro of our own
    tracked     its tracker speaks of it already, and no person has asked for it by name
    tried       the gate has held it, it is as it was then, and no person has asked for it by name
    repository  no source repository is configured for its surface
    build       a build of that repository cannot answer the calls of its repro
    slots       too many proposals are open, of this item or in all
    budget      the budget of calls is spent
    token       no person has permitted pushing for this item or this day

Pure: every fact is in `ProposeFacts`, gathered afresh for each decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fleet.config.propose import ProposeSection
from fleet.findings.repro import ReproCall, ReproError, parse_repro
from fleet.fix.permission.allow_git import GitPermission
from fleet.gate.model import Rung
from fleet.triage.items.worklist import WorklistItem
from sandbox.tools import TOOLS

READY = frozenset({"confirmed", "regression"})
"""States in which an item is fixed without a person asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeFacts:
    """The facts at the moment of one decision.

    `asked` is what was asked for, `item` what the worklist has of it; `named`: a person asked for it by name.
    `tracked` is a hit of an earlier search of the tracker, `tried` what the gate held it at since it last
    changed, `unbuilt` why no build answers its repro, each in words. `repository` is the name of the one for
    its surface, "" for none. `live` counts open proposals of this item, `every` all of them. `calls` is what
    is left of the budget, and `budget` that limit in words.
    """

    asked: str
    item: WorklistItem | None
    named: bool
    rung: Rung
    stop: str
    permission: GitPermission
    limits: ProposeSection
    repository: str = ""
    tracked: str = ""
    tried: str = ""
    unbuilt: str = ""
    live: int = 0
    every: int = 0
    calls: int = 0
    budget: str = "the budget of calls"


@dataclass(frozen=True, slots=True)
class ProposeRefusal:
    """Why nothing is proposed: the machine-readable rule, and one line for a person."""

    rule: str
    reason: str


ProposeRule = Callable[[ProposeFacts], str]
"""Why not, or ""."""


def stop(facts: ProposeFacts) -> str:
    return facts.stop


def dial(facts: ProposeFacts) -> str:
    low = facts.rung.height < Rung.PROPOSE.height
    return f"a proposal needs {Rung.PROPOSE}; the dial says {facts.rung}" if low else ""


def item(facts: ProposeFacts) -> str:
    if facts.item is None:
        return f"no item {facts.asked} on the worklist"
    return "" if facts.item.trusted else "only a stranger reports it: what a stranger wrote is never run"


def held(facts: ProposeFacts) -> str:
    state = facts.item.state if facts.item else ""
    return f"a person has {state} it" if state in ("dismissed", "snoozed") else ""


def state(facts: ProposeFacts) -> str:
    """A person may ask for an item again whose proposal was closed."""
    now = facts.item.state if facts.item else ""
    good = now in READY or (facts.named and now == "proposed")
    return "" if good else f"it is {now}, not confirmed"


def proof(facts: ProposeFacts) -> str:
    tier = facts.item.proof if facts.item else ""
    return "" if tier == "confirmed" else f"it is {tier}, not confirmed"


def repro(facts: ProposeFacts) -> str:
    """Text of our own entry that parses into calls of tools that there are."""
    _, why = calls_of(facts.item.repro if facts.item else "")
    return why


def tracked(facts: ProposeFacts) -> str:
    return "" if facts.named else facts.tracked


def repository(facts: ProposeFacts) -> str:
    surface = facts.item.surface if facts.item else ""
    return "" if facts.repository else f"no repository in fleet.toml is configured for {surface}"


def tried(facts: ProposeFacts) -> str:
    return "" if facts.named else facts.tried


def build(facts: ProposeFacts) -> str:
    return facts.unbuilt


def slots(facts: ProposeFacts) -> str:
    if facts.live >= facts.limits.per_item:
        return f"{facts.live} of {facts.limits.per_item} proposals of this item are open"
    full = facts.every >= facts.limits.open
    return f"{facts.every} of {facts.limits.open} proposals are open" if full else ""


def budget(facts: ProposeFacts) -> str:
    return "" if facts.calls > 0 else f"{facts.budget} is spent"


def token(facts: ProposeFacts) -> str:
    return "" if facts.permission.allowed else facts.permission.why


RULES: Mapping[str, ProposeRule] = {
    rule.__name__: rule
    for rule in (
        *(stop, dial, item, held, state, proof, repro, tracked, tried),
        *(repository, build, slots, budget, token),
    )
}


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """One rule of a dry run; `why` is "" where it holds."""

    rule: str
    why: str = field(default="")


def refusal(facts: ProposeFacts, rules: Mapping[str, ProposeRule] = RULES) -> ProposeRefusal | None:
    """The first rule that refuses; without any rule the answer is no."""
    if not rules:
        return ProposeRefusal("none", "no rule permits this")
    return next((ProposeRefusal(one.rule, one.why) for one in table(facts, rules) if one.why), None)


def table(facts: ProposeFacts, rules: Mapping[str, ProposeRule] = RULES) -> list[CheckedRule]:
    """Every rule and what it says; those about an item that there is not are left out."""
    found = []
    for name, rule in rules.items():
        found.append(CheckedRule(name, rule(facts)))
        if name == "item" and facts.item is None:
            break
    return found


def calls_of(text: str) -> tuple[tuple[ReproCall, ...], str]:
    """The calls of an item's repro, and why they cannot be run."""
    if not text:
        return (), "it has no runnable repro of our own"
    try:
        calls = parse_repro(text)
    except ReproError as error:
        return (), f"its repro cannot be read: {error}"
    unknown = sorted({call.tool for call in calls} - TOOLS.keys())
    return calls, f"its repro names tools that do not exist: {', '.join(unknown)}" if unknown else ""
