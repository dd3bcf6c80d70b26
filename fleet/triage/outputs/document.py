"""What every output says besides the items: how far the log was read, and what is not in the list. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from fleet.clock import minute
from fleet.findings.kinds import kind_titled
from fleet.text import counted
from fleet.triage.items.life import OPEN
from fleet.triage.items.unproven import UnprovenCandidate
from fleet.triage.items.worklist import SCHEMA, WorklistItem, digest


@dataclass(frozen=True, slots=True)
class LogPosition:
    """How far the log was read: `entries` of one epoch, the last one in the block of the time `at` (ISO)."""

    epoch: int = 0
    entries: int = 0
    at: str = ""


@dataclass(frozen=True, slots=True)
class AuditRate:
    """Dismissed and low items that were drawn at random and proven again, and how many of them do not hold.

    `overturned_items` are those that are dismissed now (fingerprints): the person who did should look again.
    """

    drawn: int = 0
    overturned: int = 0
    overturned_items: tuple[str, ...] = ()


NO_AUDIT = AuditRate()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOutage:
    """An open outage; `posted` tells whether it is on the log. `since` is ISO 8601."""

    platform: str
    fingerprint: str
    severity: str
    since: str
    title: str
    targets: tuple[str, ...] = ()
    posted: bool = False


@dataclass(frozen=True, kw_only=True)
class WorklistHeader:
    """`strangers_left`: entries of strangers beyond what one sender may have on the list.

    `proving`, `unproven` and `outages` are from the journal, everything else from the log.
    """

    platform: str = ""
    as_of: LogPosition = LogPosition()
    strangers_left: int = 0
    audit: AuditRate = AuditRate()
    proving: tuple[UnprovenCandidate, ...] = ()
    unproven: tuple[UnprovenCandidate, ...] = ()
    outages: tuple[ListedOutage, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorklistDocument(WorklistHeader):
    """The whole of `worklist.json`: `items` are open, best first; `closed` are the others.

    `schema` changes when a field changes its meaning or goes; new fields do not change it. `digest` is the
    SHA-256 of all items.
    """

    schema: int = SCHEMA
    digest: str = ""
    items: tuple[WorklistItem, ...] = ()
    closed: tuple[WorklistItem, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[WorklistItem]]:
        """All items by each of their fingerprints."""
        found: dict[str, list[WorklistItem]] = {}
        for item in (*self.items, *self.closed):
            for name in {item.fingerprint, *item.names}:
                found.setdefault(name, []).append(item)
        return found

    @cached_property
    def severities(self) -> Mapping[str, int]:
        """Open items by severity."""
        return Counter(item.severity for item in self.items)

    @cached_property
    def own_severities(self) -> Mapping[str, int]:
        """Our own open items by severity."""
        return Counter(item.severity for item in self.items if item.trusted)

    @cached_property
    def own_surfaces(self) -> frozenset[str]:
        """Surfaces of our own open items."""
        return frozenset(item.surface for item in self.items if item.trusted)

    @cached_property
    def own_kinds(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Our own items by the kind that their titles name: the open ones, and the closed ones."""
        return by_kind(self.items), by_kind(self.closed)

    @cached_property
    def _by_change(self) -> tuple[Sequence[str], Sequence[tuple[int, WorklistItem]]]:
        every = list(enumerate((*self.items, *self.closed)))
        every.sort(key=lambda one: max(one[1].first_seen, one[1].since))
        return [max(one.first_seen, one.since) for _, one in every], every

    def changed(self, since: str) -> list[WorklistItem]:
        """The items, in their order, that were first seen or changed their state since then (ISO)."""
        times, every = self._by_change
        late = every[bisect_left(times, since) :]
        return [item for _, item in sorted(late, key=lambda one: one[0])]


def document(items: Sequence[WorklistItem], header: WorklistHeader, known: str = "") -> WorklistDocument:
    """The items with their header, the open ones separate from the others. `known` is their digest, if it
    was computed before."""
    return WorklistDocument(
        **{one.name: getattr(header, one.name) for one in fields(WorklistHeader)},
        digest=known or digest(items),
        items=opened(items),
        closed=closed(items),
    )


def by_kind(items: Iterable[WorklistItem]) -> Mapping[str, int]:
    """How many of our own items have a title that names each kind, by the kind's id."""
    return Counter(kind.id for one in items if one.trusted and (kind := kind_titled(one.title)))


def opened(items: Sequence[WorklistItem]) -> tuple[WorklistItem, ...]:
    """The open items, in their order."""
    return tuple(item for item in items if item.state in OPEN)


def closed(items: Sequence[WorklistItem]) -> tuple[WorklistItem, ...]:
    """The others."""
    return tuple(item for item in items if item.state not in OPEN)


def proven(items: Sequence[WorklistItem]) -> int:
    """How many of the items are proven, in every fresh jail or in some."""
    return sum(item.proof in ("confirmed", "flaky") for item in items)


def standing(item: WorklistItem) -> str:
    """The state of an item and when it ends, how little it is proven where the state does not say that, and
    of one of ours that is open whether it is stale."""
    until = f" until {item.until[:10]}" if item.until and item.state in ("dismissed", "snoozed") else ""
    said = item.proof == "confirmed" or item.proof == item.state
    words = [item.state + until] if said else [item.state + until, item.proof]
    return ", ".join(words + ["stale"] * (item.stale and item.trusted and item.state in OPEN))


def audited(audit: AuditRate) -> str:
    """How many dismissed and low items were proven again, and how many of them do not hold, in words."""
    share = f" ({audit.overturned / audit.drawn:.0%})" if audit.overturned else ""
    drawn = counted(audit.drawn, "dismissed or low item")
    dismissed = (
        f"; dismissed, and there: {', '.join(audit.overturned_items)}" if audit.overturned_items else ""
    )
    return f"{drawn} proven again, {audit.overturned} overturned{share}{dismissed}"


def as_of(position: LogPosition) -> str:
    """The age of a list in words: which entry of the log it ends with."""
    if not position.entries:
        return f"as of an empty log{anew(position.epoch)}"
    return f"as of log entry {position.entries - 1} ({minute(position.at)} UTC){anew(position.epoch)}"


def anew(epoch: int) -> str:
    """What a place on the log says of its epoch: nothing, unless the log was cleared and began anew."""
    return f", epoch {epoch}: the log began anew" if epoch else ""


def sentence(position: LogPosition) -> str:
    """The same as the beginning of a sentence."""
    text = as_of(position)
    return text[0].upper() + text[1:]


def remedy_of(item: WorklistItem) -> str:
    """How what it is an example of is usually fixed; "" where nobody knows, or a stranger says what it is."""
    kind = kind_titled(item.title) if item.trusted else None
    return kind.fix if kind else ""
