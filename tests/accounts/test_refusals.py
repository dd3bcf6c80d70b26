"""What refusals of a sign-up ask for, in the forms of many frameworks, and the fields that follow."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sandbox.http import HttpReply
from sandbox.sites.accounts import replaced, words
from sandbox.sites.likeness import like
from sandbox.sites.refusals import Adaptation, complaints

ASKED = {"user": "{handle}", "mail": "{email}", "password": "{phrase}", "age": 1}


def reply(body: object, kind: str = "application/json") -> HttpReply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpReply(400, {"content-type": kind}, raw, 1.0)


def adapted(
    body: object, fields: dict[str, Any] | None = None, kind: str = "application/json"
) -> dict[str, Any]:
    """What changed of the fields that are sent next."""
    fields = fields or ASKED
    one = Adaptation(fields, {}, "api.shop.example.net")
    one.learn(reply(body, kind))
    return {name: value for name, value in one.fields.items() if fields.get(name) != value}


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (
            {"detail": [{"loc": ["body", "phone"], "msg": "Field required", "type": "missing"}]},
            {"phone": "{handle:[+]493023125[0-9]{4}}"},
        ),
        ({"first_name": ["This field is required."]}, {"first_name": "Quinn"}),
        ({"errors": [{"type": "field", "path": "city", "msg": "city is required"}]}, {"city": "Berlin"}),
        (
            {"message": "Validation failed", "errors": {"zip": ["The zip field is required."]}},
            {"zip": "10115"},
        ),
        ({"error": "Missing required parameter: country"}, {"country": "DE"}),
        ({"issues": [{"path": ["agree"], "message": "Required", "code": "invalid_type"}]}, {"agree": True}),
        ({"message": ["nickname should not be empty"]}, {"nickname": "{handle}"}),
        (
            {"title": "Bad", "violations": [{"propertyPath": "locale", "message": "must not be null"}]},
            {"locale": "en"},
        ),
        (
            {
                "errors": [
                    {"source": {"pointer": "/data/attributes/user"}, "detail": "only letters are allowed"}
                ]
            },
            {"user": "{handle:[a-z]{10}}"},
        ),
        ({"error": "password must be exactly 6 digits"}, {"password": "{phrase:[0-9]{6}}"}),
        ({"error": "Please choose a 4-digit passcode."}, {"password": "{phrase:[0-9]{4}}"}),
        ({"error": "user must contain only letters"}, {"user": "{handle:[a-z]{10}}"}),
        ({"error": "user must be between 4 and 8 characters"}, {"user": "{handle:[a-z0-9]{8}}"}),
        (
            {"message": "password must have a special character, one of: #$%"},
            {"password": "{phrase:[Q][a][1][#][a-z0-9]{12}}"},
        ),
        (
            {
                "detail": [
                    {
                        "loc": ["body", "age"],
                        "msg": "Input should be greater than or equal to 18",
                        "ctx": {"ge": 18},
                    }
                ]
            },
            {"age": 18},
        ),
        ({"errors": {"age": "must be an array"}}, {"age": ["en"]}),
        ({"error": "age is not permitted: unknown field"}, {}),
        ({"error": "mail must be at @shop.example.net"}, {"mail": "{email:[a-z]{10}@shop[.]example[.]net}"}),
        ({"error": "mail must be at @someone-else.com"}, {}),  # nobody else is written to
        ({"error": "try again later"}, {}),
        (["nothing", 1, None], {}),
    ],
)
def test_what_a_refusal_asks_for_is_sent_next(body: object, changed: dict[str, Any]) -> None:
    assert adapted(body) == changed


def test_a_page_that_refuses_is_read_by_its_lines() -> None:
    page = b"<html><p>Sorry.</p><p>Password must be at most 12 characters</p></html>"
    assert adapted(page, kind="text/html") == {"password": "{phrase:[Q][a][1][a-z0-9]{9}}"}


def test_a_field_that_is_not_known_is_left_out() -> None:
    one = Adaptation(ASKED, {}, "")
    assert one.learn(reply({"detail": [{"loc": ["body", "age"], "msg": "Extra inputs are not permitted"}]}))
    assert "age" not in one.fields


def test_what_may_be_sent_besides_is_sent_when_a_refusal_says_nothing() -> None:
    one = Adaptation({"user": "{handle}"}, {"plan": "free"})
    assert one.learn(reply({"error": "Bad Request"}))
    assert one.fields == {"user": "{handle}", "plan": "free"}
    assert not one.learn(reply({"error": "Bad Request"}))


def test_a_body_of_which_nothing_was_read_was_sent_in_the_wrong_form() -> None:
    one = Adaptation({"user": "{handle}", "password": "{phrase}"}, {})
    one.learn(
        reply({"detail": [{"loc": ["body", name], "msg": "Field required"} for name in ("user", "password")]})
    )
    assert one.form_unread
    assert one.fields == {"user": "{handle}", "password": "{phrase}"}


def test_a_hostile_refusal_is_bounded() -> None:
    deep: Any = "name is required"
    for _ in range(300):
        deep = {"errors": [deep, deep]} if _ < 9 else {"x" * 500: deep}
    long = {"detail": [{"loc": ["body", "a" * 9_000], "msg": "required " * 9_000}] * 5_000}
    for body in (deep, long, {"pattern": "(" * 5_000}, "[" * 9_000):
        found = complaints(reply(body))
        assert len(found) <= 24
        assert all(len(one.name) <= 60 and len(one.text) <= 600 for one in found)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]{4,12}$",
        r"^\+\d{7,12}$",
        r"^(?=.*[A-Z])(?=.*\d)(?=.*[@#!])[A-Za-z\d@#!]{12,}$",
        r"^(foo|bar)-\d{3}$",
        r"^\w+(?:[-_]\w+)*$",
        r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
        "^.{8,}$",
        "^[A-Z][a-z]+ [A-Z][a-z]+$",
    ],
)
def test_a_text_fits_its_pattern_and_is_the_same_for_the_same_account(pattern: str) -> None:
    made = [like(pattern, seed) for seed in ("one", "other", "one")]
    assert all(re.search(pattern, one) for one in made)
    assert made[0] == made[2]


@pytest.mark.parametrize(
    "pattern", ["a{1000}", "(" * 9, "[z-a]", "^(?!x).*$", r"(\w)\1", "x" * 201, "(" * 60 + ")" * 60]
)
def test_a_pattern_that_is_not_read_gives_the_plain_word(pattern: str) -> None:
    assert like(pattern, "one") == ""
    known = words()
    assert replaced(f"{{handle:{pattern[:190]}}}", known) == known["{handle}"] or pattern[:1] == "x"
