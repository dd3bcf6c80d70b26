"""What two accounts may see on a healthy platform: no oracle speaks of it."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from fleet.oracles.account.functions import for_role_only
from fleet.oracles.account.inputs import NARROW, ORDERED, WIDE
from fleet.oracles.account.rows import GONE, ITEM, LIST, ME, MINE, NO, NONE, row
from fleet.oracles.account.tokens import leaves
from fleet.oracles.documents.openapi import operations
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge

FIELDS = {"type": "object", "properties": {"bio": {"type": "string"}}}
RANKED = {"type": "object", "properties": {"role": {"type": "string"}}}


def told(steps: tuple[Exchange, ...], *leads: Exchange) -> list[str]:
    return [one.oracle for one in judge((*leads, *steps), Facts())]


def described(**paths: Any) -> Exchange:
    """A description with these operations of `item` and `me`."""
    named = {{"item": ITEM, "me": ME}[name]: item for name, item in paths.items()}
    text = json.dumps({"openapi": "3.1.0", "paths": named})
    return Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})


def removed_by_the_other(state: str, was: str = "booked") -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", ITEM, {}, MINE | {"facts": {"state": f'"{was}"'}}),
        ("other", "GET", ITEM, {}, GONE),
        ("other", "DELETE", ITEM, {}, NONE | {"status": 204}),
        ("one", "GET", ITEM, {}, MINE | {"facts": {"state": f'"{state}"'}}),
    )


@pytest.mark.parametrize(
    ("state", "was", "removed"),
    [("cancelled", "booked", True), ("done", "booked", False), ("archived", "archived", False)],
)
def test_a_thing_that_stays_as_removed_is_removed(state: str, was: str, removed: bool) -> None:
    assert told(removed_by_the_other(state, was)) == ["account-removal"] * removed


def read_by_the_other() -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", ITEM, {}, MINE),
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("anonymous", "GET", ITEM, {}, NO),
        ("other", "GET", ITEM, {}, MINE),
    )


@pytest.mark.parametrize(
    ("says", "private"),
    [
        ({"summary": "One of my things"}, True),
        ({"summary": "Your own thing"}, True),
        ({"summary": "A thing", "description": "Served only to its owner."}, True),
        ({"summary": "A thing (owner only)"}, True),
        ({"summary": "A thing", "responses": {"403": {"description": "Not the owner"}}}, True),
        ({"summary": "A thing", "responses": {"403": {"description": "Belongs to another account"}}}, True),
        ({"summary": "A thing. Send your token."}, False),
        ({"summary": "A thing and its owner"}, False),
        ({"summary": "Returns only title and author of a thing"}, False),
        ({"summary": "A thing, private or public"}, False),
        ({"summary": "Your team's things"}, False),
        ({"summary": "My things are listed; one is read by everyone who has the link"}, False),
        ({"summary": "Needs a personal access token"}, False),
        ({"summary": "A thing", "description": "Anyone reads it; only the owner can change it."}, False),
        ({"summary": "A thing", "responses": {"403": {"description": "Forbidden"}}}, False),
        ({"summary": "A thing", "responses": {"403": {"description": "The token lacks a scope"}}}, False),
    ],
)
def test_what_a_description_calls_ones_own(says: dict[str, Any], private: bool) -> None:
    found = told(read_by_the_other(), described(item={"get": says}))
    assert found == (["account-read"] if private else [])


def test_what_is_said_of_another_path_that_ends_so_is_not_said_of_this_one() -> None:
    paths = {"/things/{id}": {"get": {"summary": "One of my things"}}, ITEM: {"get": {"summary": "A thing"}}}
    text = json.dumps({"openapi": "3.1.0", "paths": paths})
    lead = Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})
    assert told(read_by_the_other(), lead) == []


def test_a_thing_that_the_other_reads_a_moment_later_was_never_its_makers_alone() -> None:
    write = {"text": "{mark}"}
    late = row(
        ("one", "GET", ITEM, {}, MINE),
        ("other", "GET", ITEM, {}, GONE),  # not yet on the replica
        ("other", "PUT", ITEM, write, NONE),
        ("one", "GET", ITEM, {}, MINE | {"other": True}),
        ("other", "GET", ITEM, {}, MINE | {"other": True}),
    )
    assert told(late) == []
    unread = row(
        ("other", "GET", ITEM, {}, GONE), ("other", "PUT", ITEM, write, NONE), ("one", "PUT", ITEM, {}, NONE)
    )
    assert told(unread) == []  # nothing that the maker has read


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (FIELDS, ["account-raised"]),
        ({"allOf": [FIELDS, RANKED]}, []),
        ({**FIELDS, "allOf": [RANKED]}, []),
        ({**FIELDS, "additionalProperties": True}, []),
        ({**FIELDS, "additionalProperties": {"type": "string"}}, []),
        ({**FIELDS, "anyOf": [RANKED]}, []),
        ({**FIELDS, "additionalProperties": False}, ["account-raised"]),
    ],
)
def test_a_role_that_the_description_lets_anyone_send(schema: dict[str, Any], found: list[str]) -> None:
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    before, after = (MINE | {"facts": {"role": said}} for said in ('"guest"', '"admin"'))
    asked = row(
        ("one", "GET", ME, {}, before),
        ("one", "PATCH", ME, {"role": "admin"}, NONE),
        ("one", "GET", ME, {}, after),
        ("other", "GET", ME, {}, before),
    )
    assert told(asked, described(me={"patch": body})) == found
    assert told(asked, described(me={"patch": "not an operation"})) == []


def test_a_right_that_every_new_account_gets_a_moment_later_was_not_taken() -> None:
    body = {"requestBody": {"content": {"application/json": {"schema": FIELDS}}}}
    lead = described(me={"patch": body})
    new, grown = (MINE | {"facts": {"verified": said}} for said in ("false", "true"))
    for other, found in ((grown, []), (new, ["account-raised"]), (NO, [])):
        asked = row(
            ("one", "GET", ME, {}, new),
            ("one", "PATCH", ME, {"verified": True}, NONE),
            ("one", "GET", ME, {}, grown),
            ("other", "GET", ME, {}, other),
        )
        assert told(asked, lead) == found


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        ({}, ["account-method"]),
        ({"responses": {"405": {"description": "Not on this server"}}}, []),
        ({"responses": {"4XX": {"description": "No"}}}, []),
        ({"deprecated": True}, []),
    ],
)
def test_a_refusal_that_the_description_states(operation: dict[str, Any], found: list[str]) -> None:
    asked = row(("one", "DELETE", ME, {}, NONE | {"status": 405}))
    assert told(asked, described(me={"delete": operation})) == found


def test_a_token_that_ends_soon_ends_with_its_session_only_where_the_description_says_so() -> None:
    first = ("one", "GET", ME, dict[str, Any](), MINE), ("anonymous", "GET", ME, dict[str, Any](), NO)
    (last,) = row(*first, ("one", "POST", "/api/logout", {}, NONE), ("one", "GET", ME, {}, MINE))
    brief = Exchange(last.tool, last.args, {**last.result, "brief": True})
    assert told((last,)) == ["account-ended"]
    assert told((brief,)) == []
    for says, found in (
        ("Revokes the token at once", ["account-ended"]),
        ("The token ends.", ["account-ended"]),
        ("End this token.", ["account-ended"]),
        ("Log out. The token ends in an hour at most.", []),
        ("Revokes the refresh token; the access token is valid until it ends", []),
        ("Ends the session", []),
    ):
        text = json.dumps({"openapi": "3.1.0", "paths": {"/api/logout": {"post": {"summary": says}}}})
        lead = Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})
        assert told((brief,), lead) == found


def test_what_is_cancelled_twice_gives_its_price_back_once() -> None:
    read, act = ("one", "GET", "/api/wallet", dict[str, Any]()), "/api/orders/{id-1}/cancel"

    def cancelled(*balances: int, again: int = 200) -> list[str]:
        reads = [(*read, NONE | {"facts": {"balanceCents": str(one)}}) for one in balances]
        acts = [("one", "POST", act, dict[str, Any](), NONE | {"status": one}) for one in (200, again)]
        return told(row(reads[0], acts[0], reads[1], acts[1], reads[2]))

    assert cancelled(10, 45, 80) == ["account-twice"]
    assert cancelled(10, 45, 45) == []  # it may be sent again, and nothing comes of it
    assert cancelled(10, 45, 80, again=409) == []  # something else was paid meanwhile
    assert cancelled(10, 10, 10) == []


@pytest.mark.parametrize(
    ("balances", "found"),
    [((99, 103), ["account-negative"]), ((99, 98), []), ((99, 100), []), ((99, 99), [])],
)
def test_a_negative_amount_is_added_to_what_its_sender_has(
    balances: tuple[int, int], found: list[str]
) -> None:
    sent = [
        ("other", "POST", "/api/transfers", {"amountCents": many}, NONE | {"facts": {"balance": str(left)}})
        for many, left in zip((1, -4), balances, strict=True)
    ]
    assert told(row(*sent)) == found


@pytest.mark.parametrize(
    ("whole", "cut", "found"),
    [
        (200, 500, ["account-ordered"]),
        (400, 400, []),  # a name that there is not is refused
        (500, 500, []),  # so is any, badly
        (200, 200, []),  # it is ignored
        (200, 400, []),  # a rule for brackets
    ],
)
def test_an_expression_in_place_of_a_name_to_sort_by(whole: int, cut: int, found: list[str]) -> None:
    sent = zip(("id", ORDERED, ORDERED[:-1], ORDERED, "id"), (200, whole, cut, whole, 200), strict=True)
    asked = (
        ("one", "GET", f"/api/things?sort={quote(one)}", dict[str, Any](), NONE | {"status": status})
        for one, status in sent
    )
    assert told(row(*asked)) == found


@pytest.mark.parametrize(
    ("most", "taken", "found"),
    [
        (100, "100000", ["account-page-size"]),
        (100, "100", []),  # it is cut to its bound
        (100_000, "100000", []),  # it is within its bound
    ],
)
def test_a_page_size_beyond_its_stated_bound(most: int, taken: str, found: list[str]) -> None:
    size = {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": most}}
    text = json.dumps({"openapi": "3.1.0", "paths": {LIST: {"get": {"parameters": [size]}}}})
    lead = Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})
    asked = (
        ("other", "GET", f"{LIST}?limit={sent}", dict[str, Any](), NONE | {"facts": {"limit": got}})
        for sent, got in (("5", "5"), ("100000", taken))
    )
    assert told(row(*asked), lead) == found


@pytest.mark.parametrize(
    ("status", "sent", "found"),
    [
        (500, {"text": "{mark}", "to": None}, ["account-fails"]),
        (422, {"text": "{mark}", "to": None}, []),
        (500, {"text": "{mark}"}, []),  # the object was left out: what is missing is no value
    ],
)
def test_null_in_place_of_an_object(status: int, sent: dict[str, Any], found: list[str]) -> None:
    whole: dict[str, Any] = {"text": "{mark}", "to": {"name": "Ida", "city": "Bern"}}
    made = (
        ("one", "POST", LIST, given, NONE | {"status": got})
        for given, got in ((whole, 201), (sent, status), (whole, 201))
    )
    assert told(row(*made)) == found


@pytest.mark.parametrize(
    ("refused", "public", "found"),
    [
        (404, False, ["account-searched"]),
        (200, False, []),  # the thing is not refused to the other
        (404, True, []),  # its list shows it as well
    ],
)
def test_a_search_that_shows_what_lists_do_not(refused: int, public: bool, found: list[str]) -> None:
    thing = f"{LIST}/{{id-1}}"
    steps = row(
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE | {"one": public}),
        ("one", "GET", thing, {}, MINE),
        ("other", "GET", thing, {}, NONE | {"status": refused}),
        ("other", "GET", f"{LIST}?q={{one-part}}", {}, MINE),
    )
    assert told(steps) == found


@pytest.mark.parametrize(
    ("method", "path", "login", "ends"),
    [
        ("POST", "/v1/logout", "", True),
        ("POST", "/v1/auth/sign-out", "", True),
        ("DELETE", "/v1/session", "", True),
        ("DELETE", "/v1/sessions", "/v1/sessions", True),
        ("DELETE", "/v1/sessions/current", "/v1/sessions", True),
        ("DELETE", "/v1/sessions", "/v1/login", False),  # all the others of this account, perhaps
        ("DELETE", "/v1/sessions/others", "/v1/sessions", False),
        ("POST", "/v1/logout-others", "", False),
        ("DELETE", "/v1/push-tokens", "", False),
        ("DELETE", "/v1/sessions/{id}", "/v1/sessions", False),
        ("GET", "/v1/logout", "", False),
    ],
)
def test_which_request_ends_a_session(method: str, path: str, login: str, ends: bool) -> None:
    assert leaves(method, path, login) is ends


def test_a_refusal_with_status_200_is_not_the_record_of_an_account() -> None:
    for real, forged, found in (
        (MINE, NONE, []),
        (MINE, MINE, ["account-token"]),
        (NONE | {"facts": {"role": "1"}}, NONE | {"facts": {"error": "1"}}, []),
        (NONE | {"facts": {"role": "1"}}, NONE | {"facts": {"role": "1"}}, ["account-token"]),
    ):
        shown = row(
            ("one", "GET", ME, {}, real), ("anonymous", "GET", ME, {}, NO), ("cut", "GET", ME, {}, forged)
        )
        assert told(shown) == found


def test_a_small_description_is_not_a_way_to_hold_a_value_against_a_great_many_schemas() -> None:
    schemas = {
        f"S{level}": {"allOf": [{"$ref": f"#/components/schemas/S{level + 1}"}] * 40} for level in range(8)
    }
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    document = {
        "openapi": "3.1.0",
        "paths": {"/moss": {"get": {"responses": {"200": answer}}}},
        "components": {"schemas": schemas},
    }
    lead = Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": json.dumps(document)})
    moss = {"status": 200, "content_type": "application/json", "text": "{}"}
    assert told((Exchange("qa_fetch", {"url": "{site}/moss"}, moss),), lead) == []  # it ends


def test_a_quote_in_an_error_that_json_escapes_is_still_the_words_of_a_database() -> None:
    error = json.dumps({"error": 'unrecognized token: "\' LIMIT 5"'})
    refused = NONE | {"status": 400, "said": f": {error}"}
    sent = ("{mark}", "{mark}'", "{mark}''", "{mark}")
    answers = (NONE, refused, NONE, NONE)
    steps: list[Any] = [
        ("one", "GET", f"/graphql#find/{one}", {}, got) for one, got in zip(sent, answers, strict=True)
    ]
    assert told(row(*steps)) == ["account-quoted"]


def test_what_many_share_is_no_thing_of_ones_own_though_its_record_is_the_same() -> None:
    """A record without a text of ours, the same for both: their lists have it for both, too."""
    record = NONE | {"facts": {"id": "4", "room": "2", "day": "3"}}
    both = NONE | {"many": 1}
    item = "/api/things/{id-1}"
    shared = row(
        ("one", "POST", LIST, {}, record),
        ("one", "GET", LIST, {}, both),
        ("other", "GET", LIST, {}, both),
        ("one", "GET", item, {}, record),
        ("anonymous", "GET", item, {}, NO),
        ("other", "GET", item, {}, record),
    )
    lead = described(item={"get": {"summary": "One of my things"}})
    assert told(shared, lead) == []
    (exchange,) = shared
    answers = [one if at != 2 else NONE for at, one in enumerate(exchange.result["answers"])]
    alone = (Exchange(exchange.tool, exchange.args, {"ok": True, "answers": answers}),)
    assert told(alone, lead) == ["account-crossed"]


def test_a_search_for_words_finds_the_same_by_a_condition_that_is_false() -> None:
    """What is true and its control are the same words, so what finds some by words finds them by both."""
    true, false = (sorted(re.findall(r"\w+", one)) for one in (WIDE, NARROW))
    assert true == false
    found = [NONE | {"many": many} for many in (0, 9, 9, 0)]
    sent = ("{mark}", "{mark}" + WIDE, "{mark}" + NARROW, "{mark}")
    steps: list[Any] = [
        ("one", "POST", "/api/search", {"q": one}, got) for one, got in zip(sent, found, strict=True)
    ]
    assert told(row(*steps)) == []


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ("All accounts, for admins", True),
        ("Available to the staff", True),
        ("For moderators only.", True),
        ("Staff only", True),
        ("Report a thing to the moderators", False),
        ("A note for the staff of your plot", False),
    ],
)
def test_what_is_sent_to_a_role_is_not_kept_for_it(says: str, kept: bool) -> None:
    lead = described(item={"get": {"summary": says}})
    seen = row(("other", "GET", ITEM, {}, NONE | {"facts": {"name": '"x"'}}))
    assert told(seen, lead) == ["account-function"] * kept


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"role": '"ADMIN"'}, []),
        ({"is_admin": "true"}, []),
        ({"role": '"member"'}, ["account-function"]),
        ({"is_admin": "false"}, ["account-function"]),
        ({"role": '"admin_of_a_group"'}, []),
    ],
)
def test_who_leads_an_organisation_since_it_signed_up_may_do_what_that_role_may(
    facts: dict[str, str], found: list[str]
) -> None:
    lead = described(item={"get": {"summary": "For admins only"}}, me={"get": {}})
    seen = row(
        ("other", "GET", ME, {}, NONE | {"facts": facts}),
        ("other", "GET", ITEM, {}, NONE | {"facts": {"name": '"x"'}}),
    )
    assert told(seen, lead) == found
    record, served = seen[0].args["steps"], seen[0].result["answers"]
    alone = Exchange("qa_account", {"url": "x", "steps": record[1:]}, {"ok": True, "answers": served[1:]})
    assert told((alone,), lead) == []  # its role could be known


def test_a_field_of_graphql_and_what_is_below_it_are_one_function() -> None:
    steps: list[Any] = [
        ("other", "GET", f"/graphql#{one}", {}, NONE | {"many": 2})
        for one in ("users", "users.team", "users.notes")
    ]
    fields = {
        f"/{one}": {"get": {"summary": "Admins only"}} for one in ("users", "users.team", "users.notes")
    }
    text = json.dumps({"openapi": "3.1.0", "paths": fields})
    lead = Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})
    assert told(row(*steps), lead) == ["account-function"]


@pytest.mark.parametrize(("role", "found"), [("seller", []), ("buyer", ["account-function"])])
def test_a_function_for_the_role_that_one_signed_up_with_is_open(role: str, found: list[str]) -> None:
    kinds = {"type": "object", "properties": {"role": {"type": "string", "enum": ["buyer", "seller"]}}}
    body = {"requestBody": {"content": {"application/json": {"schema": kinds}}}}
    lead = described(item={"get": {"summary": "What was sold, for sellers"}}, me={"get": {}, "patch": body})
    seen = row(
        ("other", "GET", ME, {}, NONE | {"facts": {"role": f'"{role}"'}}),
        ("other", "GET", ITEM, {}, NONE | {"facts": {"name": '"x"'}}),
    )
    assert told(seen, lead) == found


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        *(
            (said, True)
            for said in (
                "Visible to members.",
                "Visible within the team.",
                "Visible to the user and to the team's planners.",
                "Only visible to its owner",
                "Available to the author until it is published.",
                "Confidential.",
                "For staff only.",
            )
        ),
        *(
            (said, False)
            for said in (
                "Available colours",
                "Available to order",
                "For display purposes",
                "For members: ten per cent off",
                "Only the first ten",
                "Private: whether the repository is",
                "Shown on the page of the item",
                "Visible name",
                "Visible to everyone",
                "Visible to customers",
                "Shown to the team and to visitors",
            )
        ),
    ],
)
def test_only_a_field_that_is_kept_for_some_is_kept(said: str, kept: bool) -> None:
    properties = {"name": {}, "phone": {"description": said}}
    media = {"application/json": {"schema": {"type": "object", "properties": properties}}}
    lead = described(item={"get": {"responses": {"200": {"content": media}}}})
    steps = row(("anonymous", "GET", ITEM, {}, NONE | {"holds": ("name", "phone")}))
    assert ("account-kept" in told(steps, lead)) is kept


def test_a_field_that_another_object_of_the_answer_shows_to_all_is_not_kept() -> None:
    phone = {"phone": {"description": "Visible to members."}}
    objects = {
        "author": {"properties": phone},
        "shop": {"properties": {"phone": {"description": "Its line."}}},
    }
    media = {"application/json": {"schema": {"type": "object", "properties": objects}}}
    lead = described(item={"get": {"responses": {"200": {"content": media}}}})
    steps = row(("anonymous", "GET", ITEM, {}, NONE | {"holds": ("author", "shop", "phone")}))
    assert "account-kept" not in told(steps, lead)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("Agents and admins only.", True),
        ("Remove a ticket; admins only", True),
        ("Comments, moderated by admins.", False),
        ("Everybody may change their own name; admins that of others.", False),
        ("Only the first 20 lines are kept. Shown to admins as well.", False),
    ],
)
def test_what_is_for_a_role_only(text: str, only: bool) -> None:
    """A member whom another one invited may do what admins may do as well."""
    (one,) = operations({"openapi": "3.1.0", "paths": {"/x": {"post": {"summary": text}}}})
    assert for_role_only(one, "/x") is only
