"""Oracles of what a page refers to: a link of its own leads somewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urldefrag, urljoin, urlsplit

from fleet.oracles.echoes import OWN, family, route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.place import own
from fleet.severity import Severity

GONE = frozenset({404, 410})


def _linked(status: int) -> tuple[Exchange, ...]:
    page = {"status": 200, "links": ["/b", "https://elsewhere.test/"]}
    return (
        Exchange("qa_fetch", {"url": "{site}/a"}, page),
        Exchange("qa_fetch", {"url": "{site}/b"}, {"status": status}),
    )


@oracle(
    id="dead-link",
    says="a link of a page to the platform itself leads to something",
    severity=Severity.LOW,
    surface="ux",
    judges=("page",),
    given=Facts(site="http://h"),
    example=_linked(404),
    control=_linked(200),
)
def dead_link(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """[a page, the target of one of its links]; pages of a run's own names may link where they like.

    Links that say no folder depend on where their page stands: those that lead nowhere are one defect of it.
    """
    last = seen[-1]
    if last.result.get("status") not in GONE or not _only_looks(last):
        return
    for at, page in enumerate(seen[:-1]):
        if page.tool != last.tool or page.result.get("status") != 200 or not _only_looks(page):
            continue
        if "?" in str(page.args.get("url", "")) or "links" in page.result.get("unjudged", ()):
            continue
        here, target = (facts.actual(str(one.args.get("url", ""))) for one in (page, last))
        links = {urldefrag(urljoin(here, link))[0]: link for link in map(str, page.result.get("links", ()))}
        if (written := links.get(urldefrag(target)[0])) is not None:
            title = f"{route(page.args)} links to {route(last.args)}, which answers {last.result['status']}"
            key = f"dead-link {family(page.args)} {family(last.args)}"
            relative = not written.startswith("/") and not urlsplit(written).scheme
            where = {"link": f"relative, of {own(family(page.args), facts)}"} if relative else None
            yield observed(title, key, "status", led=(at,), where=where)
            return


def _only_looks(call: Exchange) -> bool:
    """Whether a call only looks at a page that a visitor would see."""
    return set(call.args) == {"url"} and not OWN.search(str(call.args["url"]))
