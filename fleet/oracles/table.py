"""The explicit table of oracles: adding one is one file and one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

from fleet.findings.kinds import kind_of
from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Facts, Oracle, Violation
from fleet.oracles.place import placed

NAMES = (
    "program.compiler",
    "program.pairs",
    "web.pages",
    "web.browser",
    "agent.replies",
    "agent.consistency",
    "agent.charges",
    "agent.memory",
    "agent.identities",
    "agent.tasks",
    "agent.planted",
    "agent.mcp_servers",
    "agent.mcp_calls",
    "agent.payments",
    "agent.registrations",
    "account.rights",
    "account.tokens",
    "account.functions",
    "account.effects",
    "account.inputs",
    "account.methods",
    "account.sessions",
    "account.things",
    "account.stored_scripts",
    "account.races",
    "account.agreements",
    "chain.publications",
    "chain.views",
    "chain.access",
    "chain.limits",
    "chain.unnamed",
    "chain.lookups",
    "chain.stated",
    "chain.reentrancy",
    "web.injections",
    "web.redirects",
    "web.origins",
    "web.access",
    "web.responses",
    "web.crashes",
    "documents.graphql_bounds",
    "documents.lengths",
    "web.exposure",
    "documents.routes",
    "documents.described",
    "web.links",
    "documents.disagreements",
    "documents.refusals",
    "web.timing",
)
"""Modules of this package; each function in them that `@oracle` decorates is one."""

ORACLES: tuple[Oracle, ...] = tuple(
    one
    for name in NAMES
    for one in vars(import_module(f"fleet.oracles.{name}")).values()
    if isinstance(one, Oracle)
)


def judges_words(oracle: str) -> bool:
    """Whether an oracle judges words of an error (`Oracle.words`)."""
    return any(one.words for one in ORACLES if one.id == oracle)


def judge(seen: Sequence[Exchange], facts: Facts) -> tuple[Violation, ...]:
    """Judge the last exchange of a question by every oracle of its kind, each defect once."""
    kinds = set(seen[-1].kinds) if seen else set()
    found = [
        (
            oracle,
            Violation(
                oracle.id,
                one.severity or oracle.severity,
                oracle.surface,
                _folded(oracle.id, one.sighting, seen[-1], facts),
                one.fields,
                oracle.forgeable if one.forgeable is None else one.forgeable,
                one.led,
            ),
        )
        for oracle in ORACLES
        if kinds & set(oracle.judges) and all(need in facts.promised for need in oracle.needs)
        for one in oracle.judge(seen, facts)
    ]
    speaking = {oracle.id for oracle, _ in found}
    return tuple(one for oracle, one in found if not speaking & set(oracle.yields_to))


def _folded(oracle: str, sighting: Sighting, last: Exchange, facts: Facts) -> Sighting:
    kind = kind_of(oracle)
    folded = replace(
        sighting,
        signature=facts.folded(sighting.signature),
        former=tuple((facts.folded(text), whole) for text, whole in sighting.former),
    )
    return placed(folded, kind.id, last, facts) if kind else folded
