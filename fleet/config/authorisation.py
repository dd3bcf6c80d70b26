"""A person's word that this platform may be tested: `[authorisation]` of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from fleet.config.section import Section

Comment = Annotated[str, StringConstraints(pattern=r"^([!-'*-\[\]-~][ -'*-\[\]-~]{0,119})?$")]
"""Text that may stand in a comment of HTTP (RFC 9110, 5.6.5) as it is."""


Boundary = Literal["network", "techniques", "data", "impact", "escalation"]
BOUNDARIES: Mapping[Boundary, str] = {
    "network": "hosts, ranges and never-lists",
    "techniques": "tools, act_paths and what is never called",
    "data": "authorisation.data, and what is masked",
    "impact": "rates, windows, degraded_s and criticality",
    "escalation": "what a person is asked, and what stops everything",
}
"""Each boundary of a profile, and the keys that draw it."""
DataKind = Literal[
    "account-number",
    "card",
    "card-code",
    "classified",
    "driving-licence",
    "e-mail",
    "health",
    "legal-hold",
    "passport",
    "social-security",
    "telephone",
    "trade-secret",
]
"""What is known of other people's data, by kind (`findings/personal.py`)."""


class LevelSection(Section):
    """Who authorised that the fleet acts alone within limits (level 3 of OWASP's standard), after what."""

    by: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Who decided, by name and role."""
    legal: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Who reviewed it as a lawyer."""
    on: date
    """The day of it: it counts for a year, then it is decided anew after a review of that year."""
    hours: int = Field(strict=True, ge=200)
    """Hours for which the fleet was operated with a person's word before each act (level 2) before."""
    engagements: int = Field(strict=True, ge=5)
    """The number of engagements in that time."""
    incidents: Literal[0] = 0
    """Safety incidents of that time that were not contained: none may have been."""
    risks: Annotated[str, StringConstraints(min_length=10, max_length=2_000)]
    """The risks of these targets and what is done about each."""
    review: Annotated[str, StringConstraints(max_length=500)] = ""
    """Of a renewal: what the review of the last year found, and where it is."""


class AuthorisationSection(Section):
    """What a person answered; `fleet look` and `fleet init` ask, once for each host.

    A platform on this machine or in a private network needs none.
    """

    by: Annotated[str, StringConstraints(max_length=200)] = ""
    """Who said that these hosts may be tested."""
    on: Annotated[str, StringConstraints(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""
    """The day of it."""
    hosts: tuple[Annotated[str, StringConstraints(min_length=1, max_length=300)], ...] = ()
    """Each host that it is for, with its port where that is not the usual one."""
    contact: Comment = ""
    """An address that a person of the platform may write to: in the User-Agent of every request."""
    reference: Comment = ""
    """What permits the tests: a ticket, a contract, the page of a programme; in the User-Agent too."""

    model: Annotated[str, StringConstraints(max_length=200)] = ""
    """The one model that may drive, as `[model] name` has it. Where `[authority] signers` is set, no other
    does, and without it none."""

    data: tuple[DataKind, ...] = ()
    """Kinds of other people's data that the tests may see: they are not told, and nothing waits or stops for
    them. Every other kind is."""
    why: dict[Boundary, Annotated[str, StringConstraints(min_length=10, max_length=500)]] = {}
    """Why each boundary is drawn where it is, in words of those who permitted the tests."""

    level: LevelSection | None = None
    """The authorisation of the level of autonomy; a signed scope needs it, not older than a year."""

    @property
    def comment(self) -> str:
        """What follows the product's name in a User-Agent; "" when nothing is stated."""
        stated = "; ".join(filter(None, (self.contact, self.reference)))
        return f" ({stated})" if stated else ""
