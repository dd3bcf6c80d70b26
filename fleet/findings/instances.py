"""Instances of one defect: where else it was met, how often, first and last. Pure.

They are kept in the finding's row (`data["places"]`), stand in the entry on the log in one bounded line, and
are listed with the item:

    also at: {site}/a (3 times, 2026-11-27T13:05Z to 2026-11-27T13:09Z); {site}/b (2026-11-27T13:06Z); 4 more
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fleet.text import cut_bytes, line

MOST = 12
"""Instances that a finding and an item list at most, beside its own place."""
LINE_BYTES = 700
"""Limit of their line on the log: a third of an entry."""
WHERE_CHARS = 160
ALSO = "also at: "
_ONE = re.compile(
    r"(.{1,320}?) \((?:(\d{1,9}) times, )?(\d{4}-\d\d-\d\dT\d\d:\d\dZ)(?: to (\d{4}-\d\d-\d\dT\d\d:\d\dZ))?\)"
)
_MORE = re.compile(r"(\d{1,9}) more")


@dataclass(frozen=True, slots=True)
class Instance:
    """One place: a page without its values, or a call in a few words. Times are ISO 8601, to the minute."""

    where: str
    times: int = 1
    first: str = ""
    last: str = ""

    def __str__(self) -> str:
        often = f"{self.times} times, " if self.times > 1 else ""
        until = f" to {self.last}" if self.last > self.first else ""
        return f"{self.where} ({often}{self.first}{until})"


def minute(at: str) -> str:
    """An ISO time in UTC, cut to its minute."""
    return f"{at[:16]}Z" if at else ""


def recorded(data: Mapping[str, Any]) -> tuple[Instance, ...]:
    """The instances of a finding's row; an earlier version kept only where they were."""
    rows = data.get("places", ())
    return tuple(Instance(**one) if isinstance(one, Mapping) else Instance(str(one)) for one in rows)


def noted(data: Mapping[str, Any], where: str, at: str, own: str = "") -> list[dict[str, Any]]:
    """The row's `places` after one more sighting there, without its `own`; beyond `MOST` none is added."""
    known = {one.where: one for one in recorded(data)}
    where, at = line(where, WHERE_CHARS).replace(";", ","), minute(at)
    if where not in known and len(known) >= MOST:
        return [asdict(one) for one in known.values()]
    known = merged((*known.values(), Instance(where, 1, at, at)))
    return [asdict(one) for one in known.values() if one.where != own]


def merged(found: Iterable[Instance]) -> dict[str, Instance]:
    """By place, in order of first mention; the times of several mentions are added."""
    made: dict[str, Instance] = {}
    for one in found:
        before = made.get(one.where)
        if before is None:
            made[one.where] = one
            continue
        firsts = [text for text in (before.first, one.first) if text]
        last = max(before.last, one.last)
        made[one.where] = Instance(one.where, before.times + one.times, min(firsts, default=""), last)
    return made


def written(found: Iterable[Instance]) -> str:
    """The line of an entry; "" for none. What does not fit is counted."""
    parts, size, left = [], len(ALSO) + 16, 0
    for one in found:
        text = str(one)
        size += len(text.encode()) + 2
        if size > LINE_BYTES or not one.first:
            left += 1
        else:
            parts.append(text)
    parts += [f"{left} more"] * bool(left)
    return ALSO + "; ".join(parts) if parts else ""


def read_line(text: str) -> tuple[tuple[Instance, ...], int] | None:
    """The instances of such a line, and how many more there are; None for any other line."""
    if not text.startswith(ALSO):
        return None
    found, more = [], 0
    for part in cut_bytes(text, LINE_BYTES).removeprefix(ALSO).split("; "):
        if hit := _ONE.fullmatch(part):
            found.append(Instance(line(hit[1], WHERE_CHARS), int(hit[2] or 1), hit[3], hit[4] or hit[3]))
        elif hit := _MORE.fullmatch(part):
            more = int(hit[1])
        else:
            return None
    return tuple(found[:MOST]), more


def spread(also: Sequence[Instance], more: int = 0) -> str:
    """In how many places one cause shows, its own place included: `on 7 pages`; "" for one."""
    count = 1 + len(also) + more
    paged = all(one.where.startswith(("{", "http://", "https://")) for one in also)
    return "" if count == 1 else f"on {count} pages" if paged else f"in {count} places"
