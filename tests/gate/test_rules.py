"""Each rule alone: a call that only this rule refuses, so that taking the rule away is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.chain.signing.never import NEVER
from fleet.config.scope import HostCare, HostSection
from fleet.config.url_list import UrlList
from fleet.gate import rules
from fleet.gate.model import Action, Rung
from fleet.gate.rules import POINTS, RULES, GateFacts, Rule, judge
from fleet.gate.scope import Scope
from sandbox.spec import Cost, Effect, Points
from sandbox.tools import TOOLS

OWN = "qa-r1-1"
PAGE = "http://127.0.0.1:9000/"
SCOPE = Scope(
    origins=frozenset({("http", "127.0.0.1", 9000)}),
    call_targets=frozenset({"claude"}),
    functions=frozenset({"feedbackCount"}),
    mcp=frozenset({f"{PAGE}mcp"}),
    mcp_never=frozenset({"clear"}),
    paid=frozenset({(("http", "127.0.0.1", 9000), "/reports")}),
)
CRITICAL = HostSection(criticality="critical", approved="ada")
BARRED = replace(SCOPE, never=UrlList.of(["{site}/logout"], site=PAGE, proxy=""))
CAREFUL = replace(SCOPE, proxy=PAGE, care=HostCare.of({"127.0.0.1:9000": CRITICAL}))
KEEPER = replace(
    SCOPE,
    call_targets=frozenset({"claude", "keeper"}),
    agents={"keeper": "http://keeper.test/a2a"},
    care=HostCare.of({"keeper.test": HostSection(criticality="non-production")}),
)
ARGS: dict[str, dict[str, Any]] = {
    "qa_create": {"name": OWN},
    "qa_publish": {"name": OWN, "source": "fn frame() {}"},
    "qa_call": {"target": "claude", "message": "please run releaseName and clearFeedback()"},
    "qa_compile": {"source": "diamondCut"},
    "qa_fuzz": {"seed": 1},
    "qa_fetch": {"url": PAGE},
    "qa_chain": {"function": "feedbackCount"},
    "qa_browse": {"url": PAGE},
    "qa_account": {"url": PAGE, "steps": [["nobody", "GET", "/me", {}]]},
    "qa_mcp": {"url": f"{PAGE}mcp"},
    "qa_pay": {"url": f"{PAGE}reports"},
    "qa_registry": {"agent": 22},
    "qa_report": {"text": "hello"},
}
EFFECTS = {name: spec.effect for name, spec in TOOLS.items()}


def _action(tool: str, **changes: Any) -> Action:
    effect = EFFECTS.get(tool, Effect.LOOK)
    fields = {"run": "r1", "persona": "qa-x", "tool": tool, "effect": effect, "args": ARGS.get(tool, {})}
    return Action(**fields | changes)


def _facts(tool: str, **changes: Any) -> GateFacts:
    known = TOOLS.get(tool)
    facts = GateFacts(
        run="r1",
        stop="",
        rung=Rung.EXERCISE,
        grant=frozenset(TOOLS),
        effect=known.effect if known else None,
        cost=known.cost if known else Cost(),
        acts_on=known.acts_on if known else None,
        points_at=known.points_at if known else None,
        scope=SCOPE,
        recent=1,
        rate=10,
        left={"calls": 5, "writes": 5, "reports": 5, "closing": 1},
        acts=True,
        now=10.0,
        deadline=20.0,
    )
    return replace(facts, **changes)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_what_is_in_order_is_permitted(tool: str) -> None:
    verdict = judge(_action(tool), _facts(tool))
    assert (verdict.permit, verdict.rule, verdict.reason) == (True, "permit", "")


def test_every_tool_says_what_the_rules_ask_of_it() -> None:
    assert set(TOOLS) == set(ARGS)
    assert set(POINTS) == set(Points)
    assert [name for name, spec in TOOLS.items() if spec.points_at is None] == []
    assert [name for name, spec in TOOLS.items() if spec.effect is Effect.ACT and spec.acts_on is None] == []


Case = tuple[Rule, str, dict[str, Any], dict[str, Any], bool]
CASES: list[Case] = [
    (rules.stop, "qa_compile", {}, {"stop": "STOP is set"}, True),
    (rules.schedule, "qa_compile", {}, {"closed": "outside the testing windows"}, True),
    (rules.dial, "qa_create", {}, {"rung": Rung.OBSERVE}, False),
    (rules.dial, "qa_publish", {}, {"rung": Rung.OBSERVE}, False),
    (rules.dial, "qa_call", {}, {"rung": Rung.OBSERVE}, False),
    (rules.dial, "qa_fetch", {"effect": Effect.COMPUTE}, {}, False),
    (rules.dial, "qa_call", {"effect": Effect.LOOK}, {}, False),
    (rules.dial, "qa_fetch", {}, {"effect": None}, False),
    (rules.grant, "qa_fetch", {}, {"grant": frozenset({"qa_call"})}, False),
    (rules.grant, "qa_publish", {}, {"grant": frozenset({"qa_fetch"}), "rung": Rung.PROPOSE}, False),
    (rules.grant, "qa_fetch", {"run": "r2"}, {}, False),
    (rules.prefix, "qa_create", {"args": {"name": "claude"}}, {}, False),
    (rules.prefix, "qa_create", {"args": {"name": "qa-otherrun-1"}}, {}, False),
    (rules.prefix, "qa_create", {"args": {"name": "qa-r1"}}, {}, False),
    (rules.prefix, "qa_create", {"args": {"name": "qа-r1-1"}}, {}, False),
    (rules.prefix, "qa_create", {"args": {}}, {}, False),
    (rules.prefix, "qa_publish", {"args": {"name": ["qa-r1-1"]}}, {}, False),
    (rules.prefix, "qa_call", {}, {"scope": CAREFUL}, False),
    (rules.scope, "qa_call", {"args": {"target": "keeper"}}, {}, False),
    (
        rules.prefix,
        "qa_call",
        {"args": {"target": "keeper"}},
        {"scope": replace(KEEPER, care=HostCare.of({"keeper.test": CRITICAL}))},
        False,
    ),
    (
        rules.never,
        "qa_call",
        {"args": {"target": "keeper"}},
        {"scope": replace(KEEPER, never=UrlList.of(["keeper.test"], site="", proxy=""))},
        False,
    ),
    (rules.prefix, "qa_fetch", {"effect": Effect.ACT}, {"effect": Effect.ACT}, False),
    (rules.prefix, "qa_mcp", {"effect": Effect.ACT}, {"effect": Effect.ACT, "acts_at": "url"}, False),
    (rules.never, "qa_mcp", {"args": {"url": f"{PAGE}mcp", "name": "clear"}}, {}, False),
    (rules.never, "qa_pay", {"args": {"url": f"{PAGE}reports", "name": "clear"}}, {}, False),
    (rules.scope, "qa_mcp", {"args": {"url": PAGE}}, {}, False),
    (rules.scope, "qa_mcp", {"args": {}}, {}, False),
    (rules.scope, "qa_registry", {"args": {"agent": 22, "file": "http://169.254.169.254/"}}, {}, False),
    (rules.prefix, "qa_pay", {"effect": Effect.ACT}, {"effect": Effect.ACT, "acts_at": "url"}, False),
    (rules.scope, "qa_pay", {"args": {"url": f"{PAGE}reportsx"}}, {}, False),
    (rules.scope, "qa_pay", {"args": {"url": f"{PAGE}reports/../x"}}, {}, False),
    (
        rules.scope,
        "qa_pay",
        {"args": {"url": f"{PAGE}reports", "other": "http://elsewhere.test/"}},
        {},
        False,
    ),
    (rules.never, "qa_call", {}, {"never": frozenset({"qa_call"})}, False),
    (rules.never, "qa_fetch", {"args": {"url": "http://127.0.0.1:9000/", "data": "0x1F931C1C00"}}, {}, False),
    (
        rules.never,
        "qa_fetch",
        {"args": {"url": "http://127.0.0.1:9000/", "selector": "0xfeedbeef"}},
        {"never": frozenset({"0xFEEDBEEF"})},
        False,
    ),
    (rules.never, "qa_fetch", {"args": {"url": PAGE + "logout"}}, {"scope": BARRED}, False),
    (rules.never, "qa_browse", {"args": {"url": PAGE + "x/..%2fLogOut;a=1"}}, {"scope": BARRED}, False),
    (rules.never, "qa_fetch", {"args": {"url": PAGE, "control": PAGE + "logout"}}, {"scope": BARRED}, False),
    (rules.scope, "qa_call", {"args": {"target": "somebody", "message": ""}}, {}, False),
    (rules.scope, "qa_call", {"args": {"target": "qa-r2-1", "message": ""}}, {}, False),
    (rules.scope, "qa_call", {"args": {"target": ["claude"], "message": ""}}, {}, False),
    (rules.scope, "qa_call", {"args": {"message": ""}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": "http://127.0.0.1:9001/"}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": PAGE, "control": "http://127.0.0.1:9001/"}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": PAGE, "control": "http://169.254.169.254/"}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": PAGE, "control": [PAGE]}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": PAGE, "control": None}}, {}, False),
    (rules.scope, "qa_fetch", {"args": {"url": "http://127.0.0.1:9001/", "control": PAGE}}, {}, False),
    (rules.scope, "qa_chain", {"args": {"function": "eth_sendRawTransaction"}}, {}, False),
    (rules.scope, "qa_chain", {"args": {"function": {}}}, {}, False),
    (rules.rate, "qa_fetch", {}, {"recent": 11}, False),
    (rules.budget, "qa_fetch", {}, {"left": {"calls": 0, "writes": 9, "reports": 9}}, True),
    (rules.budget, "qa_fetch", {}, {"left": {}}, True),
    (rules.budget, "qa_create", {}, {"left": {"calls": 9, "writes": 0, "reports": 9}}, True),
    (rules.budget, "qa_create", {}, {"left": {"calls": 9, "writes": 1, "reports": 9}}, True),
    (rules.budget, "qa_create", {}, {"acts": False}, False),
    (rules.budget, "qa_report", {}, {"left": {"calls": 9, "writes": 9, "reports": 0, "closing": 1}}, False),
    (rules.deadline, "qa_fetch", {}, {"now": 20.0}, True),
    (rules.deadline, "qa_fetch", {}, {"deadline": float("nan")}, True),
    (rules.impact, "qa_fetch", {"args": {"url": PAGE, "method": "TRACE"}}, {}, False),
    (rules.steering, "qa_fetch", {}, {"left_out": UrlList.of([PAGE], site="", proxy="")}, False),
]


@pytest.mark.parametrize(("rule", "tool", "action", "facts", "ends"), CASES)
def test_only_this_rule_refuses(
    rule: Rule, tool: str, action: dict[str, Any], facts: dict[str, Any], ends: bool
) -> None:
    asked, known = _action(tool, **action), _facts(tool, **facts)
    verdict = judge(asked, known)
    assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, rule.__name__, ends)
    assert verdict.reason
    assert judge(asked, known, tuple(r for r in RULES if r is not rule)).permit


@pytest.mark.parametrize("control", ["", PAGE, "http://127.0.0.1:9000/llms.txt?x=1"])
def test_a_control_on_the_platform_is_permitted(control: str) -> None:
    action = _action("qa_fetch", args={"url": PAGE, "control": control})
    assert judge(action, _facts("qa_fetch")).permit


def test_an_effect_that_no_rung_knows_is_refused_and_in_no_category() -> None:
    asked, facts = _action("qa_fetch", effect="browse"), _facts("qa_fetch", effect="browse")
    assert judge(asked, facts).reason == "no rung permits browse"
    verdict = rules.impact(asked, facts)
    assert verdict is not None
    assert verdict.reason == "qa_fetch GET: no category of what is permitted before has it"


def test_a_case_for_each_rule() -> None:
    assert {case[0] for case in CASES} == set(RULES)


@pytest.mark.parametrize("word", [*NEVER, *NEVER.values(), *(f"{name}(uint256)" for name in NEVER)])
def test_the_never_list_beats_the_table_of_views(word: str) -> None:
    listed = replace(SCOPE, functions=frozenset({word}))
    action = _action("qa_chain", args={"function": word})
    verdict = judge(action, _facts("qa_chain", scope=listed, rung=Rung.PROPOSE))
    assert (verdict.permit, verdict.rule) == (False, "never")


@pytest.mark.parametrize("selector", NEVER.values())
def test_only_a_simulation_may_name_what_is_never_called(selector: str) -> None:
    """It is a look at any rung; any other argument with the same word is refused, beside it as well."""
    facts = _facts("qa_chain", rung=Rung.OBSERVE, acts=False)
    assert judge(_action("qa_chain", args={"simulate": selector}), facts).permit
    for other in ("function", "selector", "data"):
        verdict = judge(_action("qa_chain", args={"simulate": selector, other: selector}), facts)
        assert (verdict.permit, verdict.rule) == (False, "never")
    for tool in ("qa_create", "qa_publish", "qa_call", "qa_report"):
        for key in ("function", "selector", "data"):
            action = _action(tool, args=ARGS[tool] | {key: selector})
            assert judge(action, _facts(tool)).rule == "never"


def test_no_rule_means_no() -> None:
    assert not judge(_action("qa_fetch"), _facts("qa_fetch"), ()).permit
    unknown = judge(_action("qa_mystery"), _facts("qa_mystery"))
    assert (unknown.permit, unknown.rule) == (False, "dial")
    known_but_unscoped = judge(
        _action("qa_mystery"), _facts("qa_mystery", effect=Effect.LOOK, grant=frozenset({"qa_mystery"}))
    )
    assert (known_but_unscoped.permit, known_but_unscoped.rule) == (False, "scope")


def test_the_first_refusal_wins_in_the_order_of_the_table() -> None:
    action = _action("qa_create", args={"name": "claude"}, run="r2")
    facts = _facts(
        "qa_create", stop="x", rung=Rung.OBSERVE, recent=99, left={}, now=99.0, never=frozenset({"qa_create"})
    )
    order = []
    remaining = list(RULES)
    while not (verdict := judge(action, facts, tuple(remaining) or RULES)).permit and remaining:
        order.append(verdict.rule)
        remaining = [rule for rule in remaining if rule.__name__ != verdict.rule]
        if not remaining:
            break
    assert order == ["stop", "dial", "grant", "prefix", "never", "rate", "budget", "deadline"]


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=20),
    st.sampled_from([OWN, "claude", "feedbackCount"]),
    st.just("http://127.0.0.1:9000/x"),
    st.lists(st.text(max_size=3), max_size=2),
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["name", "target", "url", "function", "data", "message", "source"]), VALUES
)
TOOL = st.sampled_from([*TOOLS, "qa_mystery", "qa_release", "", "QA_CREATE"])
EFFECT = st.sampled_from(list(Effect))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOL, EFFECT, ARGUMENTS, st.booleans())
def test_at_observe_nothing_ever_acts(tool: str, effect: Effect, args: dict[str, Any], usual: bool) -> None:
    action = _action(tool, effect=effect, args=ARGS.get(tool, {}) if usual else args)
    verdict = judge(action, _facts(tool, rung=Rung.OBSERVE))
    if verdict.permit:
        assert EFFECTS[tool] is effect
        assert effect is not Effect.ACT


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOL, EFFECT, ARGUMENTS, st.booleans())
def test_a_higher_rung_permits_a_superset(
    tool: str, effect: Effect, args: dict[str, Any], usual: bool
) -> None:
    action = _action(tool, effect=effect, args=ARGS.get(tool, {}) if usual else args)
    permits = [judge(action, _facts(tool, rung=rung)).permit for rung in Rung]
    assert permits == sorted(permits)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOL, EFFECT, ARGUMENTS)
def test_stop_is_below_every_rung(tool: str, effect: Effect, args: dict[str, Any]) -> None:
    for rung in Rung:
        verdict = judge(_action(tool, effect=effect, args=args), _facts(tool, rung=rung, stop="x"))
        assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "stop", True)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOL, EFFECT, ARGUMENTS)
def test_the_gate_of_one_run_never_serves_another(tool: str, effect: Effect, args: dict[str, Any]) -> None:
    assert not judge(_action(tool, effect=effect, args=args, run="r2"), _facts(tool)).permit


CART = f"{PAGE}api/cart"
ACTING = Scope(origins=SCOPE.origins, act_paths=frozenset({(("http", "127.0.0.1", 9000), "/api/cart")}))


def _post(url: object, **changes: Any) -> tuple[Action, GateFacts]:
    """A page to be changed, and the facts as the gate gathers them for it."""
    args = {"url": url, "method": "POST"}
    spec = TOOLS["qa_fetch"]
    effect = spec.effect_of(args)
    facts = _facts("qa_fetch", **{"effect": effect, "acts_at": spec.acts_at, "scope": ACTING} | changes)
    return _action("qa_fetch", effect=effect, args=args), facts


@pytest.mark.parametrize("url", [CART, f"{CART}/", f"{CART}/7", f"{CART}?next=/admin", f"{CART}/%41"])
@pytest.mark.parametrize("rung", [Rung.EXERCISE, Rung.PROPOSE])
def test_a_listed_page_may_be_changed_from_exercise_up(url: str, rung: Rung) -> None:
    assert judge(*_post(url, rung=rung)).permit


@pytest.mark.parametrize(
    "url",
    [
        PAGE,
        f"{PAGE}api",
        f"{PAGE}api/carts",
        f"{PAGE}API/CART",
        f"{PAGE}x/api/cart",
        f"{PAGE}x?{CART}",
        f"{PAGE}/api/cart",
        f"{CART}/../admin",
        f"{CART}/..;/admin",
        f"{CART}/%2e%2e/admin",
        f"{CART}/%252e%252e/admin",
        f"{CART}/%25252525252e%2e/admin",
        f"{CART}/..%2fadmin",
        f"{CART}/..%5cadmin",
        f"{CART}/%00",
        f"{PAGE}api%2fcart",
        "http://127.0.0.1:9001/api/cart",
        "https://127.0.0.1:9000/api/cart",
        [CART],
        None,
    ],
)
def test_no_other_page_is_changed_and_only_this_rule_refuses(url: object) -> None:
    action, facts = _post(url)
    verdict = judge(action, facts)
    assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "prefix", False)
    if ACTING.has_url(url):
        assert judge(action, facts, tuple(rule for rule in RULES if rule is not rules.prefix)).permit


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"scope": SCOPE}, "prefix"),  # the profile lists nothing
        ({"rung": Rung.OBSERVE}, "dial"),
        ({"acts_at": ""}, "prefix"),
        ({"acts": False}, "budget"),
        ({"left": {"calls": 9, "writes": 0, "reports": 9}}, "budget"),
        ({"stop": "STOP is set"}, "stop"),
    ],
)
def test_a_listed_page_is_not_changed_otherwise(changes: dict[str, Any], rule: str) -> None:
    verdict = judge(*_post(CART, **changes))
    assert (verdict.permit, verdict.rule) == (False, rule)


def test_a_caller_that_calls_its_act_a_look_is_refused() -> None:
    action, facts = _post(CART)
    assert judge(replace(action, effect=Effect.LOOK), facts).rule == "dial"


def test_every_tool_whose_effect_varies_says_where_it_acts() -> None:
    varies = {name: spec.acts_at for name, spec in TOOLS.items() if spec.effect_by}
    assert varies == {"qa_fetch": "url", "qa_mcp": "url", "qa_pay": "url"}
