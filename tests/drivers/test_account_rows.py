"""Which rows two accounts of an API are asked: from its description alone, nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import unquote

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_groups import apart, making, packed, prepared
from fleet.drivers.explore.account.api_inputs import OperationInputs, Planted, stem
from fleet.drivers.explore.account.api_planted import planted_rows
from fleet.drivers.explore.account.api_questions import further
from fleet.drivers.explore.account.api_rows import AccountRows, bare_request
from fleet.drivers.explore.account.bodies import filled, free
from fleet.drivers.explore.account.ways import ApiPlaces
from fleet.oracles.account.inputs import ORDERED
from fleet.oracles.documents.openapi import operations
from fleet.personas.model import Step
from sandbox.tools.qa_account import MAX_STEPS

TEXT = {"type": "string"}
ID = {"type": "string", "format": "uuid"}
PET = {"petId": ID, "groupId": ID, "name": TEXT}


def body(**fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": [*fields]}
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


def answers(**fields: Any) -> dict[str, Any]:
    schema = {"properties": {"data": {"type": "object", "properties": fields}}}
    return {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}


PATHS: dict[str, Any] = {
    "/accounts": {"post": body(name=TEXT, password=TEXT) | answers(accountId=ID, groupId=ID)},
    "/login": {"post": body(name=TEXT, password=TEXT)},
    "/me": {"get": answers(accountId=ID, groupId=ID, roles={"type": "array"})},
    "/pets": {"get": {}, "post": body(name=TEXT, kind=TEXT) | answers(**PET)},
    "/pets/{petId}": {"get": answers(**PET), "put": body(name=TEXT)},
    "/pets/{petId}/remove-it/cancel": {"get": {}},
    "/visits": {
        "get": {},
        "post": body(petId=ID, reason=TEXT) | answers(visitId=ID, paid={"type": "boolean"}),
    },
    "/visits/{visitId}": {"get": {}, "patch": body(reason=TEXT) | answers(paid={"type": "boolean"})},
    "/groups/{groupId}/messages": {"get": {}, "post": body(text=TEXT)},
    "/groups/{groupId}/members": {"post": body(accountId=ID)},
    "/hooks": {"post": body(callbackUrl={"type": "string", "format": "uri"}) | {"security": [{"x": []}]}},
    "/feeds": {"get": {}, "post": body(url=TEXT)},
    "/feeds/{feedId}/test": {"post": {}},
    "/points": {"post": body(accountId=ID, points={"type": "integer"})},
}


def rows(paths: Mapping[str, Any] = PATHS) -> AccountRows:
    document = {"openapi": "3.1.0", "paths": paths}
    places = ApiPlaces(lambda path: "{site}" + path, lambda url: url.removeprefix("{site}"), lambda _: True)
    made = AccountRows.of(document, Step(tool="qa_fetch", args={"url": "{site}/openapi.json"}), places)
    assert isinstance(made, AccountRows)
    return made


def steps(questions: Iterator[Question]) -> list[list[list[Any]]]:
    return [question.steps[-1].args["steps"] for question in questions]


def inputs(path: str, method: str) -> OperationInputs:
    found = operations({"openapi": "3.1.0", "paths": PATHS})
    return OperationInputs.of(next(one for one in found if (one.path, one.method) == (path, method)), path)


@pytest.mark.parametrize(
    ("name", "thing"),
    [
        ("/v1/boats", "boat"),
        ("boat_id", "boat"),
        ("boatId", "boat"),
        ("/graphql#createOrder", "order"),
        ("/companies", "company"),
        ("/boxes", "box"),
        ("id", "id"),
    ],
)
def test_what_a_thing_is_called(name: str, thing: str) -> None:
    assert stem(name) == thing


def test_the_inputs_that_can_name_a_thing_or_an_account() -> None:
    planted = Planted({"pet": "{id-1}"}, {"slug"}, frozenset({"groupId", "accountId"}))
    assert planted.values(inputs("/pets/{petId}", "GET")) == {"petId": "{id-1}"}
    assert planted.values(inputs("/groups/{groupId}/members", "POST")) == {
        "groupId": "{one.groupId}",
        "accountId": "{one.accountId}",
    }
    assert planted.values(inputs("/accounts", "POST")) == {"name": "{one}"}
    row = inputs("/groups/{groupId}/messages", "GET").row("other", {"groupId": "{one.groupId}"})
    assert row == ["other", "GET", "/groups/{one.groupId}/messages", {}]
    assert inputs("/pets/{petId}", "GET").row("one", {"petId": "a b/.."})[2] == "/pets/a%20b%2F.."  # type: ignore[index]  # there is one


@pytest.mark.parametrize(
    ("name", "more", "marked"),
    [
        ("note", {}, True),
        ("format", {}, True),
        ("startsAt", {}, False),
        ("due_date", {}, False),
        ("label", {"pattern": "^[A-Za-z0-9 ._-]+$"}, True),
        ("label", {"pattern": "^[a-z0-9]{3,8}$"}, False),
        ("label", {"pattern": "^[^a-z0-9]+$"}, False),
        ("label", {"pattern": "([a-z0-9]+)*$"}, False),
    ],
)
def test_which_texts_hold_any_word(name: str, more: dict[str, str], marked: bool) -> None:
    assert free(TEXT | more, name) is marked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startsAt", "2030-05-01T12:00:00Z"),
        ("ends_at", "2030-05-02T12:00:00Z"),
        ("dueDate", "2030-05-02"),
        ("month", "2030-05"),
        ("note", "{handle}"),
    ],
)
def test_a_name_that_speaks_of_a_time_gets_one(name: str, value: str) -> None:
    assert filled(name, TEXT, {}, entering=False) == value


def test_a_value_of_a_query_fits_its_pattern() -> None:
    month = {
        "name": "month",
        "in": "query",
        "required": True,
        "schema": TEXT | {"pattern": "^20[0-9]{2}-0[1-9]$"},
    }
    document = {"openapi": "3.1.0", "paths": {"/hours": {"get": {"parameters": [month]}}}}
    row = OperationInputs.of(next(operations(document)), "/hours").row("one", {})
    assert row is not None
    assert re.fullmatch(r"/hours\?month=20\d\d-0[1-9]", row[2])


def test_a_thing_of_everybodys_is_named_where_none_can_be_made() -> None:
    planted = Planted(lists={"pet": "/pets"})
    assert planted.listed(inputs("/visits", "POST")) == {"petId": "{listed:/pets}"}
    assert Planted({"pet": "{id-1}"}, lists={"pet": "/pets"}).listed(inputs("/visits", "POST")) == {}


def test_what_a_thing_needs_is_made_before_it() -> None:
    makers = [inputs(path, "POST") for path in ("/visits", "/pets")]
    made, named = prepared(inputs("/visits/{visitId}", "PATCH"), makers, {})
    assert [(row[1], row[2], row[3].get("petId")) for row in made] == [
        ("POST", "/pets", None),
        ("POST", "/visits", "{id-1}"),
    ]
    assert named == {"visitId": "{id-2}"}


SHOP: dict[str, Any] = {
    "/accounts": {"post": body(name=TEXT, password=TEXT) | answers(id=ID)},
    "/login": {"post": body(name=TEXT, password=TEXT)},
    "/me": {"get": answers(id=ID)},
    "/orders": {"post": body(quoteId=ID) | {"responses": {"201": {}, "402": {}}}},
    "/orders/{orderId}": {"get": {}},
    "/orders/{orderId}/label": {"get": {}},
    "/orders/{orderId}/cancel": {"post": {}},
    "/quotes": {
        "get": {"parameters": [{"name": "sort", "in": "query", "schema": {"enum": ["age"]} | TEXT}]},
        "post": body(grams={"type": "integer"}) | {"responses": {"201": {}}},
    },
    "/quotes/{quoteId}": {"get": {}},
    "/wallet": {"get": {}},
    "/wallet/top-ups": {"post": body(amountCents={"type": "integer", "maximum": 500})},
    "/wallet/transfers": {
        "post": body(toEmail=TEXT, amountCents={"type": "integer"}) | {"responses": {"402": {}}}
    },
    "/couriers/{courierId}": {"get": {}, "put": body(name=TEXT)},
}


def test_what_must_be_priced_and_paid_first_is() -> None:
    asked = steps(further(replace(rows(SHOP), role="Courier")))
    deposit: list[Any] = ["one", "POST", "/wallet/top-ups", {"amountCents": 500}]
    read: list[Any] = ["one", "GET", "/wallet", {}]
    twice = next(one for one in asked if one.count(read) == 3)
    at = twice.index(read)
    cancel = ["one", "POST", f"/orders/{{id-{at}}}/cancel", {}]
    assert sorted(twice[at - 3 : at - 1], key=str) == [["one", "POST", "/quotes", {"grams": 1}], deposit]
    assert twice[at - 1][:3] == ["one", "POST", "/orders"]
    assert twice[at : at + 5] == [read, cancel, read, cancel, read]
    sent: list[Any] = ["other", "POST", "/wallet/transfers", {"toEmail": "{one-mail}", "amountCents": -3}]
    (less,) = [one for one in asked if sent in one]
    assert less[less.index(sent) - 2] == ["other", *deposit[1:]]
    every = [tuple(map(str, row[:3])) for one in asked for row in one]
    assert ("other", "GET", "/orders/{id-4}/label") in every
    assert ("other", "GET", "/couriers/{one.id}") in every
    assert ("other", "PUT", "/couriers/{one.id}") not in every
    sorts = [row[2] for one in asked for row in one if row[2].startswith("/quotes?sort=")]
    assert [*map(unquote, sorts)] == [
        f"/quotes?sort={one}" for one in ("age", ORDERED, ORDERED[:-1], ORDERED, "age")
    ]


def test_groups_share_a_row_and_their_things_have_other_numbers() -> None:
    many = range(MAX_STEPS // 2 + 1)
    groups = [[["one", "POST", "/pets", {"no": at}], ["one", "GET", "/pets/{id-1}", {}]] for at in many]
    one = inputs("/pets", "POST")
    first, second = steps(packed(rows(), [(group, one) for group in groups]))
    assert [row[2] for row in first if row[1] == "GET"] == [
        f"/pets/{{id-{at}}}" for at in range(1, MAX_STEPS // 2 + 1)
    ]
    assert second == groups[-1]
    assert (
        len(steps(packed(rows(), [(groups[0], one)] * 2))) == 2
    )  # a second thing of one name may be refused
    assert (len(first), steps(packed(rows(), []))) == (MAX_STEPS, [])


def test_what_is_read_and_named_by_nothing_later_may_be_left_out_of_a_proof() -> None:
    pet = ["one", "GET", "/pets/{id-1}", {}]
    row = [["one", "POST", "/pets", {}], pet, ["one", "GET", "/me", {}]]
    assert apart([*row, pet]) == ((1,), (2,), (3,))
    assert apart([*row, ["other", "GET", "/people/{one.id}", {}], pet]) == ((4,),)


def test_each_kind_of_question_is_asked_in_few_rows() -> None:
    asked = steps(further(rows()))
    every = [tuple(map(str, row[:3])) for one in asked for row in one]
    assert ("other", "GET", "/groups/{one.groupId}/messages") in every
    assert ("one", "GET", "/pets/{id-1}/remove-it/cancel") in every
    assert any(row[1] == "PATCH" and row[2] == "/pets/{listed}" for one in asked for row in one)
    sent = [row[3] for one in asked for row in one]
    assert {"accountId": "{other.accountId}"} in sent
    assert {"callbackUrl": "{closed}"} in sent
    assert {"accountId": "{one.accountId}", "points": -3} in sent
    assert any(one.get("paid") is True for one in sent)
    assert any(one.get("roles") == ["admin"] for one in sent)
    assert all(len(one) <= MAX_STEPS for one in asked)
    assert len(asked) <= 24


def test_nothing_of_others_is_changed() -> None:
    for row in (row for one in steps(further(rows())) for row in one if row[1] not in ("GET", "POST")):
        own = any(word in str(row[2:]) for word in ("{id-", "{one.", "{other.")) or row[2] == "/me"
        assert own or ("{listed}" in row[2] and set(row[3].values()) == {"{was}"}), row


def test_accounts_of_the_other_roles_that_a_sign_up_offers() -> None:
    offered = TEXT | {"enum": ["buyer", "seller"]}
    paths = PATHS | {"/accounts": {"post": body(name=TEXT, password=TEXT, role=offered)}}
    made = rows(paths)
    (other,) = made.other_roles()
    assert (made.start["fields"]["role"], other.start["fields"]["role"]) == ("buyer", "seller")
    assert [*replace(made, role="Seller").other_roles()] == []  # what they are already
    assert [*rows().other_roles()] == []


def test_accounts_of_another_role_are_asked_what_the_first_were_not_served() -> None:
    every = steps(further(rows()))
    settled = {bare_request(row[1], row[2]) for one in every for row in one}
    again = steps(further(replace(rows(), settled=settled)))
    assert 0 < len(again) < len(every) / 2


def test_what_may_not_be_made_is_the_first_of_its_list() -> None:
    visit = inputs("/visits", "POST")
    pet = inputs("/pets", "POST")
    assert prepared(visit, [pet], {"pet": "/pets"})[1] == {"petId": "{id-1}"}
    refused = rows()
    refused.refused.add(bare_request("POST", "/pets"))
    assert pet.at not in {one.at for one in making(refused)}
    assert pet.at in {one.at for one in making(rows())}
    assert prepared(visit, making(refused), {"pet": "/pets"}) == (
        [["one", "GET", "/pets", {}]],
        {"petId": "{listed:/pets}"},
    )


@pytest.mark.parametrize(
    ("path", "method", "found"),
    [
        ("/users/{id}", "GET", {"id": "{one.id}"}),
        ("/users/{id}", "PATCH", {"id": "{one.id}"}),
        ("/sellers/{id}", "GET", {"id": "{one.id}"}),
        ("/sellers/{id}", "DELETE", {}),  # it would be somebody's
        ("/pets/{id}", "GET", {}),
    ],
)
def test_the_id_of_an_account_stands_for_nothing_that_is_changed(
    path: str, method: str, found: dict[str, str]
) -> None:
    (one,) = operations({"openapi": "3.1.0", "paths": {path: {method.lower(): {}}}})
    planted = Planted(seen=frozenset({"id"}), lists={"pet": "/pets"})
    assert planted.values(OperationInputs.of(one, path)) == found


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (r"^(?=[\s\S]*\S)[^\u0000-\u0008\u007f]*$", True),
        (r"^[a-z0-9_]{3,20}$", True),
        (r"^[A-Za-z0-9_-]{8,64}$", True),
        (r"^\S.*\S$", True),
        (r"^(?!\s*$).+$", True),
        (r"\S", True),
        (r"^.{15}$", True),
        (r"^.{16,}$", False),
        (r"^.{1,14}$", False),
        (r"^[A-Z]{2}[0-9]+$", False),
        (r"^[^a]*$", False),
        (r"^(a+)+$", False),
        (r"^[[a-z]0-9]+$", False),
    ],
)
def test_a_pattern_that_any_word_fits(pattern: str, fits: bool) -> None:
    assert free(TEXT | {"pattern": pattern}) is fits


def test_what_a_thing_with_an_address_does_is_asked_after_its_address_is_that_of_the_listener() -> None:
    """The address of a field that is called so fits, and no other payload is sent there."""
    document = {"openapi": "3.1.0", "paths": PATHS}
    places = ApiPlaces(
        lambda path: "{site}" + path, lambda url: url.removeprefix("{site}"), lambda _: True, True
    )
    made = AccountRows.of(document, Step(tool="qa_fetch", args={"url": "{site}/openapi.json"}), places)
    assert isinstance(made, AccountRows)
    sent = [step for row in steps(further(made)) for step in row if step[2].startswith("/feeds")]
    urls = [str(step[3]["url"]) for step in sent if step[:3] == ["one", "POST", "/feeds"]]
    assert [one for one in urls if one.startswith("https://example.com/{mark}")]
    assert "{mark}" not in urls
    at = next(number for number, step in enumerate(sent) if "{listener}" in str(step[3]))
    assert re.fullmatch(r"/feeds/\{id-\d+\}/test", sent[at + 1][2])


def test_a_row_that_makes_and_lists_much_leaves_room_for_what_is_asked() -> None:
    """Else the same row without it is asked without an end."""
    many = {path: PATHS[path] for path in ("/accounts", "/login", "/me")}
    names = ("tide", "reef", "mast")
    for name in names:
        many[f"/{name}s"] = {"get": {}, "post": body(text=TEXT)}
        many[f"/{name}s/{{{name}Id}}"] = {"get": {}, "patch": body(text=TEXT), "delete": {}}
        many[f"/{name}s/{{{name}Id}}/notes"] = {"get": {}, "post": body(text=TEXT)}
    asked = steps(islice(planted_rows(rows(many)), 30))
    assert len(asked) < 30
    sent = [(step[1], re.sub(r"\d", "N", step[2])) for row in asked for step in row if step[0] == "other"]
    assert {(how, f"/{name}s/{{id-N}}") for how in ("PATCH", "DELETE") for name in names} <= {*sent}


def test_a_file_below_a_thing_is_sent_as_the_description_says() -> None:
    """By the path of the step, whose words are not those of the description."""
    schema = {"properties": {"file": {"type": "string", "format": "binary"}}, "required": ["file"]}
    upload = {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}}}
    files = {"/pets/{petId}/files": {"get": {}, "post": upload}}
    asked = [question.steps[-1].args for question in planted_rows(rows(PATHS | files))]
    kinds = {at: kind for args in asked for at, kind in args.get("bodies", {}).items()}
    assert {re.sub(r"\d", "N", at): kind for at, kind in kinds.items()} == {"/pets/{id-N}/files": "multipart"}


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({}, "https://example.com/{mark}"),
        ({"format": "uri", "example": "https://feeds.example/a"}, "https://feeds.example/a"),
        ({"pattern": "^https://"}, "{handle:^https://}"),
    ],
)
def test_an_address_is_an_example_where_a_description_has_one(more: dict[str, str], sent: str) -> None:
    assert filled("feedUrl", TEXT | more, {}, entering=False) == sent
