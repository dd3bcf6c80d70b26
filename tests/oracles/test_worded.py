"""An API that is described in words: which calls and bodies a document shows, and which are answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.oracles.documents.openapi import operations
from fleet.oracles.documents.worded import description

GUIDE = """
| call | what |
|---|---|
| `GET /v3/mosses?kind=peat&page=1` | five a page |
| `GET /v3/mosses/{slug}` | one of them, e.g. `/v3/mosses/star-moss` |
| `GET /v3/growth?spores=9` | how many of 1 to 500 spores grow |
| `DELETE /v3/mosses/{slug}` | answers 405 since May |

1. `POST /v3/members` with `{"nick": "fern", "word": "at least 8 characters"}` answers 201.
2. `POST /v3/members/token` with the same body answers `{"token": "..."}`.

    POST /v3/wishes/<id>/notes
    Authorization: Bearer TOKEN

    {"slug": "star-moss", "words": "for the north wall", "loud": false, "size": 3}

`PATCH /v3/me` answers `{"ok": true}`.
"""


def read(text: str, host: str = "") -> dict[str, Any]:
    found = description(text, host)
    return dict(found["paths"]) if found else {}


def test_calls_of_a_document_and_their_parameters() -> None:
    paths = read(GUIDE)
    assert [(at, [how for how in item if how != "parameters"]) for at, item in paths.items()] == [
        ("/v3/mosses", ["get"]),
        ("/v3/mosses/{slug}", ["get"]),  # its example is no other call, and what is taken back is none
        ("/v3/growth", ["get"]),  # 500 spores are no status
        ("/v3/members", ["post"]),
        ("/v3/members/token", ["post"]),
        ("/v3/wishes/{id}/notes", ["post"]),
        ("/v3/me", ["patch"]),
    ]
    kinds = {one["name"]: one["schema"] for one in paths["/v3/mosses"]["get"]["parameters"]}
    assert kinds == {"kind": {"type": "string"}, "page": {"type": "integer", "default": 1}}


@pytest.mark.parametrize(
    ("path", "method", "fields"),
    [
        ("/v3/members", "post", {"nick": {"type": "string", "const": "fern"}, "word": {"type": "string"}}),
        (
            "/v3/members/token",
            "post",
            {"nick": {"type": "string", "const": "fern"}, "word": {"type": "string"}},
        ),
        (
            "/v3/wishes/{id}/notes",
            "post",
            {
                "slug": {"type": "string", "const": "star-moss"},
                "words": {"type": "string"},
                "loud": {"type": "boolean"},
                "size": {"type": "integer", "default": 3},
            },
        ),
        ("/v3/me", "patch", {}),  # that is what it answers
    ],
)
def test_a_body_is_what_stands_beside_its_call(path: str, method: str, fields: dict[str, Any]) -> None:
    found = description(GUIDE)
    assert found is not None
    read = {(one.path, one.method.lower()): one.fields for one in operations(found)}
    assert read[path, method] == fields


def test_a_page_and_calls_of_another_host() -> None:
    page = "<!doctype html><ul><li><code>POST /api/notes</code> {&quot;text&quot;: &quot;a b&quot;}</li></ul>"
    assert list(read(page)["/api/notes"]) == ["post"]
    there = "POST https://moss.test/a and POST https://fern.test/b"
    assert (list(read(there)), list(read(there, "https://moss.test"))) == (["/a", "/b"], ["/a"])


def test_what_describes_nothing() -> None:
    assert description("Moss grows on the north side.") is None
    assert description(json.dumps({"paths": {}})) is None
    assert description("[" * 100_000) is None
