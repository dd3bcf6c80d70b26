"""The operations of an OpenAPI description, read once for all: oracles, explorers and rows of accounts. Pure.

The description is a stranger's (`api_document` reads it): a part that has not its form says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fleet.oracles.documents.json_schema import ITEMS, ROOM, resolved
from fleet.oracles.documents.swagger import METHODS

JSON = "application/json"


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
    def body(self) -> object:
        """The schema of its JSON body; None where it takes none."""
        content = resolved(self.raw.get("requestBody"), self.document).get("content")
        media = content.get(JSON) if isinstance(content, dict) else None
        return media.get("schema", {}) if isinstance(media, dict) else None

    @property
    def fields(self) -> Mapping[str, Any]:
        """The schemas of the fields of its JSON body, by name; empty where it says nothing of them."""
        found: dict[str, Any] = {}
        for part in self._parts():
            properties = part.get("properties")
            found |= properties if isinstance(properties, dict) else {}
        return found

    @property
    def required(self) -> frozenset[str]:
        """The fields that its JSON body must have."""
        named = (part.get("required") for part in self._parts())
        return frozenset(str(one) for names in named if isinstance(names, list) for one in names)

    @property
    def closed(self) -> bool:
        """Whether its JSON body has these `fields` alone, as far as its schema says."""
        return not any(
            one.get("additionalProperties") not in (None, False)
            or "patternProperties" in one
            or any(word in one for word in ROOM)
            for one in self._parts()
        )

    def _parts(self) -> list[Mapping[str, Any]]:
        """The schema of its body with those that it puts together by `allOf`, `ITEMS` of them at most."""
        found, waiting = list[Mapping[str, Any]](), [self.body]
        while waiting and len(found) < ITEMS:
            found.append(resolved(waiting.pop(0), self.document))
            inner = found[-1].get("allOf")
            waiting += inner[:ITEMS] if isinstance(inner, list) else ()
        return found


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
