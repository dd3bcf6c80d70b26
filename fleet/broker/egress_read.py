"""Reading a run's record of egress back, and its sums by host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fleet.broker.egress_record import CUT, EGRESS, REQUEST, EgressRecord
from fleet.events.chain import unlinked
from fleet.events.model import HostEgress
from fleet.events.recorded import lines

OUT_OF_SCOPE = frozenset(
    {"host", "never", "address", "dnssec", "drift", "spelling", "target", "host-mismatch", "tunnel"}
)
"""Rules that refuse a destination."""
_TROUBLE = frozenset({"", CUT, "unreachable", "timeout", "busy", "bytes", "too-large"})
"""What ends a request that no rule forbids."""
MOST_HOSTS, OTHERS = 50, "others"
"""Hosts that are counted by name: a jail may ask for any number of them, and be refused."""


def refused(rule: str) -> bool:
    """Whether a request with this rule was forbidden, as opposed to one that met trouble."""
    return rule not in _TROUBLE


def read_egress(folder: Path) -> Iterator[dict[str, Any]]:
    """The requests of a run, in the order in which they were over; none without a record."""
    for line in lines(folder / EGRESS):
        with suppress(ValueError):
            found = json.loads(unlinked(line.text))
            if (
                isinstance(found, dict)
                and isinstance(found.get("n"), int)
                and found.get("event_type") != REQUEST
            ):
                yield found


def count_request(hosts: dict[str, HostEgress], record: EgressRecord) -> None:
    """Add one request to the sums by host."""
    host = record.host if record.host in hosts or len(hosts) < MOST_HOSTS else OTHERS
    before = hosts.get(host, HostEgress())
    hosts[host] = HostEgress(
        requests=before.requests + 1,
        refused=before.refused + refused(record.rule),
        sent=before.sent + record.sent,
        received=before.received + record.received,
    )


def by_host(folder: Path) -> dict[str, HostEgress]:
    """The sums of a run by host, from its record."""
    hosts: dict[str, HostEgress] = {}
    for one in read_egress(folder):
        known = {key: one[key] for key in ("verb", "host", "status", "rule", "sent", "received")}
        count_request(hosts, EgressRecord(what="", **known))
    return hosts
