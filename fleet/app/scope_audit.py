"""What left for a platform, held against its profile: was anything asked that is not in scope?

An independent look: the records of egress of each run are read again, with the chain that vouches for them,
and each request that left is judged by the profile as it is now, not by what was decided then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleet.broker.egress_policy import EgressPolicy, Origin, parse_authority
from fleet.broker.egress_read import read_egress, refused
from fleet.broker.egress_record import EGRESS
from fleet.broker.rpc_policy import Denied
from fleet.config import Platform
from fleet.events.chain import verify
from fleet.runs.call.sealed import sealed_at_end
from fleet.store.journal import Journal
from fleet.text import clean

SHOWN = 50
"""Requests out of scope that are named; all are counted."""
_SERVICES = frozenset({"RPC", "TX", "AUTH"})


@dataclass(slots=True)
class ScopeAudit:
    """`requests` left, `outside` of them out of scope; `refused` were not sent, by rule. `unproven` are runs
    whose record is missing or does not hold, with why."""

    requests: int = 0
    outside: int = 0
    named: list[dict[str, str]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    unproven: dict[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """With the score: the share in percent of what left that was in scope, None where nothing left or a
        record does not hold."""
        known = self.requests and not self.unproven
        score = round(100 * (self.requests - self.outside) / self.requests, 2) if known else None
        return asdict(self) | {"score": score}


async def audit_scope(
    state: Path, journal: Journal, profile: Platform, runs: Sequence[str]
) -> dict[str, Any]:
    """The audit of these runs, as data."""
    audit, policy = ScopeAudit(), EgressPolicy.of(profile)
    for run in runs:
        folder = state / "runs" / run
        if why := await _unproven(folder, journal, run):
            audit.unproven[run] = why
        for row in read_egress(folder):
            if refused(rule := str(row.get("rule", ""))):
                audit.refused[rule] = audit.refused.get(rule, 0) + 1
                continue
            audit.requests += 1
            if why := outside(row, policy, profile):
                audit.outside += 1
                if len(audit.named) < SHOWN:
                    what = {"run": run, "at": str(row.get("at")), "host": str(row.get("host")), "why": why}
                    audit.named.append({key: clean(text, 200) for key, text in what.items()})
    return audit.data()


async def _unproven(folder: Path, journal: Journal, run: str) -> str:
    """Why the record of a run proves nothing; "" when it holds, or the run asked for nothing."""
    sealed = (await sealed_at_end(journal, run)).get(EGRESS)
    try:
        return verify(folder / EGRESS, sealed=sealed).fault
    except FileNotFoundError:
        return "its record is not here" if sealed is not None and sealed.lines else ""
    except OSError as error:
        return f"its record cannot be read: {error.strerror}"


def outside(row: Mapping[str, Any], policy: EgressPolicy, profile: Platform) -> str:
    """Why a request that left is out of scope; "" when it is not."""
    verb, host, path = (str(row.get(key, "")) for key in ("verb", "host", "path"))
    with suppress(ValueError):
        at = datetime.fromisoformat(str(row.get("at")))
        if verb not in _SERVICES and not profile.schedule.is_open(at):
            return "outside of the windows of the schedule"
    if verb in _SERVICES:
        node = urlsplit(profile.chain.rpc).netloc.rpartition("@")[2]
        return f"another node than {node}" if verb == "RPC" and host != node else ""
    origins = [one for one in _origins(host) if policy.lists(one)]
    if not origins:
        return "no host of the profile"
    if entry := policy.never_places.match(f"{origins[0].scheme}://{host}{path}"):
        return f"{entry} is on web.never"
    address = str(row.get("address", ""))
    if address and policy.ranges.networks and not policy.may_be_private(origins[0]):
        return "" if policy.ranges.holds(address) else f"{address} is outside of web.ranges"
    return ""


def _origins(host: str) -> Iterator[Origin]:
    for scheme in ("http", "https"):
        with suppress(Denied):
            yield parse_authority(host, scheme)
