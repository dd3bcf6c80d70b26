"""A GraphQL schema as a description, and one field of it asked and answered as a route."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.explore.documents.graphql import first
from fleet.oracles.documents.graphql import DOCUMENTS, MOST, PROBES, as_openapi, speaks_graphql
from fleet.oracles.documents.openapi import operations
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.oracles.web.variations import FORM
from sandbox.http import HttpReply
from sandbox.sites.graphql import graphql_answer, graphql_request
from sandbox.spec import Mistake


def scalar(name: str) -> dict[str, Any]:
    return {"kind": "SCALAR", "name": name}


def must(of: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "NON_NULL", "ofType": of}


def takes(name: str, of: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **more}


ORDER = {"kind": "OBJECT", "name": "Order"}
USER = {"kind": "OBJECT", "name": "User"}
QUERIES = [
    {
        "name": "order",
        "description": "An order of yours",
        "args": [takes("id", must(scalar("ID")))],
        "type": ORDER,
    },
    {"name": "orders", "args": [takes("owner", scalar("String"))], "type": {"kind": "LIST", "ofType": ORDER}},
]
MUTATIONS = [
    {
        "name": "createOrder",
        "args": [
            takes("quantity", must(scalar("Int"))),
            takes("note", scalar("String"), defaultValue='"none"'),
        ],
        "type": ORDER,
    }
]
TYPES = [
    {"kind": "OBJECT", "name": "Query", "fields": QUERIES},
    {"kind": "OBJECT", "name": "Mutation", "fields": MUTATIONS},
    {
        "kind": "OBJECT",
        "name": "Order",
        "fields": [
            {"name": "id", "args": [], "type": must(scalar("ID"))},
            {"name": "total", "args": [], "type": scalar("Int")},
            {"name": "owner", "args": [], "type": USER},
        ],
    },
    {
        "kind": "OBJECT",
        "name": "User",
        "fields": [
            {"name": "name", "args": [], "type": scalar("String")},
            {"name": "orders", "args": [], "type": {"kind": "LIST", "ofType": ORDER}},
        ],
    },
]


def schema(types: list[dict[str, Any]]) -> dict[str, Any]:
    roots = {"queryType": {"name": "Query"}, "mutationType": {"name": "Mutation"}}
    return {"data": {"__schema": {**roots, "types": types}}}


def test_each_field_is_an_operation_with_the_document_that_asks_for_it() -> None:
    found = as_openapi(schema(TYPES))
    assert [one.where for one in operations(found)] == [
        "GET /order/{id}",
        "GET /order.owner/{id}",
        "GET /orders",
        "GET /orders.owner",
        "POST /createOrder",
    ]
    documents = found[DOCUMENTS]
    assert documents["order"] == "query($id: ID!) { order(id: $id) { id total } }"
    assert documents["order.owner"] == "query($id: ID!) { order(id: $id) { owner { name } } }"
    assert documents["createOrder"].startswith("mutation($quantity: Int!, $note: String) { createOrder(")
    made = next(one for one in operations(found) if one.path == "/createOrder")
    assert made.required == {"quantity"}
    assert made.fields["note"] == {"type": "string", "default": "none"}
    assert found[PROBES] == {"call": 'order(id: "qa-none")', "leaf": "id", "below": "owner orders"}


@pytest.mark.parametrize(
    "types",
    [
        [],
        [{"kind": "OBJECT", "name": "Query"}],
        [{"kind": "OBJECT", "name": "Query", "fields": [{"name": "a b"}, {"name": 7}, None]}],
        [
            {
                "kind": "OBJECT",
                "name": "Query",
                "fields": [takes("x", {"kind": "LIST"}, args=[takes("a;b", {})])],
            }
        ],
        [{"kind": "OBJECT", "name": "Query", "fields": [takes("x", {}, args=[takes("y", scalar("In}t"))])]}],
    ],
)
def test_a_part_without_the_expected_form_is_left_out(types: list[dict[str, Any]]) -> None:
    assert as_openapi(schema(types))[DOCUMENTS].keys() <= {"x"}


def test_a_hostile_schema_is_bounded() -> None:
    fields = [{"name": f"f{at}", "args": [], "type": scalar("Int")} for at in range(5 * MOST)]
    assert len(as_openapi(schema([{"kind": "OBJECT", "name": "Query", "fields": fields}]))["paths"]) == MOST


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ('{"data": {"__typename": "Query"}}', True),
        ('{"errors": [{"message": "Must provide query string."}]}', True),
        ('{"errors": ["bad"]}', False),
        ('{"data": []}', False),
        ("<html>", False),
    ],
)
def test_what_a_graphql_api_answers(text: str, speaks: bool) -> None:
    assert speaks_graphql(text) is speaks


@pytest.mark.parametrize("refused", [(), ("multipart/form-data; boundary=qa",), ("text/plain", FORM)])
def test_a_mutation_by_a_form_of_any_page_is_seen(refused: tuple[str, ...]) -> None:
    said = []
    for question in first("{site}/graphql", acts=True):
        seen = []
        for step in question.steps:
            kind = step.args.get("body_type", "application/json")
            named = "Mutation" if "mutation" in str(step.args.get("body", "")) else "Query"
            good = step.args.get("method") == "POST" and kind not in refused
            text = json.dumps({"data": {"__typename": named}} if good else {"errors": [{"message": "no"}]})
            seen.append(Exchange(step.tool, step.args, {"status": 200 if good else 400, "text": text}))
        said += [one.sighting.title for one in judge(seen, Facts()) if one.oracle == "graphql-form"]
    kinds = ["multipart/form-data; boundary=qa", "text/plain", FORM]
    forms = [one.partition(";")[0] for one in kinds if one not in refused]
    assert said == [f"{{site}}/graphql: a mutation works as {one}" for one in forms]
    reads = (step for one in first("{site}/graphql", acts=False) for step in one.steps)
    assert not [step for step in reads if step.args.get("method")]


def test_values_of_a_path_are_the_first_variables() -> None:
    known = {"/graphql#order": "query($id: Int!, $x: String) { order }"}
    assert graphql_request("/graphql#order/7", {"x": "y"}, known) == (
        "/graphql",
        {"query": known["/graphql#order"], "variables": {"id": 7, "x": "y"}},
    )
    with pytest.raises(Mistake, match="/args/documents"):
        graphql_request("/graphql#other", {}, known)


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        ({"data": {"order": {"id": 1}}}, 200, {"id": 1}),
        ({"data": {"order": None}}, 404, {}),
        ({"errors": [{"message": "Not authenticated"}], "data": None}, 401, {"error": "Not authenticated"}),
        ({"errors": [{"message": "x", "extensions": {"code": "FORBIDDEN"}}]}, 403, {"error": "x FORBIDDEN"}),
        ({"errors": [{"message": "Order not found"}]}, 404, {"error": "Order not found"}),
        ({"errors": [{"message": "Syntax Error"}]}, 400, {"error": "Syntax Error"}),
        ({"errors": [{"message": "Token expired"}]}, 401, {"error": "Token expired"}),
        ({"errors": [{"message": "unrecognized token: 'x"}]}, 400, {"error": "unrecognized token: 'x"}),
        ({"errors": [{"message": "Internal server error"}]}, 500, {"error": "Internal server error"}),
    ],
)
def test_an_error_has_the_status_that_its_words_stand_for(answer: object, status: int, body: object) -> None:
    reply = HttpReply(200, {}, json.dumps(answer).encode(), 0.0)
    read = graphql_answer(reply)
    assert (read.status, json.loads(read.body)) == (status, body)
