"""Oracles of an OpenAPI description: what it says of an operation's answers and requests is true. Pure.

A question is the description, then calls of its operations. What is found is named after the operation, not
after the values of a call: each operation is at most one item of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fleet.oracles.documents.api_document import api_document
from fleet.oracles.documents.json_schema import misfits, resolved
from fleet.oracles.documents.routes import DocumentedCall, same_host
from fleet.oracles.echoes import route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import parsed
from fleet.text import line
from sandbox.tools.qa_fetch import MAX_TEXT


@dataclass(frozen=True, slots=True)
class DescribedOperation:
    """One operation of a description, and the position of the description in the question."""

    at: int
    document: Mapping[str, Any]
    method: str
    template: str
    operation: Mapping[str, Any]
    shared: Sequence[Any] = ()
    """Parameters of all operations of its path."""

    @property
    def where(self) -> str:
        return f"{self.method} {self.template}"

    def answer(self, status: Any) -> Mapping[str, Any]:
        """What the description says of this status; empty if nothing."""
        answers = self.operation.get("responses")
        said = answers.get(str(status)) if isinstance(answers, dict) else None
        return resolved(said, self.document)

    def media(self, status: Any) -> Mapping[str, Any]:
        """The media types of the answer, by name; none if the description does not say."""
        content = self.answer(status).get("content")
        return {str(kind).lower(): one for kind, one in content.items()} if isinstance(content, dict) else {}

    def lists(self, status: int) -> bool:
        """Whether the status is documented, by its number, its range or a default."""
        answers = self.operation.get("responses")
        known = {str(one).upper() for one in answers} if isinstance(answers, dict) else set()
        return not known or bool(known & {str(status), f"{status // 100}XX", "DEFAULT"})

    def lacks(self, args: Mapping[str, Any]) -> Iterator[str]:
        """Required query parameters and body fields that a call leaves out."""
        given = {
            name for name, _ in parse_qsl(urlsplit(str(args.get("url", ""))).query, keep_blank_values=True)
        }
        own = self.operation.get("parameters")
        for one in (*(own if isinstance(own, list) else ()), *self.shared):
            said = resolved(one, self.document)
            if said.get("in") == "query" and said.get("required") is True and _name(said) not in given:
                yield f"the query parameter {line(_name(said), 60)}"
        wanted = resolved(self.operation.get("requestBody"), self.document)
        content = wanted.get("content")
        media = content.get("application/json") if isinstance(content, dict) else None
        if not isinstance(media, dict) or self.method == "GET":
            return
        sent = dict(args.get("fields") or {}) or parsed(str(args.get("body", "")))
        if isinstance(sent, dict):
            for place, expected in misfits(sent, media.get("schema"), self.document):
                if expected == "a required field":
                    yield f"the field {line(place, 60)}"


def _name(parameter: Mapping[str, Any]) -> str:
    return str(parameter.get("name", ""))


def operations(seen: Sequence[Exchange]) -> Iterator[DescribedOperation]:
    """What the descriptions before the last call say of it."""
    last = seen[-1]
    method, path = str(last.args.get("method", "GET")), urlsplit(route(last.args)).path
    path = path.removeprefix("{site}").removeprefix("{proxy}")
    for at, source in enumerate(seen[:-1]):
        text = str(source.result.get("text", ""))
        cut = len(text) >= int(source.args.get("longest", MAX_TEXT))  # what is left of YAML may be YAML too
        document = "" if cut or not same_host(source, last) else api_document(text)
        if isinstance(document, str):
            continue
        paths = document.get("paths")
        here = path.removeprefix(base(document))
        for template, item in paths.items() if isinstance(paths, dict) else ():
            item = resolved(item, document)
            said = item.get(method.lower())
            if isinstance(said, dict) and DocumentedCall(method, "", str(template), "").takes(method, here):
                shared = item.get("parameters")
                many = shared if isinstance(shared, list) else ()
                yield DescribedOperation(at, document, method, str(template), said, many)
                break


def base(document: Mapping[str, Any]) -> str:
    """The path below which the description's paths are, without a slash at its end."""
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = str(first.get("url", "")) if isinstance(first, dict) else ""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return path.rstrip("/") if path.startswith("/") and "{" not in path else ""


oracle = partial(Oracle, judges=("page",), surface="ux", reference="https://spec.openapis.org/oas/v3.1.0")


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
    severity="low",
    example=_asked(_DESCRIPTION, 200, "text/plain", "?q=1"),
    control=_asked(_DESCRIPTION, 200, "application/json; charset=utf-8", "?q=1"),
)
def described_answer(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[an OpenAPI description, the call of an operation]: the answer's type, and its fields."""
    last = seen[-1]
    for one in operations(seen):
        media = one.media(last.result.get("status"))
        kind = str(last.result.get("content_type", "")).partition(";")[0].strip().lower()
        if not media or "*/*" in media:
            continue
        where = line(one.where, 90)
        if kind and kind not in media:
            said = line(", ".join(sorted(media)), 60)
            title = f"the description says that {where} answers {said}; it answers {kind}"
            yield _differs(title, f"described-type {one.where} {kind}", "content_type", one.at)
        told = parsed(str(last.result.get("text", "")))
        if told is None or not isinstance(media.get(kind), dict):
            continue
        found = list(misfits(told, media[kind].get("schema"), one.document))
        lacks = sorted({place for place, expected in found if expected == "a required field"})
        if lacks:
            said = line(", ".join(place.lstrip("/") for place in lacks), 80)
            title = f"the description requires the fields {said} of {where}; they are missing"
            yield _differs(title, f"described-fields {one.where} {lacks}", "text", one.at)
        if wrong := next((each for each in found if each[1] != "a required field"), None):
            place, expected = line(wrong[0] or "/", 60), line(wrong[1], 60)
            title = f"the description says that {where} answers {expected} in {place}; it does not"
            yield _differs(title, f"described-value {one.where}", "text", one.at)


@oracle(
    id="described-status",
    says="an operation succeeds with a status that its description lists",
    severity="low",
    example=_asked(_DESCRIPTION, 201, query="?q=1"),
    control=_asked(_DESCRIPTION, 404, query="?q=1"),
)
def described_status(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Only successes: descriptions rarely list each refusal, and a 5xx is judged elsewhere."""
    status = seen[-1].result.get("status")
    if not isinstance(status, int) or not 200 <= status < 300:
        return
    for one in operations(seen):
        if not one.lists(status):
            title = f"{line(one.where, 90)} answers {status}, which its description does not list"
            yield _differs(title, f"described-status {one.where} {status}", "status", one.at)


@oracle(
    id="described-required",
    says="a request without what the API's description requires is refused",
    severity="low",
    example=_asked(_DESCRIPTION, 200),
    control=_asked(_DESCRIPTION, 400),
)
def described_required(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    status = seen[-1].result.get("status")
    if not isinstance(status, int) or not 200 <= status < 300:
        return
    for one in operations(seen):
        lacks = sorted(set(one.lacks(seen[-1].args)))
        if lacks:
            where = line(one.where, 90)
            title = f"the description of {where} requires {lacks[0]}; without it, it answers {status}"
            yield _differs(title, f"described-required {one.where}", "status", one.at)


def _differs(title: str, key: str, field: str, at: int) -> Observation:
    return observed(title, key, field, led=(at,))
