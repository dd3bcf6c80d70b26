"""Oracle of foreign origins: which pages may read an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fleet.oracles.echoes import route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

_LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")


def _asked(*answers: tuple[str, str]) -> tuple[Exchange, ...]:
    return tuple(
        Exchange("qa_fetch", {"url": "{site}/x"} | ({"origin": sent} if sent else {}), {"allow_origin": got})
        for sent, got in answers
    )


_LIKE: Any = "http://localhost.evil.test"


@oracle(
    id="foreign-origin",
    says="a foreign origin is never allowed by its name",
    severity=Severity.MEDIUM,
    surface="security",
    judges=("page",),
    example=_asked(("", ""), ("https://qa1.evil.test", ""), (_LIKE, _LIKE)),
    control=_asked(
        ("", ""), ("https://qa1.evil.test", ""), ("http://localhost:8080", "http://localhost:8080")
    ),
)
def foreign_origin(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """[no origin, maybe a stranger's origin, ..., a foreign origin]: the last one is allowed by name.

    An answer that allows everyone without being asked means it, unless it permits credentials.
    """
    last, first = seen[-1], seen[0]
    same = all(
        one.tool == "qa_fetch" and {**one.args, "origin": 0} == {**first.args, "origin": 0} for one in seen
    )
    origin = str(last.args.get("origin", ""))
    if len(seen) < 2 or not origin or not same or first.args.get("origin"):
        return
    allowed, headers = str(last.result.get("allow_origin", "")), dict(last.result.get("headers", {}))
    trusting = str(headers.get("access-control-allow-credentials", "")).lower() == "true"
    if allowed != origin or not _is_foreign(origin, facts):
        return
    if first.result.get("allow_origin") and not trusting:
        return
    strangers = [
        at for at, call in enumerate(seen[1:-1], 1) if call.args.get("origin") and _unrelated(call, facts)
    ]
    taken = [at for at in strangers if seen[at].result.get("allow_origin") == seen[at].args["origin"]]
    if taken:
        return  # said at the stranger's own answer
    by_rule = bool(strangers) and not _unrelated(last, facts)
    severity: Severity = Severity.HIGH if trusting else Severity.MEDIUM
    like = ", like its own" if by_rule else ""
    with_ = " with credentials" if trusting else ""
    title = f"GET {route(last.args)} allows {origin}{with_}{like}"
    page = urlsplit(route(last.args))
    where = f"{page.scheme}{page.netloc}{page.path.partition('/')[0]}"
    key = f"origin {where} {'null' if origin == 'null' else 'like' if by_rule else 'any'}"
    led = (0, *strangers[:1])
    yield observed(title, key, "allow_origin", severity=severity, led=led)


def _unrelated(call: Exchange, facts: Facts) -> bool:
    """Whether the origin has nothing of the platform's own: no check but a missing one takes it."""
    origin = str(call.args.get("origin", ""))
    return origin != "null" and not any(
        part in origin
        for host in _hosts(facts)
        for part in (host, host.replace(".", "-"), host.partition(".")[0])
    )


def _is_foreign(origin: str, facts: Facts) -> bool:
    """Whether the origin is a stranger's for certain; any port of the platform's own hosts may be its own."""
    if origin == "null":
        return True
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    if not host or host in _hosts(facts) or host.endswith(".localhost"):
        return False
    own = [one for one in _hosts(facts) if not _is_address(one) and one != "localhost"]
    return not any(host.endswith(f".{one}") for one in own)


def _hosts(facts: Facts) -> tuple[str, ...]:
    urls = (facts.site, facts.proxy, facts.face.replace("{name}.", ""))
    return (*_LOCAL, *(host for url in urls if (host := urlsplit(url).hostname)))


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
