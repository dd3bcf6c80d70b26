"""What the watch of contracts tells: changes of a posture, as the journal keeps them.

Apart from the watch itself, so that who only shows them loads neither a chain's library nor a watch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from fleet.clock import iso
from fleet.triggers.model import FactStore

RING = 512
"""Tellings that the journal keeps."""
NONE = "none"
UNREADABLE = "unreadable"
"""Value of a part that was never read: the node answers its view with an error of its own."""
INVARIANT = "invariant"
KEY = "triggers.posture."
"""Prefix of the journal's key of the state; the platform's name follows."""
TOLD = "posture."
"""Prefix of the journal's tellings; platform and number in the ring follow."""
SNAPSHOT = "posture-parts."
"""Prefix of the whole posture after each of them, with the same end."""
EXPECTED = "posture-expected."
"""Prefix of the journal's key of what a person announced; the platform's name follows."""

Judged = Literal["announced", "silent", "broken", "restored"]


@dataclass(frozen=True, slots=True)
class PostureChange:
    """One part of a contract; "" for a value that was not, or is no more. `by` is who announced it."""

    part: str
    before: str
    after: str
    judged: Judged = "silent"
    by: str = ""

    @property
    def name(self) -> str:
        """What of the contract changed, such as `owner`."""
        return name_of(self.part)

    def __str__(self) -> str:
        how = f"{self.judged} by {self.by}" if self.by else self.judged
        return f"{how}: {self.part}: {self.before or NONE} → {self.after or NONE}"


@dataclass(frozen=True, slots=True)
class Telling:
    """What is reported once: the changes of one block, or that a reorganisation took them back (`undoes` is
    then the number of what was reported). `parts` is the whole posture after it."""

    seq: int
    block: int
    hash: str
    changes: tuple[PostureChange, ...]
    undoes: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """Distinguishes it from every other, also on another chain."""
        said = json.dumps([self.seq, self.hash, [asdict(one) for one in self.changes], self.undoes])
        return hashlib.sha256(said.encode()).hexdigest()[:12]


def telling_of(raw: Mapping[str, Any]) -> Telling:
    """As `asdict` wrote it."""
    return Telling(**{**raw, "changes": tuple(PostureChange(**one) for one in raw["changes"])})


def name_of(part: str) -> str:
    """`owner` of `0x… owner`, and `invariant` of one."""
    first, second, *_ = part.split(" ")
    return first if first == INVARIANT else second


async def expected(facts: FactStore, platform: str, now: datetime) -> list[dict[str, str]]:
    """What a person announced and is still to come: `part`, `why`, `until`."""
    rows: list[dict[str, str]] = json.loads(await facts.get(EXPECTED + platform) or "[]")
    return [one for one in rows if one["until"] > iso(now)]


def tellings(facts: Mapping[str, str]) -> list[tuple[str, Telling]]:
    """The journal's tellings by their keys and values, oldest first, with when each was seen (ISO)."""
    found = []
    for text in facts.values():
        raw = json.loads(text)
        raw.pop("mark")
        found.append((raw.pop("at"), telling_of(raw)))
    return sorted(found, key=lambda pair: pair[1].seq)
