"""The rules, in order. The first answer that is not *permit* wins; no rule means *deny*.

    stop      STOP is set
    schedule  the platform's testing windows are closed
    dial      the rung is below what the tool's effect needs
    grant     the tool is not in the persona's grant, or the call is another run's
    prefix    an act on a name that this run did not mint, or on a page that the profile does not list
    never     on a list that no rung lifts: functions, and the profile's hosts and paths
    steering  a place that a person has taken out while runs go on (steering.py)
    scope     a host, an agent or a view outside the platform; a tool without a scope rule
    rate      too many calls in a short time
    budget    the budget of calls, writes or reports is spent
    deadline  the run's time is over
    impact    nobody has classified it, or it waits for a person's word

Pure: every fact is in `GateFacts`, gathered afresh for each decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fleet.chain.signing.never import NEVER
from fleet.config.url_list import NO_URLS, UrlList, host_of
from fleet.gate.assessment import ASSESSED, assess
from fleet.gate.budget import Room, Unit
from fleet.gate.categories import category_of
from fleet.gate.impact import Technique, technique_of
from fleet.gate.model import Action, Rung, Verdict
from fleet.gate.scope import Scope, is_own_name
from sandbox.spec import URLS, Cost, Effect, Points
from sandbox.tools import TOOLS

LOWEST: Mapping[Effect, Rung] = MappingProxyType(
    {
        Effect.LOOK: Rung.OBSERVE,
        Effect.COMPUTE: Rung.OBSERVE,
        Effect.REPORT: Rung.OBSERVE,
        Effect.ACT: Rung.EXERCISE,
    }
)
"""The lowest rung that permits an effect; a missing effect is never permitted."""

_CALL_FIELDS = ("function", "selector", "data")
"""Arguments that name the function to call on chain; a message to an agent is not one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFacts:
    """The facts at the moment of one decision. `now` and `deadline` on one monotonic clock.

    `effect`, `cost`, `acts_on`, `acts_at` and `points_at` are the tool's own, from its spec; `effect` is None
    for an unknown tool.
    `stop` is the reason for the pause, `closed` why the platform may not be tested now, or "". `recent`
    counts the calls of the current rate window, this one included. `left` is what the nearest limit of each
    unit leaves, and `limits` that limit: of the run, of its persona's day or of the fleet's. `never` holds an
    operator's additions: tools, functions or selectors.
    """

    run: str
    stop: str
    rung: Rung
    grant: frozenset[str]
    effect: Effect | None
    cost: Cost
    acts_on: str | None = None
    acts_at: str = ""
    points_at: Mapping[str, Points] | None = None
    scope: Scope
    recent: int
    rate: int
    left: Mapping[Unit, int]
    limits: Mapping[Unit, Room] = field(default_factory=dict)
    acts: bool
    now: float
    deadline: float
    closed: str = ""
    never: frozenset[str] = field(default_factory=frozenset)
    left_out: UrlList = NO_URLS
    answers: Mapping[str, str] = field(default_factory=dict)


Rule = Callable[[Action, GateFacts], Verdict | None]


def _no(rule: str, reason: str, *, ends_run: bool = False) -> Verdict:
    return Verdict(permit=False, rule=rule, reason=reason, ends_run=ends_run)


def stop(_action: Action, facts: GateFacts) -> Verdict | None:
    return _no("stop", facts.stop, ends_run=True) if facts.stop else None


def schedule(_action: Action, facts: GateFacts) -> Verdict | None:
    return _no("schedule", facts.closed, ends_run=True) if facts.closed else None


def dial(action: Action, facts: GateFacts) -> Verdict | None:
    """The tool's own effect decides; a caller that claims another one is refused."""
    if facts.effect is None:
        return _no("dial", f"no tool named {action.tool!r}")
    if action.effect != facts.effect:
        return _no("dial", f"{action.tool} is {facts.effect}, not {action.effect}")
    needed = LOWEST.get(facts.effect)
    if needed is None:
        return _no("dial", f"no rung permits {facts.effect}")
    if facts.rung.height < needed.height:
        return _no("dial", f"{action.tool} needs {needed}; the dial says {facts.rung}")
    return None


def grant(action: Action, facts: GateFacts) -> Verdict | None:
    if action.run != facts.run:
        return _no("grant", f"this is run {facts.run}, not {action.run!r}")
    if action.tool not in facts.grant:
        return _no("grant", f"{action.tool} is not granted to this persona")
    return None


def prefix(action: Action, facts: GateFacts) -> Verdict | None:
    """Acts touch only this run's own names, and pages that the profile lists for it; an act that does not say
    what it acts on touches nothing."""
    if facts.effect is not Effect.ACT:
        return None
    where = action.args.get(facts.acts_at) if facts.acts_at else _called_at(action, facts)
    if why := facts.scope.care.bars(where):
        return _no("prefix", f"{action.tool}: {why}")
    if facts.acts_at:
        listed = facts.scope.may_act(action.args.get(facts.acts_at))
        return None if listed else _no("prefix", f"{action.tool}: not under act_paths of the profile")
    if facts.acts_on is None:
        return _no("prefix", f"the spec of {action.tool} does not say which argument is a name")
    if facts.acts_on and not is_own_name(action.args.get(facts.acts_on), facts.run):
        return _no("prefix", f"{action.tool} may act only on qa-{facts.run}-<n>")
    return None


def _called_at(action: Action, facts: GateFacts) -> str:
    """Where the agent is called that an action calls; "" for any other action."""
    name = next((name for name, what in (facts.points_at or {}).items() if what is Points.AGENT), "")
    target = str(action.args.get(name))
    return facts.scope.agents.get(target, facts.scope.proxy) if name else ""


def never(action: Action, facts: GateFacts) -> Verdict | None:
    words = {action.tool.lower(), *map(_called, (action.args.get(key) for key in _CALL_FIELDS))}
    listed = {word.lower() for word in (*NEVER, *NEVER.values(), *facts.never)}
    if words & listed:
        return _no("never", f"{action.tool}: on the list that no rung lifts")
    at_tools = {Points.MCP, Points.PAID} & {*(facts.points_at or {}).values()}
    if at_tools and action.args.get("name") in list(facts.scope.mcp_never):
        return _no("never", f"{action.tool}: this tool is on mcp.never, which no rung lifts")
    if entry := _meets(facts.scope.never, action, facts):
        return _no("never", f"{action.tool}: {entry} is on web.never, which no rung lifts")
    return None


def _meets(places: UrlList, action: Action, facts: GateFacts) -> str:
    """The argument and the entry of a list by which a call points there; "" when it does not."""
    if entry := places.match(_called_at(action, facts)):
        return entry
    for name, points in (facts.points_at or {}).items():
        if points in URLS and (entry := places.match(action.args.get(name))):
            return f"{name}: {entry}"
    return ""


def steering(action: Action, facts: GateFacts) -> Verdict | None:
    if entry := _meets(facts.left_out, action, facts):
        return _no("steering", f"{action.tool}: {entry} was left out by a person (fleet runs steer)")
    return None


def _called(value: object) -> str:
    """The function name or selector in an argument: `f(uint256)` is `f`, calldata is its first four bytes."""
    word = value.strip().lower().partition("(")[0] if isinstance(value, str) else ""
    return word[:10] if word.startswith("0x") else word


POINTS: Mapping[Points, tuple[Callable[[object, GateFacts], bool], str]] = MappingProxyType(
    {
        Points.AGENT: (
            lambda value, facts: (
                (isinstance(value, str) and value in facts.scope.call_targets)
                or is_own_name(value, facts.run)
            ),
            "not an agent that the profile lists, nor a name of this run",
        ),
        Points.PAGE: (lambda value, facts: facts.scope.has_url(value), "not a host of this platform"),
        Points.MCP: (
            lambda value, facts: isinstance(value, str) and value in facts.scope.mcp,
            "not an MCP endpoint that the profile names",
        ),
        Points.PAID: (
            lambda value, facts: facts.scope.sells(value),
            "nothing that the profile says is paid for",
        ),
        Points.PAGE_OR_NONE: (
            lambda value, facts: value == "" or facts.scope.has_url(value),
            "not a host of this platform",
        ),
        Points.VIEW_OR_NONE: (
            lambda value, facts: value == "" or (isinstance(value, str) and value in facts.scope.functions),
            "not a view in the table",
        ),
    }
)
"""What an argument may point at, and the reason against one that points elsewhere."""


def scope(action: Action, facts: GateFacts) -> Verdict | None:
    """Every argument that points at something; a tool that does not say which they are is refused."""
    if facts.points_at is None:
        return _no("scope", f"no scope rule for {action.tool!r}")
    for name, points in facts.points_at.items():
        holds, why = POINTS[points]
        left_out = "" if points in (Points.PAGE_OR_NONE, Points.VIEW_OR_NONE) else None
        if not holds(action.args.get(name, left_out), facts):
            return _no("scope", f"{action.tool}: {name}: {why}")
    return None


def rate(_action: Action, facts: GateFacts) -> Verdict | None:
    return _no("rate", f"more than {facts.rate} calls in a short time") if facts.recent > facts.rate else None


def budget(_action: Action, facts: GateFacts) -> Verdict | None:
    """Calls for everything, writes for acts, reports for reports; when spent, the first two end the run."""
    cost = facts.cost
    if facts.effect is Effect.ACT and not facts.acts:
        return _no("budget", "this persona has no budget for writes")
    if facts.left.get("calls", 0) < max(1, cost.calls):
        return _no("budget", _spent("calls", facts), ends_run=True)
    if facts.effect is Effect.ACT and facts.left.get("writes", 0) < max(1, cost.writes):
        return _no("budget", _spent("writes", facts), ends_run=True)
    if facts.effect is Effect.REPORT and facts.left.get("reports", 0) < 1:
        return _no("budget", _spent("reports", facts))
    return None


def _spent(unit: Unit, facts: GateFacts) -> str:
    room = facts.limits.get(unit)
    return f"{room.limit if room else f'the budget of {unit}'} is spent"


def deadline(_action: Action, facts: GateFacts) -> Verdict | None:
    if facts.now < facts.deadline:  # written so that NaN denies
        return None
    return _no("deadline", "the run's time is over", ends_run=True)


def technique(action: Action, facts: GateFacts) -> Technique | None:
    """What a call is and may do at worst, where it is made; None when nobody has classified it."""
    found = technique_of(action.tool, action.effect, action.args)
    where = _asked_at(action, facts)
    return found.at(facts.scope.care.at(where).criticality, action.effect) if found and where else found


def _asked_at(action: Action, facts: GateFacts) -> str:
    """The URL that a call asks; "" for one that asks a chain, or nothing."""
    if called := _called_at(action, facts):
        return called
    pages = [name for name, points in (facts.points_at or {}).items() if points in URLS]
    return next((str(action.args[name]) for name in pages if action.args.get(name)), "")


def impact(action: Action, facts: GateFacts) -> Verdict | None:
    """Last, so that a person is asked only for what everything else permits."""
    if (found := technique(action, facts)) is None:
        return _no("impact", f"{action.tool}: nobody has classified what this does (`impacts` of its spec)")
    if category_of(TOOLS[action.tool], action.effect, found.name) is None:
        return _no("impact", f"{found.name}: no category of what is permitted before has it")
    at = facts.scope.care.at(_asked_at(action, facts)).criticality
    risk = assess(found, at, action.effect).overall if found.level in ASSESSED else 0
    if risk > facts.scope.risk_most:
        most = f"limits.risk_most = {facts.scope.risk_most}"
        return _no("impact", f"{found.name}: it risks {risk}, more than {most}")
    if found.name in facts.scope.escalation.never:
        return _no("never", f"{found.name}: on escalation.never of the profile, which no rung lifts")
    if not facts.scope.escalation.asks(found.level):
        return None
    asked = f"{found.name} at {host_of(_asked_at(action, facts)) or 'the chain'}"
    if (said := facts.answers.get(asked, "")) == "approved":
        return None
    if said:
        return _no("person", f"{asked}: {said}")
    why = f"{asked} has the impact {found.level}: a person is asked first"
    return Verdict(permit=False, rule="person", reason=why, asks=asked, level=found.level)


RULES: tuple[Rule, ...] = (
    stop,
    schedule,
    dial,
    grant,
    prefix,
    never,
    steering,
    scope,
    rate,
    budget,
    deadline,
    impact,
)


def judge(action: Action, facts: GateFacts, rules: tuple[Rule, ...] = RULES) -> Verdict:
    """The verdict on one call; without any rule the answer is no."""
    if not rules:
        return _no("none", "no rule permits this")
    for rule in rules:
        verdict = rule(action, facts)
        if verdict is not None and not verdict.permit:
            return verdict
    return Verdict(permit=True, rule="permit")
