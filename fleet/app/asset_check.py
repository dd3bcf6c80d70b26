"""Whether the scope is still what is there: each half hour, by what the operator's inventory prints.

What is new is named and not tested, since a scope has exact hosts; a host of the scope that is gone from the
inventory is left out from the next decision on (`steering.json`), until a person takes it in again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fleet.app.integrity import CannotLook, look_by
from fleet.broker.egress_policy import EgressPolicy
from fleet.clock import Clock, iso_ms
from fleet.config import FleetConfig, Platform
from fleet.gate.steering import Steering, read_steering, write_steering
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.call.sightings import SIGHTED
from fleet.store.journal import Journal
from fleet.text import line

ASSETS = "assets:"
"""Prefix of the fact with what the inventory printed last, by platform."""
MOST = 50


@dataclass(frozen=True, slots=True)
class ScopeDelta:
    """Hosts by what became of them since the last look; `changed` ones have another line."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    """In the inventory, and not in the scope."""
    left_out: tuple[str, ...] = ()
    """In the scope, and gone from the inventory: left out now."""

    def words(self) -> str:
        named = {
            "new": self.added,
            "gone": self.removed,
            "changed": self.changed,
            "not in scope, not tested": self.untested,
            "left out of the tests": self.left_out,
        }
        return "; ".join(f"{word}: {', '.join(hosts[:MOST])}" for word, hosts in named.items() if hosts)


async def revalidate(
    state: Path, config: FleetConfig, platform: Platform, journal: Journal, clock: Clock
) -> ScopeDelta | None:
    """Compare scope and inventory, and leave out what is gone; None without an inventory. What differs from
    the last look is in DECISIONS.md and told. CannotLook, OSError or ValueError where it cannot be asked."""
    if not (command := config.integrity.assets):
        return None
    now = {row.split()[0].lower(): row for row in await look_by(command, config.integrity.seconds)}
    if not now:
        raise CannotLook(f"{command[0]} prints no host")
    key = ASSETS + platform.name
    known = await journal.get(key)
    before: dict[str, str] = json.loads(known) if known else now
    policy = EgressPolicy.of(platform)
    scope = {one.host for one in policy.hosts}
    steering = read_steering(state)
    gone = sorted(host for host in scope if host not in now and host not in steering.leave)
    delta = ScopeDelta(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        changed=tuple(sorted(host for host in now.keys() & before.keys() if now[host] != before[host])),
        untested=tuple(sorted(now.keys() - scope)),
        left_out=tuple(gone),
    )
    if gone:
        leave = (*steering.leave, *gone)
        write_steering(state, Steering.model_validate(steering.model_dump() | {"leave": leave}))
    await journal.put(key, json.dumps(now))
    if delta.added or delta.removed or delta.changed or gone or known is None:
        await _record(state, platform, journal, clock, delta)
    return delta


async def _record(state: Path, platform: Platform, journal: Journal, clock: Clock, delta: ScopeDelta) -> None:
    said, at = line(delta.words() or "as before", 900), iso_ms(clock.now())
    one = Decision(
        f"the scope of {platform.name} beside its inventory",
        "test what is in both; what is new needs a person, what is gone is left out",
        said,
        "[integrity] assets",
        "a person takes it into the profile, or in again: fleet runs steer",
        charter="docs/operate.md, What the fleet may touch",
    )
    DecisionFile(state, clock).record(one, run="none", turn=0)
    told = json.dumps({"run": "", "at": at, "what": f"the inventory changed: {said}"})
    await journal.put(f"{SIGHTED}{platform.name}:fence:inventory {at}", told)
