"""Oracle of facts across sources: two answers of a platform that state the same fact differently. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from fleet.oracles.documents.statements import Statement, statements
from fleet.oracles.echoes import OWN, route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.texts import is_html
from fleet.severity import Severity
from fleet.text import line

_GUIDES = frozenset(
    (
        *("api", "docs", "doc", "help", "guide", "guides", ".well-known", "v1", "about", "legal", "handbook"),
        *("manual", "documentation", "developers", "reference", "support", "policies", "faq"),
    )
)
"""Folders whose documents speak for the platform, not for one thing of many."""
_ROOT = re.compile(r"v\d{1,2}|rest|svc|services?|data|rpc|public")
"""Further names of the folder that all routes of an API are below."""
_WIDE = re.compile(r"(?:terms|conditions|legal|policy|faq|health)(?:\.\w{2,5})?")
"""The name of a page that states what holds of the whole platform, wherever it is."""
_GENERAL = re.compile(
    r"(?:index|readme|overview|start|quick-?start|intro(?:duction)?|general|rules|limits|quotas|pric(?:es|ing)|fees)"
    r"(?:\.\w{2,5})?"
)
"""The same within a guide, where each other page has a subject of its own."""


def _asked(first: str, second: str) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(
            "qa_fetch", {"url": "{site}/" + path}, {"status": 200, "content_type": "text/plain", "text": text}
        )
        for path, text in (("guide.txt", first), ("manual.md", second))
    )


@oracle(
    id="disagreement",
    says="two documents of a platform state one fact alike",
    severity=Severity.LOW,
    surface="ux",
    judges=("page",),
    example=_asked("A message costs 0.01 credits.", "Each message costs 1 credit."),
    control=_asked("A message costs 0.01 credits.", "Each message costs 0.010 credits."),
)
def disagreement(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """[sources ..., a source]: the last one against each earlier one, and against the profile."""
    last = seen[-1]
    if not _is_source(last):
        return
    mine, profile = statements(last.result), _profile(facts)
    known = {one.fact for one in profile.values()}  # each source is compared with the profile alone
    reported: set[tuple[str, ...]] = set()
    for at, other in enumerate(seen[:-1]):
        if not _is_source(other) or route(other.args) == route(last.args) or not _comparable(other, last):
            continue
        theirs = statements(other.result)
        wide = any(_WIDE.fullmatch(page) or _GENERAL.fullmatch(page) for page in (_page(other), _page(last)))
        # two pages of one guide: `a listing` is another one in each, unless one of them speaks of all
        apart = bool(_folder(last)) and _folder(other) == _folder(last) and not wide
        for key in sorted(mine.keys() & theirs.keys()):
            one, two = theirs[key], mine[key]
            drift = (one.unit, one.value, two.value)  # the same change in another sentence is the same defect
            if apart and one.fact.startswith("sentence "):
                continue
            if one.value == two.value or {drift, (one.fact,)} & reported or one.fact in known:
                continue
            reported |= {drift, (one.fact,)}
            yield _observed(route(other.args), one, route(last.args), two, (at,))
    for key, value in profile.items():
        if key in mine and mine[key].value != value.value:
            yield _observed("the profile", value, route(last.args), mine[key], ())


def _observed(where: str, one: Statement, there: str, two: Statement, led: tuple[int, ...]) -> Observation:
    what = line(one.fact, 40) if not one.fact.startswith("sentence ") else "one sentence"
    title = f"{what} is {line(one.shown, 50)} in {where}, {line(two.shown, 50)} in {there}"
    return observed(title, f"disagree {one.fact[:120]}", "text", led=led, where={"fact": one.fact[:120]})


def _profile(facts: Facts) -> dict[str, Statement]:
    known = {}
    if facts.chain_id:
        said = str(facts.chain_id)
        known["chain id [number]"] = Statement("chain id", "number", said, said)
    if facts.diamond:
        known["address of the diamond [address]"] = Statement(
            "address of the diamond", "address", facts.diamond.lower(), facts.diamond
        )
    return known


def _is_source(call: Exchange) -> bool:
    """A document, a status page or an error that speaks for the platform: no name's page, no question."""
    url = str(call.args.get("url", ""))
    plain = "?" not in url and "{face:" not in url and "{name}" not in url and not OWN.search(url)
    return call.tool == "qa_fetch" and plain and int(call.result.get("status", 0)) in range(200, 300)


def _comparable(one: Exchange, other: Exchange) -> bool:
    """Two pages of one folder describe two of its things, unless the folder is a guide's."""
    folders = [_folder(each) for each in (one, other)]
    if any(len(folder) > 1 for folder in folders):
        return False
    named = [
        folder
        for folder, page in zip(folders, [_page(one), _page(other)], strict=True)
        if folder
        and not (folder[0].lower() in _GUIDES or _ROOT.fullmatch(folder[0].lower()) or _WIDE.fullmatch(page))
    ]
    guide = any(
        not is_html(each.result)
        or re.search(r"(?i)price|pricing|terms|docs|guide|help|faq|about", str(each.args["url"]))
        for each in (one, other)
    )
    return not named and bool(guide)


def _folder(call: Exchange) -> list[str]:
    return [part for part in urlsplit(route(call.args)).path.split("/") if part][1:-1]


def _page(call: Exchange) -> str:
    return route(call.args).rstrip("/").rpartition("/")[2].lower()
