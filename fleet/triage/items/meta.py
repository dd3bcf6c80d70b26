"""The summary that triage itself writes to the log: the top three, and only when the list changed. Pure.

Whether it is due is derived from the log: our last summary carries the digest of its list. So a crash between
deciding and posting neither loses nor doubles it, and strangers, whose items are not in the digest, cannot
make us write.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from fleet.findings.envelope import Envelope, write
from fleet.findings.records import SOURCE
from fleet.severity import META
from fleet.triage.items.cluster import TIERS
from fleet.triage.items.worklist import WorklistItem

TOP = 3


def key(items: Sequence[WorklistItem]) -> str:
    """12 hex digits over a summary's content: our open items with severity and proof, in order.

    Age is left out: it moves every day, and a day alone changes nothing.
    """
    ours = [item for item in items if item.trusted and item.rank]
    ours.sort(key=lambda one: (TIERS.index(one.proof), -ageless(one), one.first_seen, one.fingerprint))
    lines = (f"{i.fingerprint} {i.severity} {i.proof} {i.regression}" for i in ours)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def ageless(item: WorklistItem) -> float:
    """An item's score without its age."""
    return round(math.prod(one.factor for one in item.factors if one.name != "age"), 3)


def due(items: Sequence[WorklistItem], last: str | None) -> bool:
    """True when the log's last summary of ours is about another list; an empty list needs none at first."""
    if last is None:
        return any(item.trusted and item.rank for item in items)
    return last != key(items)


def summary(items: Sequence[WorklistItem]) -> str:
    """The `sev=meta` envelope: one line that counts, then at most three of our own items."""
    ours = [item for item in items if item.trusted and item.rank]
    proven = sum(item.proof in ("confirmed", "flaky") for item in ours)
    body = [f"{i.rank}. {i.severity} {i.surface} {i.fingerprint} {i.title}" for i in ours[:TOP]]
    title = f"worklist changed: {len(ours)} open, {proven} proven"
    envelope = Envelope(
        source=SOURCE, sev=META, surface="triage", fp=key(items), title=title, body="\n".join(body)
    )
    return write(envelope)
