"""Descriptions of an API in all their forms: their operations are asked, or it is said why not."""

from __future__ import annotations

import json
from typing import Any

import anyio.to_thread
import pytest
import yaml

from fleet.drivers.desk import Left
from fleet.drivers.explore.documents import api, api_cases
from fleet.drivers.explore.documents.api import ApiExplorer
from fleet.oracles.documents.api_document import api_document
from sandbox.pages.condensed import condensed
from tests.drivers.http_guest import explored
from tests.sandbox.doubles import Got, bench, http_answer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(api_cases.lacking()), reason=api_cases.lacking() or "-"),
]
LIMIT: dict[str, Any] = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": 100},
}
ITEM = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
LIST = {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}
ANSWERS: dict[str, Any] = {
    "200": {"description": "some", "content": {"application/json": {"schema": LIST}}},
    "400": {"description": "limit out of range"},
}
OPENAPI: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Stock", "version": "1"},
    "paths": {"/items": {"get": {"parameters": [LIMIT], "responses": ANSWERS}}},
    "components": {"schemas": {"Item": ITEM}},
}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Stock", "version": "1"},
    "basePath": "/",
    "produces": ["application/json"],
    "parameters": {"Limit": {key: LIMIT[key] for key in ("name", "in")} | LIMIT["schema"]},
    "paths": {
        "/items": {
            "parameters": [{"$ref": "#/parameters/Limit"}],
            "get": {"responses": {"200": {"$ref": "#/responses/Some"}, "400": {"description": "no"}}},
        }
    },
    "definitions": {"Item": ITEM},
    "responses": {
        "Some": {"description": "some", "schema": {"type": "array", "items": {"$ref": "#/definitions/Item"}}}
    },
}
PAD = {"info": {"title": "Stock", "version": "1", "description": "x" * 70_000}}
MERGED = """\
openapi: 3.0.3
info: {title: Stock, version: 1.0}
x-bounds: &bounds {minimum: 1, maximum: 100}
paths:
  /items:
    get: &get
      parameters:
        - name: limit
          in: query
          schema: {<<: *bounds, type: integer}
      responses: {200: {description: some items}, "400": {description: no}}
  /others:
    get: *get
"""


PROSE = "\n\n".join(["    - description: is text here", "    get: {", "    " + "x" * 500] * 50)
SPOKEN = f"""\
openapi: 3.0.3
info:
  title: Stock
  version: '1'
  description: |
{PROSE}
paths:
  /items:
    get:
      summary: "List items:
        all of them"
      tags:
      - one
      - two
      parameters:
      - description: >-
{PROSE.replace("    ", "          ")}
        name: limit
        in: query
        schema: {{type: integer, minimum: 1, maximum: 100}}
        example: [1,
          2]
      responses:
        "200":
          description: some
          content:
            application/json:
              schema:
                type: array
                items: {{$ref: '#/components/schemas/Item'}}
              examples:
                one:
                  value: [{{id: 1}}]
        "400":
          description: limit out of range
components:
  schemas:
    Item:
      type: object
      required: [id, name]
      properties:
        id: {{type: integer}}
        name: {{type: string}}
        description: {{type: string}}
        tags:
          description: words
          type: array
          items:
            type: string
            description: one word
"""


def many(operations: int, of: int = 0) -> dict[str, Any]:
    """A description whose operations have each a schema of their own, of this number of fields."""
    schemas = {
        f"S{number}": {
            "type": "object",
            "properties": {f"field{at}": {"type": "string", "maxLength": 9} for at in range(of)},
        }
        for number in range(operations)
    }
    paths = {
        f"/things{number}": {
            "get": {
                "parameters": [LIMIT],
                "responses": {
                    "200": {
                        "description": "-",
                        "content": {
                            "application/json": {"schema": {"$ref": f"#/components/schemas/S{number}"}}
                        },
                    }
                },
            }
        }
        for number in range(operations)
    }
    return OPENAPI | {"paths": OPENAPI["paths"] | paths, "components": {"schemas": {"Item": ITEM} | schemas}}


def served(got: Got, place: str, text: str) -> bytes:
    path, _, query = got.path.partition("?")
    if path == place:
        return http_answer(200, text.encode(), "content-type: text/plain")
    if path.startswith("/things"):
        return http_answer(200, b"{}", "content-type: application/json")
    if path != "/items":
        return http_answer(404, b"not here", "content-type: text/plain")
    limit = dict(pair.partition("=")[::2] for pair in query.split("&")).get("limit", "10")
    if limit.removeprefix("-").isdigit() and int(limit) < 1:
        return http_answer(500, b"Internal Server Error", "content-type: text/plain")
    return http_answer(200, b'[{"id": 1, "name": "moss"}]', "content-type: application/json")


async def seen(
    place: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], set[str], list[Left]]:
    async with bench(lambda got: served(got, place, text)) as it:
        monkeypatch.setenv("QA_BROKER", it.address)
        asked, found, explorer = await anyio.to_thread.run_sync(explored, api.make, it.site.url)
    assert isinstance(explorer, ApiExplorer)
    return asked, found, list(explorer.left())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("/openapi.json", json.dumps(OPENAPI)),
        ("/openapi.json", json.dumps(OPENAPI | PAD)),
        ("/openapi.json", json.dumps(PAD | OPENAPI | PAD)),
        ("/openapi.json", json.dumps({"paths": {}} | OPENAPI | PAD)),
        ("/openapi.json", json.dumps(many(20, of=100))),
        ("/openapi.json", "\ufeff" + json.dumps(OPENAPI | PAD)),
        ("/swagger.json", json.dumps(SWAGGER)),
        ("/swagger.json", json.dumps(SWAGGER | PAD)),
        ("/openapi.yaml", yaml.safe_dump(OPENAPI)),
        ("/openapi.yml", "# A comment\n---\n" + yaml.safe_dump(OPENAPI, sort_keys=False)),
        ("/swagger.yaml", yaml.safe_dump(SWAGGER)),
        ("/openapi", MERGED),
        ("/openapi.yaml", yaml.safe_dump(OPENAPI | PAD)),
        ("/openapi.yaml", yaml.safe_dump(PAD | SWAGGER | PAD, sort_keys=False)),
        ("/openapi.yaml", SPOKEN),
    ],
    ids=[
        *("json", "padded", "padded-first", "named-last", "large-schemas", "marked", "swagger"),
        "swagger-padded",
        *("yaml", "yaml-comment", "swagger-yaml", "yaml-merged"),
        *("yaml-padded", "swagger-yaml-padded", "yaml-prose"),
    ],
)
async def test_its_operations_are_asked(place: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found, left = await seen(place, text, monkeypatch)
    assert "{site}/items?limit=0" in asked
    assert found == {"server-error {site}/items 500"}
    assert [one for one in left if one.kind == "unexplored"] == []


async def test_it_is_found_by_a_page_that_is_named_by_a_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/": http_answer(200, b'<a href="/go?to=/developers">For developers</a>', "content-type: text/html"),
        "/go?to=/developers": http_answer(303, b"", "location: /for/them"),
        "/for/them": http_answer(200, b'<a href="/odd/openapi.json">it</a>', "content-type: text/html"),
    }
    place, text = "/odd/openapi.json", json.dumps(OPENAPI)
    async with bench(lambda got: pages.get(got.path) or served(got, place, text)) as it:
        monkeypatch.setenv("QA_BROKER", it.address)
        asked, found, _ = await anyio.to_thread.run_sync(explored, api.make, it.site.url)
    assert "{site}/items?limit=0" in asked
    assert found == {"server-error {site}/items 500"}


LAUGHS = "openapi: 3.0.3\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("place", "text", "why"),
    [
        ("/openapi.yaml", LAUGHS, "a description in YAML: more than 20000 values"),
        (
            "/openapi.yaml",
            "openapi: 3.0.3\npaths: " + "[" * 5_000,
            "a description in YAML: nested deeper than 60",
        ),
        ("/openapi.yaml", "openapi: 3.0.3\npaths: &p {/a: *p}", "a description in YAML: an alias of nothing"),
        ("/openapi.yaml", "openapi: 3.0.3\n\tpaths: {", "a description in YAML: "),
        ("/openapi.yaml", "openapi: 3.0.3\nx: !!python/object:os.system {}\n", "a description without paths"),
        ("/openapi.yaml", "openapi: 3.0.3\nx: " + "y" * 70_000, "a description in YAML of more than 65536"),
        ("/openapi.yaml", "openapi: 3.0.3\npaths: {/items: {get: &a # " + "y" * 65_600, "of more than 65536"),
        ("/openapi.json", '{"openapi": "3.0.3", "paths": {', "not a description in JSON: "),
        ("/swagger.json", '{"swagger": "1.2", "paths": {}}', "neither OpenAPI 3.0 or 3.1, nor Swagger 2.0"),
        (
            "/openapi.json",
            json.dumps(OPENAPI | {"x": {"$ref": "a.yaml#/A"}}),
            "a description with a reference to",
        ),
        ("/openapi.json", json.dumps(OPENAPI | {"x": "y" * (5 << 20)}), "more than 4194304 bytes"),
    ],
    ids=[
        "laughs",
        "deep",
        "itself",
        "broken",
        "tag",
        "long-yaml",
        "cut-yaml",
        "cut",
        "older",
        "elsewhere",
        "huge",
    ],
)
async def test_one_that_cannot_be_read_is_said(
    place: str, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found, left = await seen(place, text, monkeypatch)
    assert not any(url.startswith("{site}/items") for url in asked)
    assert found == set()
    (one,) = left
    assert (one.part, one.kind) == (f"description {{site}}{place}", "unexplored")
    assert one.reason.startswith("found and not read: ")
    assert why in one.reason


async def test_of_a_description_too_large_to_be_asked_in_full_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, found, (left,) = await seen("/openapi.json", json.dumps(many(70, of=5)), monkeypatch)
    assert "{site}/items?limit=0" in asked
    assert found == {"server-error {site}/items 500"}
    assert left == Left("description {site}/openapi.json", "60 of 71 operations are asked", "left")


async def test_without_the_library_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_cases, "find_spec", lambda name: None)
    _, _, (left,) = await seen("/openapi.json", json.dumps(OPENAPI), monkeypatch)
    assert left.part == "descriptions of APIs"
    assert left.reason.startswith("not installed: schemathesis")


@pytest.mark.parametrize("most", [700, 2_000, 20_000, 65_536])
def test_a_condensed_description_is_whole_in_itself(most: int) -> None:
    text = condensed(json.dumps(many(400, of=5) | PAD), most)
    assert 0 < len(text) < most
    document = json.loads(text)
    assert document["x-operations"] == 401
    schemas = document["components"]["schemas"]
    named = [one for one in text.split('"') if one.startswith("#/components/schemas/")]
    assert named
    assert {one.rpartition("/")[2] for one in named} == set(schemas)


def without_prose(value: Any, *, named: bool = False) -> Any:
    """What is left of a description without prose and examples, by its structure."""
    if isinstance(value, list):
        return [without_prose(one) for one in value]
    if not isinstance(value, dict):
        return value
    below = ("properties", "schemas", "definitions", "responses", "parameters", "paths")
    prose = ("description", "summary", "example", "examples", "tags", "x-")
    return {
        key: without_prose(inner, named=key in below and not named)
        for key, inner in value.items()
        if named or key not in prose
    }


@pytest.mark.parametrize(
    "text", [SPOKEN, yaml.safe_dump(OPENAPI | PAD), yaml.safe_dump(SWAGGER | PAD), MERGED]
)
def test_yaml_loses_its_prose_and_nothing_else(text: str) -> None:
    thin = condensed(text, 65_536)
    assert 0 < len(thin) < 3_000
    assert without_prose(yaml.safe_load(thin)) == without_prose(yaml.safe_load(text))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "x" * 70_000, '{"a": 1}', '{"openapi": {"a": 1}}'])
def test_what_is_no_description_is_not_condensed(text: str) -> None:
    assert condensed(text, 10) == ""


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("on", "on"),
        ("2020-01-01", "2020-01-01"),
        ("'1'", "1"),
        ("~", None),
        ("", None),
        ("True", True),
        ("no", "no"),
        ("0x10", "0x10"),
        ("1e999", "1e999"),
        ("!!int 7", "7"),
        ("|\n  a\n", "a\n"),
    ],
)
def test_scalars_are_those_of_the_core_schema(said: str, value: Any) -> None:
    document = api_document(f"openapi: 3.0.3\npaths: {{}}\nx: {said}")
    assert not isinstance(document, str)
    assert document["x"] == value


@pytest.mark.parametrize("name", ["host", "Host", "cookie", "x-qa-host", "connection"])
def test_a_documented_header_that_a_client_sets_itself_is_not_sent(name: str) -> None:
    assert not api_cases._sendable(name, "moss")
    assert api_cases._sendable("x-moss", "moss")
