"""GitHub's published description, as far as the fleet uses it, held against requests and answers."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import jsonschema

from tests.fix.github_slice import SLICE

Json = dict[str, Any]


@functools.cache
def described() -> Json:
    found: Json = json.loads(SLICE.read_text())
    return found


@dataclass(frozen=True, slots=True)
class Described:
    """One operation: its id, the names in its path, and its description."""

    name: str
    method: str
    path: str
    spec: Json

    def matches(self, method: str, path: str) -> Mapping[str, str] | None:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.path))
        found = re.fullmatch(pattern, path) if method == self.method else None
        return found.groupdict() if found else None

    def wrong_query(self, query: Mapping[str, str]) -> list[str]:
        """What the description does not allow of a query; every value of a query is a text."""
        known = {one["name"]: one for one in map(resolved, self.spec["parameters"]) if one["in"] == "query"}
        wrong = [f"no parameter {name}" for name in query if name not in known]
        for name, value in query.items():
            schema = known.get(name, {}).get("schema", {})
            typed: Any = int(value) if schema.get("type") == "integer" and value.isdigit() else value
            wrong += _errors(schema, typed)
        return wrong + [
            f"{name} is missing" for name, one in known.items() if one.get("required") and name not in query
        ]

    def wrong_body(self, body: Any) -> list[str]:
        """What the description does not allow of a request's body; a field that it lacks is wrong."""
        asked = self.spec.get("requestBody")
        if asked is None:
            return ["a body where none is described"] if body is not None else []
        return _errors(_strict(asked["content"]["application/json"]["schema"]), body)

    def wrong_answer(self, status: int, body: Any) -> list[str]:
        """What the description does not allow of an answer of ours."""
        content = resolved(self.spec["responses"][str(status)]).get("content", {})
        return _errors(content["application/json"]["schema"], body)

    def example(self) -> Any:
        """GitHub's own example of the answer of success."""
        answer = next(one for status, one in self.spec["responses"].items() if status.startswith("2"))
        examples = answer["content"]["application/json"]["examples"]
        return deepcopy(resolved(examples["default"])["value"])


def operations() -> Iterator[Described]:
    for path, methods in described()["paths"].items():
        for method, spec in methods.items():
            yield Described(spec["operationId"], method.upper(), path, spec)


def resolved(part: Json) -> Json:
    """What a reference names, or the part itself."""
    if "$ref" not in part:
        return part
    kind, name = part["$ref"].removeprefix("#/components/").split("/")
    found: Json = described()["components"][kind][name]
    return found


def _strict(schema: Any) -> Any:
    """The schema with no field beside those that it names."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(one) for key, one in schema.items()}
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def _errors(schema: Json, value: Any) -> list[str]:
    whole = schema | {"components": described()["components"]}
    return [
        f"{one.json_path}: {one.message[:300]}"
        for one in jsonschema.Draft202012Validator(whole).iter_errors(value)
    ]
