"""The row of a proposal, and how it moves; see rows.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

ProposalState = Literal[
    "begun", "held", "checked", "pushing", "opening", "open", "merged", "closed", "withdrawn"
]
"""Where a proposal is. `held`: the fix gate refused it. `pushing` and `opening` are intents."""

OPEN_PROPOSALS: tuple[ProposalState, ...] = ("begun", "checked", "pushing", "opening", "open")

TRACKED = "propose.tracked."
"""Prefix of the journal's key of what a tracker says of an item; platform and fingerprint follow."""

UNLIKE = "propose.unlike."
"""The same, for what a person has said is not about it: a JSON object of references."""

HELD_AT = "held_at"
"""In a proposal's data: the step at which the gate held it; missing when it was held for another reason."""

PROPOSAL_MOVES: Mapping[ProposalState, frozenset[ProposalState]] = MappingProxyType(
    {
        "begun": frozenset({"held", "checked", "withdrawn"}),
        "checked": frozenset({"pushing", "held", "withdrawn"}),
        "pushing": frozenset({"opening", "checked", "withdrawn"}),
        "opening": frozenset({"open", "pushing", "merged", "closed", "withdrawn"}),
        "open": frozenset({"merged", "closed", "withdrawn"}),
        "held": frozenset(),
        "merged": frozenset(),
        "closed": frozenset({"open"}),
        "withdrawn": frozenset(),
    }
)
"""Permitted moves of a proposal; staying is always allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """One proposal of a fix for one item, made by one run; `proposal_id` is that run's id.

    `ref` is where it is (the URL of the pull request, or the branch), `head` the commit of its branch, `why`
    the reason of its state in words. `data` holds the steps of the gate, the checked patch and links (JSON).
    """

    proposal_id: str
    platform: str
    item: str
    repository: str
    branch: str
    state: ProposalState = "begun"
    base: str = ""
    head: str = ""
    ref: str = ""
    why: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    created: str = ""
    updated: str = ""
