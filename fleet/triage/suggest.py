"""Pairs of items that may be the same defect: suggestions for a person, never a merge.

Similar texts suggest a pair; a configured model judges it, once: the verdicts are one fact of the journal.
Of a model that fails, answers too late or off the schema there is no verdict.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import anyio

from fleet.drivers.model.pairs import AskedPair, PairVerdict
from fleet.text import line
from fleet.triage.items.worklist import ItemLink, WorklistItem
from fleet.triggers.model import FactStore

KEY = "suggested:"
"""Key of the verdicts in the journal, followed by the platform."""
AT_ONCE = 8
"""Most pairs in one question."""
KEPT = 2_000
"""Most verdicts kept; the oldest are forgotten, and may be asked again."""
TEXT_CHARS, WHY_CHARS = 600, 200
WAIT_S = 60.0
_LOG = logging.getLogger("fleet.triage")


class Suggester(Protocol):
    """Judges pairs: one verdict for each, in order. May raise anything."""

    async def ask(self, pairs: Sequence[AskedPair]) -> Sequence[PairVerdict]: ...


async def suggested(
    pairs: Sequence[AskedPair], suggester: Suggester | None, journal: FactStore, platform: str
) -> dict[str, tuple[ItemLink, ...]]:
    """Suggested links by item. At most `AT_ONCE` new pairs are asked about; the others wait."""
    known = _read(await journal.get(KEY + platform))
    wanted = {pair.key: pair for pair in pairs if pair.a != pair.b}
    new = [
        AskedPair(one.a, one.b, line(one.text_a, TEXT_CHARS), line(one.text_b, TEXT_CHARS))
        for key, one in wanted.items()
        if key not in known
    ][:AT_ONCE]
    if new and suggester is not None:
        for pair, verdict in zip(new, await _answers(suggester, new), strict=False):
            known[pair.key] = verdict
        kept = dict(list(known.items())[-KEPT:])
        await journal.put(KEY + platform, json.dumps({k: [v.same, v.why] for k, v in kept.items()}))
    links: dict[str, tuple[ItemLink, ...]] = {}
    for key, pair in wanted.items():
        found, by = known.get(key), "model"
        if found is None and pair.why:
            found, by = PairVerdict(True, pair.why), "similarity"
        if found is not None and found.same:
            for mine, other in ((pair.a, pair.b), (pair.b, pair.a)):
                made = ItemLink(kind="duplicate", other=other, why=found.why, by=by, suggested=True)
                links[mine] = (*links.get(mine, ()), made)
    return links


def with_links(item: WorklistItem, found: Mapping[str, tuple[ItemLink, ...]]) -> WorklistItem:
    """The item with what is suggested for any of its names, but not to itself."""
    names = {item.fingerprint, *item.names}
    links = [link for name in sorted(names) for link in found.get(name, ()) if link.other not in names]
    return replace(item, links=(*item.links, *links)) if links else item


async def _answers(suggester: Suggester, pairs: Sequence[AskedPair]) -> Sequence[PairVerdict]:
    """Its verdicts, cleaned; none at all where one is missing or it failed."""
    try:
        with anyio.fail_after(WAIT_S):
            found = list(await suggester.ask(pairs))
    except Exception as error:  # whatever a model, its SDK or its endpoint does: no suggestion
        _LOG.info("no suggestions: %s", line(str(error) or type(error).__name__))
        return ()
    if len(found) != len(pairs):
        return ()
    return [PairVerdict(one.same, line(one.why, WHY_CHARS)) for one in found]


def _read(text: str | None) -> dict[str, PairVerdict]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, Mapping):
        return {}
    return {
        str(key): PairVerdict(value[0], value[1])
        for key, value in found.items()
        if isinstance(value, list) and [type(one) for one in value] == [bool, str]
    }
