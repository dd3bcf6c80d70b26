"""Oracles of what a visitor's answer in JSON gives away: secrets and data of people, by field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.oracles.echoes import OWN, family
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import line

PEOPLE = "e-mail addresses of many people"


def _users(*names: str, **args: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_fetch", {"url": "{site}/users", **args}, {"status": 200, "private": names}),)


@Oracle(
    id="private-fields",
    says="no answer to a visitor has a password, a secret of the server or data of many people in a field",
    severity=Severity.HIGH,
    surface="security",
    judges=("page",),
    forgeable=True,
    example=_users("password", PEOPLE),
    control=_users(),
)
def private_fields(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """By the name and the value of a field together; e-mail addresses alone are less grave. A page of a name
    that a run minted is its own."""
    last = seen[-1]
    names = [str(one) for one in last.result.get("private", ())]
    grave = [one for one in names if one != PEOPLE]
    if not names or int(last.result.get("status", 0)) >= 400 or OWN.search(str(last.args.get("url", ""))):
        return
    if "authorization" in {str(name).lower() for name in last.args.get("headers", {})}:
        return
    said = ", ".join(grave or names)
    severity = Severity.HIGH if grave else Severity.MEDIUM
    title, key = (
        f"{last.asked} shows a visitor {line(said.replace('_', ' '), 80)}",
        f"private-fields {family(last.args)} {said}",
    )
    yield observed(title, key, "private", severity=severity, where={"field": said})
