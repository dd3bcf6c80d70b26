"""Which items a command lists: filters that combine, each with its valid values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from fleet.clock import iso
from fleet.errors import UsageError
from fleet.severity import WEIGHTS
from fleet.text import clean
from fleet.triage.items.life import OPEN
from fleet.triage.items.rank import SURFACES
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.digest import FIXED, is_new

STATES: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "open": lambda state: state in OPEN,
        "fixed": lambda state: state in FIXED,
        "dismissed": lambda state: state == "dismissed",
        "snoozed": lambda state: state == "snoozed",
        "all": lambda _: True,
    }
)
DAY = "1d"
"""How far `--new` and a digest look back unless a moment is given."""
_BACK = re.compile(r"([1-9][0-9]{0,5})([smhdw])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`since` is ISO or "" for any time; `new` keeps what was first seen or came back since then.

    Without `new`, `since` keeps what changed its state or was seen since then. Every word of `text` must
    stand in the title, surface, persona, severity or a fingerprint of an item, in any case.
    """

    state: str = "open"
    new: bool = False
    since: str = ""
    severities: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    text: str = ""

    def __post_init__(self) -> None:
        """UsageError for a state or severity that does not exist."""
        _known("--state", (self.state,), STATES)
        _known("--severity", self.severities, WEIGHTS)

    def of(self, items: Iterable[WorklistItem]) -> tuple[WorklistItem, ...]:
        """The chosen items, in their order; UsageError for a surface that no item has or could have."""
        items = tuple(items)
        if self.surfaces:
            _known("--surface", self.surfaces, sorted({*SURFACES, *(item.surface for item in items)}))
        return tuple(item for item in items if self._has(item))

    def _has(self, item: WorklistItem) -> bool:
        lately = is_new(item, self.since) if self.new else max(item.since, item.last_seen) >= self.since
        return (
            STATES[self.state](item.state)
            and (not self.severities or item.severity in self.severities)
            and (not self.surfaces or item.surface in self.surfaces)
            and lately
            and (not self.text or self._says(item))
        )

    def _says(self, item: WorklistItem) -> bool:
        shown = (item.title, item.surface, item.source, item.severity, item.fingerprint, *item.names)
        text = " ".join(shown).casefold()
        return all(word in text for word in self.text.casefold().split())


def moment(text: str, now: datetime, *, option: str = "--since") -> str:
    """`6h`, `1d`, `2w` back, a date or an ISO time, as an ISO time in UTC; UsageError for anything else."""
    if found := _BACK.fullmatch(text):
        try:
            return iso(now - timedelta(seconds=int(found[1]) * _UNITS[found[2]]))
        except OverflowError:
            return iso(datetime.min.replace(tzinfo=UTC))
    try:
        at = datetime.fromisoformat(text)
        return iso(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        remedy = "write a number and s, m, h, d or w (6h, 1d), or a date such as 2026-11-21"
        raise UsageError(f"{option}: {clean(text, 40)!r} is not a time", remedy=remedy) from None


def _known(option: str, given: Sequence[str], valid: Iterable[str]) -> None:
    names = list(valid)
    for value in given:
        if value not in names:
            shown = ", ".join(clean(name, 40) for name in names)
            raise UsageError(f"{option}: unknown value {clean(value, 40)!r}", remedy=f"choose one of {shown}")
