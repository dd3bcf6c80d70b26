"""A draft of what who ordered the tests is told of sensitive data that a run saw, without its values. Pure.

A person reads it, adds what only people know, and sends it: nothing does by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fleet.findings.personal import LAWS, laws
from fleet.severity import Severity
from fleet.text import line


class Exposure(NamedTuple):
    """What follows from one kind of data that strangers can see."""

    impact: str
    remedy: str
    risk: Severity


_CREDENTIAL = Exposure(
    "whoever reads it can act as its owner",
    "revoke and replace it, look for its use in your logs, and take it out of the page and of its history",
    Severity.CRITICAL,
)
_MONEY = Exposure(
    "it can be charged or impersonated",
    "take it out of the answer, tell your acquirer or bank, and show the last four digits at most",
    Severity.CRITICAL,
)
_PAPER = Exposure(
    "people can be impersonated",
    "take it out of the answer, and require a log-in and a right for what needs it",
    Severity.HIGH,
)
_CONTACT = Exposure(
    "people can be found, written to and deceived",
    "limit the list to who needs it, and page it",
    Severity.MEDIUM,
)
_HEALTH = Exposure(
    "what is most private about people is known",
    "take it out of the answer, and require a log-in and a right for each record",
    Severity.CRITICAL,
)
_SECRET = Exposure(
    "what your organisation keeps to itself is known",
    "take it off the page, and see with counsel what its loss means",
    Severity.HIGH,
)
_OF: Mapping[str, Exposure] = {
    **dict.fromkeys(("card", "card-code", "account-number"), _MONEY),
    **dict.fromkeys(("social-security", "passport", "driving-licence"), _PAPER),
    **dict.fromkeys(("e-mail", "telephone"), _CONTACT),
    "health": _HEALTH,
    **dict.fromkeys(("classified", "trade-secret", "legal-hold"), _SECRET),
}


def draft(platform: str, run: str, place: str, what: str, kinds: Iterable[str], at: str) -> str:
    """Markdown. `kinds` are those of `personal`, and of credentials."""
    kinds = sorted(set(kinds))
    found = list(dict.fromkeys(_OF.get(kind, _CREDENTIAL) for kind in kinds))
    risk = max((one.risk for one in found), key=lambda one: one.weight, default=Severity.CRITICAL)
    apply_ = laws(kind for kind in kinds if kind in LAWS)
    rows = [
        f"# Draft: sensitive data at {line(place, 120)} ({line(platform, 60)})",
        "",
        f"- Seen: {at}, by run {run}. {line(what, 400)}.",
        f"- Kinds: {', '.join(kinds)}. The values are sealed, and stand nowhere else: `fleet runs vault`.",
        f"- Impact: {'; '.join(one.impact for one in found)}.",
        f"- Risk: {risk}, for whoever can open the page sees it.",
        f"- Remedy: {'; '.join(one.remedy for one in found)}.",
        f"- May fall under: {', '.join(apply_) or 'none of the laws that are looked at'}.",
        "- What we ask of you: tell us once it is mended. It is asked again, and what we hold is destroyed",
        "  (`fleet runs vault --destroy`, which leaves a record).",
        "",
    ]
    return "\n".join(rows)
