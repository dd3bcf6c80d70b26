"""Oracles of one page: what any answer over HTTP must not contain. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting, template
from fleet.oracles import traces
from fleet.oracles.model import Exchange, Facts, Observation, Oracle
from fleet.oracles.spoken import gave, gave_key, route
from fleet.personas.model import Severity
from fleet.text import line

ELSEWHERE = frozenset({501, 502, 503, 504, 507})
"""Server statuses that do not blame the page: not offered, a gateway's outage, a full disk."""
PLAIN = 2_000
"""Characters: a longer text of status 200 may well be a document about errors."""


def _server_error(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status = last.result.get("status", 0)
    if not isinstance(status, int) or status < 500 or status in ELSEWHERE:
        return
    title = f"{last.asked} answers {status}"
    sighting = Sighting(title, f"server-error {route(last.args)} {status}", whole=True)
    yield Observation(sighting, frozenset({"status"}))


def _secret(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """A private key in a public answer; except in a page of a name that a run minted, where the driver may
    put one."""
    last = seen[-1]
    if "private-key" not in last.result.get("secrets", ()) or gave_key(last.args):
        return
    key = f"secret {route(last.args)} private-key"
    yield Observation(Sighting(f"{last.asked} shows a private key", key, whole=True), frozenset({"secrets"}))


def _trace(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status, called = int(last.result.get("status", 0)), "reply" in last.kinds
    text = "\n".join(str(last.result.get(name, "")) for name in (("error", "reply") if called else ("text",)))
    html = "html" in str(last.result.get("content_type", ""))
    if status < 400 and (called or html or len(text) >= PLAIN):
        return
    found = traces.find(text)
    if found is None or gave(last.args, found.words):
        return
    mild = found.kind == "an operating-system error" and status < 500
    severity: Severity = "low" if mild else "medium"
    title = f"{last.asked} answers {status} with {found.kind}: {line(found.words, 80)}"
    key = f"trace {'call' if called else route(last.args)} {found.kind} {template(found.words)}"
    fields = frozenset({"text", "error", "reply"})
    yield Observation(Sighting(title, key, whole=True), fields, severity=severity)


def _page(**result: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_fetch", {"url": "{site}/x"}, result),)


_TRACEBACK = "Traceback (most recent call last):\n  File x"

ORACLES = (
    Oracle(
        id="trace",
        says="an answer never shows a stack trace, a panic, or an error of the system or a database",
        severity="medium",
        surface="ux",
        reference="CWE-209",
        judges=("page", "reply"),
        judge=_trace,
        example=_page(status=500, text=_TRACEBACK),
        control=_page(status=404, text="there is no such page"),
        forgeable=True,
    ),
    Oracle(
        id="server-error",
        says="no request makes a page answer with a server error",
        severity="medium",
        surface="ux",
        reference="RFC 9110, 15.6",
        judges=("page",),
        judge=_server_error,
        example=_page(status=500),
        control=_page(status=503),
        yields_to=("trace",),
    ),
    Oracle(
        id="secret",
        says="no public answer contains a private key",
        severity="critical",
        surface="security",
        reference="CWE-312",
        judges=("page",),
        judge=_secret,
        example=_page(status=200, secrets=("private-key",)),
        control=_page(status=200, secrets=()),
        forgeable=True,
    ),
)
