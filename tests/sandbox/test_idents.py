"""What an answer calls a thing, and what of a record is sent as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.http import HttpReply
from sandbox.sites.idents import as_was, id_of


@pytest.mark.parametrize(
    ("body", "path", "ident"),
    [
        ({"id": 7, "name": "x"}, "/boats", "7"),
        ({"data": {"petId": "a-1", "groupId": "g"}}, "/v1/pets", "a-1"),
        ({"visit_id": 3, "petId": 9}, "/visits", "3"),
        ({"petId": 9}, "/visits", ""),  # another thing's
        ({"orderId": "o"}, "/graphql#createOrder", "o"),
        ({"a": {"id": 1}, "b": {"id": 2}}, "/boats", ""),  # several
        ({"id": True, "slug": "s"}, "/boats", "s"),
        ([], "/boats", ""),
        ("text", "/boats", ""),
    ],
)
def test_the_id_of_what_was_made(body: object, path: str, ident: str) -> None:
    assert id_of(HttpReply(201, {}, json.dumps(body).encode(), 0.0), "", path) == ident


def test_the_end_of_its_location() -> None:
    assert id_of(HttpReply(201, {"location": "/boats/42/"}, b"", 0.0), "", "/boats") == "42"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"state": "{was}", "x": 1}, {"state": "free", "x": 1}),
        ({"data": {"units": "{was}"}}, {"data": {"units": "m"}}),
        ({"berth": {"state": "{was}"}}, {"berth": {"state": "free"}}),  # wrapped when it is sent only
        ({"colour": "{was}"}, None),
        ({"data": "{was}"}, None),
        ({}, {}),
    ],
)
def test_a_value_is_sent_as_it_was_or_not_at_all(given: dict[str, Any], sent: dict[str, Any] | None) -> None:
    assert as_was(given, {"state": "free", "data": {"units": "m"}}) == sent
