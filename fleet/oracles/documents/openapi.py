"""The operations of an OpenAPI description, read once for all: oracles, explorers and rows of accounts. Pure.

The description is a stranger's (`api_document` reads it): a part that has not its form says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fleet.oracles.documents.json_schema import ITEMS, ROOM, resolved
from fleet.oracles.documents.swagger import METHODS

JSON = "application/json"
FORMS = {"application/x-www-form-urlencoded": "form", "multipart/form-data": "multipart"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a description; `raw` as it is written, `shared` the parameters of its whole path."""

    document: Mapping[str, Any]
    method: str
    path: str
    raw: Mapping[str, Any]
    shared: Sequence[Any] = ()

    @property
    def where(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def text(self) -> str:
        """How it is described in words."""
        return f"{self.raw.get('summary', '')}. {self.raw.get('description', '')}"

    @property
    def deprecated(self) -> bool:
        return self.raw.get("deprecated") is True

    @property
    def secured(self) -> bool:
        """Whether it needs credentials."""
        return bool(self.raw.get("security", self.document.get("security")))

    @property
    def parameters(self) -> list[Mapping[str, Any]]:
        own = self.raw.get("parameters")
        return [
            resolved(one, self.document) for one in (*(own if isinstance(own, list) else ()), *self.shared)
        ]

    @property
    def statuses(self) -> frozenset[str]:
        """The statuses that it may answer, as they are written: `404`, `4XX`, `DEFAULT`."""
        answers = self.raw.get("responses")
        return frozenset(str(one).upper() for one in answers) if isinstance(answers, dict) else frozenset()

    def states(self, status: int) -> bool:
        """Whether a status is one of them, by its number or its range."""
        return bool(self.statuses & {str(status), f"{status // 100}XX"})

    def answer(self, status: object) -> Mapping[str, Any]:
        """What it says of this status; empty if nothing."""
        answers = self.raw.get("responses")
        return resolved(answers.get(str(status)) if isinstance(answers, dict) else None, self.document)

    def media(self, status: object) -> Mapping[str, Any]:
        """The media types of the answer, by name; none if the description does not say."""
        content = self.answer(status).get("content")
        return {str(kind).lower(): one for kind, one in content.items()} if isinstance(content, dict) else {}

    @property
    def sent(self) -> tuple[str, object]:
        """How its body is sent (`json`, another type of JSON, `form`, `multipart`: the first of these that it
        takes), and its schema; ("", None) where it takes none of them."""
        content = resolved(self.raw.get("requestBody"), self.document).get("content")
        found = dict[str, object]()
        for kind, media in content.items() if isinstance(content, dict) else ():
            plain = str(kind).lower().partition(";")[0].strip()
            how = (
                "json"
                if plain in (JSON, "*/*")
                else plain
                if plain.endswith("json")
                else FORMS.get(plain, "")
            )
            if how and isinstance(media, dict):
                found.setdefault(how, media.get("schema", {}))
        last = ("form", "multipart")
        ranked = sorted(found, key=lambda how: (how != "json", how in last and last.index(how) + 1))
        return (ranked[0], found[ranked[0]]) if ranked else ("", None)

    @property
    def body(self) -> object:
        """The schema of its JSON body; None where it takes none."""
        how, schema = self.sent
        return schema if how not in ("form", "multipart") else None

    @property
    def fields(self) -> Mapping[str, Any]:
        """The schemas of the fields of its body, by name; empty where it says nothing of them."""
        return fields_of(self.sent[1], self.document)[0]

    @property
    def required(self) -> frozenset[str]:
        """The fields that its body must have."""
        return fields_of(self.sent[1], self.document)[1]

    @property
    def closed(self) -> bool:
        """Whether its body has these `fields` alone, as far as its schema says."""
        return not any(
            one.get("additionalProperties") not in (None, False)
            or "patternProperties" in one
            or any(word in one for word in ROOM)
            for one in _parts(self.sent[1], self.document)
        )


def fields_of(schema: object, document: Mapping[str, Any]) -> tuple[Mapping[str, Any], frozenset[str]]:
    """The schemas of an object's fields by name, and those that it must have."""
    found, needed = dict[str, Any](), set[str]()
    for part in _parts(schema, document):
        properties, names = part.get("properties"), part.get("required")
        found |= properties if isinstance(properties, dict) else {}
        needed |= {str(one) for one in names} if isinstance(names, list) else set()
    return found, frozenset(needed)


def _parts(schema: object, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema with those that it puts together by `allOf`, and the first of its alternatives; `ITEMS` of
    them at most."""
    found, waiting = list[Mapping[str, Any]](), [schema]
    while waiting and len(found) < ITEMS:
        found.append(resolved(waiting.pop(0), document))
        for word, most in (("allOf", ITEMS), ("anyOf", 1), ("oneOf", 1)):
            inner = found[-1].get(word)
            waiting += inner[:most] if isinstance(inner, list) else ()
    return found


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """One way to show who asks; `carried` in the words of `qa_account`, `token_path` where a token is issued
    by the flow `grant` of OAuth 2, "" for none."""

    carried: str
    token_path: str = ""
    grant: str = ""


def security_schemes(document: Mapping[str, Any]) -> list[SecurityScheme]:
    """Those of a description, the ones that all operations need first."""
    parts = resolved(document.get("components"), document).get("securitySchemes")
    old = document.get("securityDefinitions")
    named: dict[str, Any] = {
        **(old if isinstance(old, dict) else {}),
        **(parts if isinstance(parts, dict) else {}),
    }
    needed = document.get("security")
    first = {
        name for one in (needed if isinstance(needed, list) else ()) if isinstance(one, dict) for name in one
    }
    found = list[SecurityScheme]()
    for name in sorted(named, key=lambda one: one not in first):
        said = resolved(named[name], document)
        kind, scheme = str(said.get("type")).lower(), str(said.get("scheme")).lower()
        if kind == "basic" or (kind == "http" and scheme == "basic"):
            found.append(SecurityScheme("basic"))
        elif kind == "http" or kind == "openidconnect":
            found.append(SecurityScheme(""))
        elif kind == "apikey" and said.get("in") in ("header", "query", "cookie"):
            before = _PREFIX.search(str(said.get("description", "")))
            authorized = str(said.get("name")).lower() == "authorization"
            word = before[0].title() if before and authorized else ""
            found.append(SecurityScheme(f"{said['in']} {said.get('name')} {word}".strip()))
        elif kind == "oauth2":
            flows = (
                said.get("flows") if isinstance(said.get("flows"), dict) else {str(said.get("flow")): said}
            )
            grants = {
                "password": "password",
                "clientCredentials": "client_credentials",
                "application": "client_credentials",
            }
            for flow, grant in grants.items():
                if isinstance(flows, dict) and isinstance(one := flows.get(flow), dict):
                    found.append(SecurityScheme("", str(one.get("tokenUrl", "")), grant))
    return list(dict.fromkeys(found))


_PREFIX = re.compile(r"(?i)\b(?:bearer|token)\b")


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """The operations of a description, path by path."""
    paths = document.get("paths")
    for path, raw in paths.items() if isinstance(paths, dict) else ():
        item = {str(key).lower(): one for key, one in resolved(raw, document).items()}
        shared = item.get("parameters")
        for method in METHODS if str(path).startswith("/") else ():
            if isinstance(one := item.get(method), dict):
                many = shared if isinstance(shared, list) else ()
                yield Operation(document, method.upper(), str(path), one, many)


def server(document: Mapping[str, Any]) -> tuple[str, str]:
    """The host of a description's operations with its scheme, "" for its own; and the path above them all,
    without a slash at its end."""
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = str(first.get("url", "")) if isinstance(first, dict) else ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    host = f"{parts.scheme}://{parts.netloc}" if parts.netloc and "{" not in parts.netloc else ""
    return host, parts.path.rstrip("/") if parts.path.startswith("/") and "{" not in parts.path else ""
