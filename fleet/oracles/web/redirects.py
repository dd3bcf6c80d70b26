"""Oracle of redirects: an input never chooses a foreign host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.web.variations import below, varied
from fleet.severity import Severity

BACK = ("header", "referer")
"""Where one came from: a browser says that itself, and being sent back there does not mislead."""


def _asked(location: str) -> tuple[Exchange, ...]:
    answers = (("%2Fa", "/a"), ("https%3A%2F%2Fqa1.evil.test%2F", location))
    return tuple(
        Exchange("qa_fetch", {"url": "{site}/go?to=" + sent}, {"status": 302, "location": to})
        for sent, to in answers
    )


@oracle(
    id="open-redirect",
    says="an input never chooses a foreign host that the platform redirects to",
    severity=Severity.MEDIUM,
    surface="security",
    judges=("page",),
    example=_asked("//qa1.evil.test/"),
    control=_asked("/"),
)
def open_redirect(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """The foreign host that the value names is where the answer leads; without the value it does not."""
    found = (varied(seen) or below(seen)) if len(seen) > 1 else None
    asked = _foreign_host(facts.actual(found.values[-1])) if found else ""
    own = {urlsplit(url).hostname for url in (facts.site, facts.proxy) if url}
    if found is None or not asked or asked in own or found.place == BACK:
        return
    last, first = (_leads(each) for each in (seen[-1], seen[0]))
    if last == asked and first != asked:
        yield observed(
            f"{found.shown(seen[-1])}: it leads to {asked}",
            f"redirect {found.spot(seen[-1])}",
            "location",
            led=(0,),
            where=found.parts(seen[-1]),
        )


_NO_HOST = re.compile(r"[\^\s<>|%]")
"""What a browser takes in no host (WHATWG URL, 3.2, forbidden host code points)."""


def _leads(call: Exchange) -> str:
    """The host to which an answer redirects, as a browser reads it; "" for the platform itself."""
    to = str(call.result.get("location", "")) if 300 <= int(call.result.get("status", 0)) < 400 else ""
    if not to:
        refresh = str(dict(call.result.get("headers", {})).get("refresh", ""))
        to = refresh.partition("=")[2].strip("'\" ") if "url=" in refresh.lower() else ""
    return _foreign_host(to)


def _foreign_host(url: str) -> str:
    """The host of a URL that leaves the page's own, as a browser reads it (backslashes are slashes)."""
    text = re.sub(r"[\t\r\n]", "", url.strip()).replace("\\", "/")
    text = re.sub(r"(?i)^(https?):/{0,}", r"\1://", text)
    text = re.sub(r"^/{2,}", "//", text)
    try:
        host = (urlsplit(text).hostname or "") if text.startswith(("http", "//")) else ""
    except ValueError:
        return ""
    return "" if _NO_HOST.search(host) else host
