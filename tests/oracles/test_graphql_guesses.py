"""A schema that is not told, learned from the words of a real implementation, without anything being done."""

from __future__ import annotations

import json
from typing import Any

import graphql
import pytest
from graphql import NoSchemaIntrospectionCustomRule, specified_rules

from fleet.oracles.documents.graphql import as_openapi
from fleet.oracles.documents.graphql_guesses import MOST_CUT, GuessedSchema
from fleet.oracles.documents.openapi import operations

SHOP = """
type User { id: ID! name: String email: String orders(limit: Int): [Order!]! role: Role }
enum Role { ADMIN USER }
type Order { id: ID! total: Int owner: User note: String }
input NewUser { name: String! email: String! age: Int }
type Query { me: User user(id: ID!): User users(search: String, role: Role): [User!]! usrHealth: String }
type Mutation {
  createUser(input: NewUser!): User
  login(username: String!, password: String!): String
  deleteOrder(id: Int!): Boolean
}
"""
JS_WORDS = (
    ("Argument 'Query.user(id:)'", "Field 'user' argument 'id'"),
    ("Argument 'Mutation.createUser(input:)'", "Field 'createUser' argument 'input'"),
    ("Argument 'Mutation.deleteOrder(id:)'", "Field 'deleteOrder' argument 'id'"),
    ("'", '"'),
)
"""What graphql-js 16 says for the same, as Apollo does."""


def learned(
    text: str,
    *,
    mutations: bool = True,
    suggests: bool = True,
    words: tuple[tuple[str, str], ...] = (),
    errors_shown: int = 100,
) -> tuple[GuessedSchema, list[object]]:
    """A guess after all its questions, and what was executed meanwhile."""
    schema, done = graphql.build_schema(text), list[object]()
    guessed = GuessedSchema(mutations=mutations)
    rules = [*specified_rules, NoSchemaIntrospectionCustomRule]
    while guess := guessed.next():
        document = graphql.parse(guess.document)
        errors = graphql.validate(schema, document, rules)
        if not errors:
            done.append(graphql.execute(schema, document))
        said: list[dict[str, Any]] = [{**one.formatted} for one in errors[:errors_shown]]
        for one in said:
            one["message"] = one["message"] if suggests else one["message"].partition(" Did you mean")[0]
            for ours, theirs in words:
                one["message"] = one["message"].replace(ours, theirs)
        guessed.learn(guess, json.dumps({"errors": said}))
    return guessed, done


@pytest.mark.parametrize("words", [(), JS_WORDS], ids=["graphql-core", "graphql-js"])
def test_what_is_there_is_learned_and_nothing_is_done(words: tuple[tuple[str, str], ...]) -> None:
    guessed, done = learned(SHOP, words=words)
    assert done == []
    types = {name: dict(one.fields) for name, one in guessed.types.items()}
    assert types == {
        "Query": {"me": "User", "user": "User", "users": "[User!]!", "usrHealth": "String"},
        "Mutation": {"createUser": "User", "login": "String", "deleteOrder": "String"},
        "User": {
            "id": "ID",
            "name": "String",
            "email": "String",
            "role": "String",
            "orders": "[Order!]!",
        },
        "Order": {"id": "ID", "total": "String", "owner": "User", "note": "String"},
    }
    assert guessed.types["Query"].takes == {
        "user": {"id": "ID!"},
        "users": {"search": "String", "role": "Role"},
    }
    assert guessed.types["Mutation"].takes == {
        "createUser": {"input": "NewUser!"},
        "login": {"username": "String!", "password": "String!"},
        "deleteOrder": {"id": "Int!"},
    }
    assert guessed.inputs == {"NewUser": {"name": "String", "email": "String", "age": "Int"}}
    assert guessed.needed == {("NewUser", "name"), ("NewUser", "email")}
    assert guessed.enums == {"Role"}


def test_it_is_a_description_like_any_other() -> None:
    guessed, _ = learned(SHOP)
    found = sorted(one.where for one in operations(as_openapi(guessed.schema())))
    assert found == [
        "GET /me",
        "GET /me.orders",
        "GET /user.orders/{id}",
        "GET /user/{id}",
        "GET /users",
        "GET /users.orders",
        "GET /usrHealth",
        "POST /createUser",
        "POST /deleteOrder",
        "POST /login",
    ]


def test_without_suggestions_words_of_our_own_are_known() -> None:
    guessed, done = learned(SHOP, suggests=False)
    assert done == []
    assert set(guessed.types["Query"].fields) == {"me", "user", "users"}


def test_where_few_errors_are_said_what_is_not_said_is_not_taken_for_there() -> None:
    guessed, done = learned(SHOP, errors_shown=5)
    assert done == []
    assert set(guessed.types["Query"].fields) == {"me", "user", "users", "usrHealth"}
    assert set(guessed.types["User"].fields) <= {"id", "name", "email", "role", "orders"}
    assert {"id", "name", "email"} <= set(guessed.types["User"].fields)
    one_by_one, _ = learned(SHOP, errors_shown=1)
    assert set(one_by_one.types["Query"].fields) <= {"me", "user", "users", "usrHealth"}


def test_without_acts_no_mutation_is_named() -> None:
    guessed = GuessedSchema(mutations=False)
    asked = []
    while guess := guessed.next():
        asked.append(guess.document)
        guessed.learn(guess, "{}")
    assert asked
    assert not [one for one in asked if "mutation" in one]
    assert guessed.schema() == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"errors": 3}',
        '{"errors": [{"message": 3}, {"message": "Cannot query field \\"qaNoSuchField\\" on type \\"Q\\""}]}',
        json.dumps(
            {"errors": [{"message": "Did you mean " + '"x", ' * 5_000, "locations": [{"line": "x"}]}]}
        ),
        json.dumps(
            {"errors": [{"message": "Cannot query field 'a' on type 'B'. Did you mean 'c'?"}] * 3_000}
        ),
    ],
)
def test_a_strangers_words_end(text: str) -> None:
    guessed, count = GuessedSchema(mutations=True), 0
    while guess := guessed.next():
        guessed.learn(guess, text)
        count += 1
    assert count <= MOST_CUT
