"""The summary that triage itself writes to the log: the top three, and only when the list changed. Pure.

Whether it is due is derived from the log: our last summary carries the digest of its list. So a crash between
deciding and posting neither loses nor doubles it, and strangers, whose items are not in the digest, cannot
make us write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from fleet.findings.envelope import Envelope, write
from fleet.triage.cluster import ReadReport, is_summary
from fleet.triage.worklist import WorklistItem

SOURCE = "qa-triage"
TOP = 3


def key(items: Sequence[WorklistItem]) -> str:
    """12 hex digits over a summary's content: our own items with severity and state, in order.

    Equal scores are in order of first sight: in the list a stranger may decide between them.
    """
    ours = [item for item in items if item.trusted]
    tiers = list(dict.fromkeys(item.state for item in ours))
    ours.sort(key=lambda i: (tiers.index(i.state), -i.score, i.first_seen, i.fingerprint))
    lines = (f"{i.fingerprint} {i.severity} {i.state} {i.regression}" for i in ours)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def due(items: Sequence[WorklistItem], reports: Sequence[ReadReport]) -> bool:
    """True when the log's last summary of ours is about another list; an empty list needs none at first."""
    last = next((report for report in reversed(reports) if is_summary(report)), None)
    if last is None:
        return any(item.trusted for item in items)
    return last.entry.fp != key(items)


def summary(items: Sequence[WorklistItem]) -> str:
    """The `sev=meta` envelope: one line that counts, then at most three of our own items."""
    ours = [item for item in items if item.trusted]
    proven = sum(item.state in ("verified", "flaky") for item in ours)
    body = [f"{i.rank}. {i.severity} {i.surface} {i.fingerprint} {i.title}" for i in ours[:TOP]]
    title = f"worklist changed: {len(ours)} open, {proven} proven"
    envelope = Envelope(
        source=SOURCE, sev="meta", surface="triage", fp=key(items), title=title, body="\n".join(body)
    )
    return write(envelope)
