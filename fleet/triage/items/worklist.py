"""An item of the worklist, and what identifies a list of them; the formats are in `outputs/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic_core import to_json

from fleet.findings.instances import Instance
from fleet.store.rows import LinkKind
from fleet.triage.items.life import ItemState, Stage

ProofState = Literal["confirmed", "flaky", "unverified", "needs-repro", "untrusted"]
"""How well an item is proven, best first: the tiers of the ranking."""

SCHEMA = 3
"""Version of `worklist.json`: docs/reference/worklist.schema.json."""


@dataclass(frozen=True, slots=True)
class RankFactor:
    """One factor of a score: its name, the value in words, the number, and who set it."""

    name: str
    value: str
    factor: float
    by: str


@dataclass(frozen=True, slots=True)
class ItemLink:
    """A typed, reversible link to another item. `by` is `fingerprint`, `similarity`, `model` or a person."""

    kind: LinkKind
    other: str
    why: str
    by: str
    suggested: bool = False


@dataclass(frozen=True, slots=True)
class ProposalLink:
    """The latest proposal of a fix: its state (fleet/store/rows.py), where it is, and why.

    `tracked` is a proposal of others: a tracker or a commit speaks of the item already; `why` says which.
    """

    state: str
    ref: str = ""
    why: str = ""
    proposal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorklistItem:
    """One cluster of findings and the reason for its rank.

    `rank` is 0 for an item that is not open. `proof` is how well it is proven, `state` where it is in its
    life, `since` when that began, `stages` how it came there. `count` is runs that reported something new of
    it (findings/recurrence.py), `days` those on which it was seen. `names` are all its fingerprints, `source`
    the persona (or what else) that reported it. `entry` is the index of its leading entry on the log.

    `repro` is empty for untrusted items: a stranger's is shown only to a person who asks. `evidence` is the
    SHA-256 of the bundle. Times are ISO 8601; `resolved_at` is set when `regression` is.
    """

    rank: int
    fingerprint: str
    severity: str
    surface: str
    title: str
    count: int
    confirmed: bool
    repro: str
    evidence: str
    score: float
    why: str
    first_seen: str
    last_seen: str
    senders: tuple[str, ...]
    trusted: bool
    proof: ProofState
    state: ItemState
    regression: bool = False
    resolved_at: str = ""
    since: str = ""
    until: str = ""
    reason: str = ""
    stuck: str = ""
    stale: bool = False
    looked: str = ""
    days: int = 0
    entry: int = -1
    epoch: int = 0
    source: str = ""
    names: tuple[str, ...] = ()
    also: tuple[Instance, ...] = ()
    """Where else it was met, how often, first and last; `more` such places are not listed."""
    more: int = 0
    severity_by: str = ""
    stages: tuple[Stage, ...] = ()
    factors: tuple[RankFactor, ...] = ()
    links: tuple[ItemLink, ...] = ()
    proposal: ProposalLink | None = None


def digest(items: Sequence[WorklistItem]) -> str:
    """SHA-256 of the whole list: equal lists, equal digests."""
    return hashlib.sha256(as_json(items)).hexdigest()


def as_json(value: object, indent: int | None = None) -> bytes:
    """JSON in UTF-8, of dataclasses too; a lone surrogate becomes `?`."""
    try:
        return to_json(value, indent=indent)
    except ValueError:  # of that surrogate; `json` takes five times as long
        text = json.dumps(
            value,
            ensure_ascii=False,
            indent=indent,
            default=lambda one: {name: getattr(one, name) for name in one.__dataclass_fields__},
        )
        return text.encode("utf-8", "replace")
