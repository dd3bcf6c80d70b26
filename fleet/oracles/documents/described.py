"""Oracles of an OpenAPI description: what it says of an operation's answers and requests is true. Pure.

A question is the description, then calls of its operations. What is found is named after the operation, not
after the values of a call: each operation is at most one item of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fleet.oracles.documents.api_document import api_document
from fleet.oracles.documents.json_schema import REQUIRED, misfits
from fleet.oracles.documents.openapi import Operation, operations, server
from fleet.oracles.documents.routes import DocumentedCall, same_host
from fleet.oracles.echoes import host, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import parsed
from fleet.severity import Severity
from fleet.text import line
from sandbox.tools.qa_fetch import MAX_TEXT


def _described(seen: Sequence[Exchange]) -> Iterator[tuple[int, Operation]]:
    """What the descriptions before the last call say of it, each with its position."""
    last = seen[-1]
    method, path = str(last.args.get("method", "GET")), urlsplit(route(last.args)).path
    path = path.removeprefix("{site}").removeprefix("{proxy}")
    for at, source in enumerate(seen[:-1]):
        text = str(source.result.get("text", ""))
        cut = len(text) >= int(source.args.get("longest", MAX_TEXT))  # what is left of YAML may be YAML too
        document = "" if cut or not same_host(source, last) else api_document(text)
        if isinstance(document, str):
            continue
        here = path.removeprefix(server(document)[1])
        for one in operations(document):
            if DocumentedCall(one.method, "", one.path, "").takes(method, here):
                yield at, one
                break


oracle = partial(Oracle, judges=("page",), surface="ux")


def _asked(text: str, status: int, kind: str = "application/json", query: str = "") -> tuple[Exchange, ...]:
    return (
        Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": text}),
        Exchange("qa_fetch", {"url": "{site}/api/moss" + query}, {"status": status, "content_type": kind}),
    )


_QUERY = '{"name":"q","in":"query","required":true}'
_OPERATION = f'{{"parameters":[{_QUERY}],"responses":{{"200":{{"content":{{"application/json":{{}}}}}}}}}}'
_DESCRIPTION = f'{{"openapi":"3.1.0","paths":{{"/api/moss":{{"get":{_OPERATION}}}}}}}'


@oracle(
    id="described-answer",
    says="an answer has the type and the fields that the API's description requires",
    severity=Severity.LOW,
    example=_asked(_DESCRIPTION, 200, "text/plain", "?q=1"),
    control=_asked(_DESCRIPTION, 200, "application/json; charset=utf-8", "?q=1"),
)
def described_answer(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[an OpenAPI description, the call of an operation]: the answer's type, and its fields."""
    last = seen[-1]
    for at, one in _described(seen):
        media = one.media(last.result.get("status"))
        kind = str(last.result.get("content_type", "")).partition(";")[0].strip().lower()
        if not media or "*/*" in media:
            continue
        where = line(one.where, 90)
        if kind and kind not in media:
            said = line(", ".join(sorted(media)), 60)
            title = f"{where}: {line(kind, 40)}, not {said}"
            yield _differs(title, f"described-type {one.where} {kind}", "content_type", (at, one, last))
        answer = parsed(str(last.result.get("text", "")))
        if answer is None or not isinstance(media.get(kind), dict):
            continue
        found = list(misfits(answer, media[kind].get("schema"), one.document))
        lacks = sorted({place for place, expected in found if expected == REQUIRED})
        if lacks:
            said = line(", ".join(place.lstrip("/") for place in lacks), 80)
            title = f"{where} answers without {said}"
            yield _differs(title, f"described-fields {one.where} {lacks}", "text", (at, one, last))
        if wrong := next((each for each in found if each[1] != REQUIRED), None):
            place, expected = line(wrong[0] or "/", 60), line(wrong[1], 60)
            title = f"{where} answers in {place} what is not {expected}"
            yield _differs(title, f"described-value {one.where}", "text", (at, one, last))


@oracle(
    id="described-status",
    says="an operation succeeds with a status that its description lists",
    severity=Severity.LOW,
    example=_asked(_DESCRIPTION, 201, query="?q=1"),
    control=_asked(_DESCRIPTION, 404, query="?q=1"),
)
def described_status(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Only successes: descriptions rarely list each refusal, and a 5xx is judged elsewhere."""
    status = seen[-1].result.get("status")
    if not isinstance(status, int) or not 200 <= status < 300:
        return
    for at, one in _described(seen):
        if one.statuses and not one.states(status) and "DEFAULT" not in one.statuses:
            title = f"{line(one.where, 90)} answers {status}, which is not described"
            yield _differs(title, f"described-status {one.where} {status}", "status", (at, one, seen[-1]))


@oracle(
    id="described-required",
    says="a request without what the API's description requires is refused",
    severity=Severity.LOW,
    example=_asked(_DESCRIPTION, 200),
    control=_asked(_DESCRIPTION, 400),
)
def described_required(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    status = seen[-1].result.get("status")
    if not isinstance(status, int) or not 200 <= status < 300:
        return
    for at, one in _described(seen):
        if lacks := sorted(set(_lacks(one, seen[-1].args))):
            where = line(one.where, 90)
            title = f"{where} answers {status} without {lacks[0]}"
            key = f"described-required {one.where}"
            yield _differs(title, key, "status", (at, one, seen[-1]), field=lacks[0])


def _lacks(one: Operation, args: Mapping[str, Any]) -> Iterator[str]:
    """Required query parameters and body fields that a call leaves out."""
    given = {name for name, _ in parse_qsl(urlsplit(str(args.get("url", ""))).query, keep_blank_values=True)}
    for parameter in one.parameters:
        name = str(parameter.get("name", ""))
        if parameter.get("in") == "query" and parameter.get("required") is True and name not in given:
            yield f"the query parameter {line(name, 60)}"
    sent = dict(args.get("fields") or {}) or parsed(str(args.get("body", "")))
    if isinstance(sent, dict) and one.method != "GET":
        for place, expected in misfits(sent, one.body, one.document):
            if expected == REQUIRED:
                yield f"the field {line(place, 60)}"


def _differs(
    title: str, key: str, shown: str, of: tuple[int, Operation, Exchange], field: str = ""
) -> Observation:
    """At the route that the description has, on the host that was asked."""
    at, one, last = of
    method = "" if one.method in ("GET", "HEAD") else f"{one.method} "
    where = {"route": f"{method}{host(last.args)}{server(one.document)[1]}{one.path}"}
    return observed(title, key, shown, led=(at,), where=where | ({"field": field} if field else {}))
