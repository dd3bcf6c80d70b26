"""Oracles of a GraphQL endpoint: what bounds a request, and by which method it changes something. Pure.

Each is asked by an answer that costs nothing: of things that are not there, or of the name of a type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from fleet.oracles.documents.graphql import is_introspection
from fleet.oracles.echoes import family, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import parsed
from fleet.oracles.web.variations import FORM
from fleet.severity import Severity

FORMS = (FORM, "multipart/form-data", "text/plain")
"""Types of a body that a page sends to another site without asking it (Fetch, 2.2.2)."""
ALIASES, BATCH, DEEP = 100, 40, 30
"""Far above what clients need (Apollo Router's examples: 30 aliases, batches of 10, a depth of 10 to 20)."""
_ALIAS = re.compile(r"\ba(\d{1,3})\s{0,2}:")

oracle = partial(Oracle, judges=("page",), surface="security")


def _post(query: object, got: object) -> Exchange:
    sent = {"fields": {"query": query}} if isinstance(query, str) else {"body": json.dumps(query)}
    args = {"url": "{site}/graphql", "method": "POST", **sent}
    return Exchange("qa_fetch", args, {"status": 200, "text": json.dumps(got)})


def _get(query: str, got: object) -> Exchange:
    args = {"url": "{site}/graphql?query=" + query}
    return Exchange("qa_fetch", args, {"status": 200, "text": json.dumps(got)})


_NAMED = {"data": {"__typename": "Query"}}
_REFUSED = {"errors": [{"message": "too complex"}]}
_ALIASED = "{ " + " ".join(f'a{at}: order(id: "qa") {{ id }}' for at in range(ALIASES)) + " }"
_NESTED = "{ a: " * DEEP + "id" + " }" * DEEP
_SCHEMA = {"data": {"__schema": {"queryType": {"name": "Query"}, "types": []}}}


def _query(last: Exchange) -> str:
    fields = last.args.get("fields")
    return str(fields.get("query", "")) if isinstance(fields, dict) else ""


def _data(last: Exchange) -> dict[str, Any]:
    read = parsed(str(last.result.get("text", "")))
    data = read.get("data") if isinstance(read, dict) else None
    return data if isinstance(data, dict) else {}


def _at(last: Exchange, what: str, key: str, *, led: tuple[int, ...] = (), **rule: str) -> Observation:
    where = {"route": family(last.args).partition("?")[0], **rule}  # by whatever method it was asked
    title = f"{route(last.args)}: {what}"
    return observed(title, f"{key} {route(last.args)}", "text", led=led, where=where)


@oracle(
    id="graphql-aliases",
    says="a GraphQL request asks for one field a bounded number of times",
    severity=Severity.MEDIUM,
    example=(
        _post("{ __typename }", _NAMED),
        _post(_ALIASED, {"data": {f"a{at}": None for at in range(ALIASES)}}),
    ),
    control=(_post("{ __typename }", _NAMED), _post(_ALIASED, _REFUSED)),
)
def graphql_aliases(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    asked = {f"a{number}" for number in _ALIAS.findall(_query(seen[-1]))}
    if len(asked) >= ALIASES and asked <= set(_data(seen[-1])):
        yield _at(
            seen[-1],
            f"one request asks for a field {len(asked)} times",
            "graphql-aliases",
            rule="graphql-aliases",
        )


@oracle(
    id="graphql-batch",
    says="a GraphQL request holds a bounded number of queries",
    severity=Severity.MEDIUM,
    example=(_post([{"query": "{ __typename }"}] * BATCH, [_NAMED] * BATCH),),
    control=(_post([{"query": "{ __typename }"}] * BATCH, _REFUSED),),
)
def graphql_batch(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    sent, read = (
        parsed(str(one)) for one in (seen[-1].args.get("body", ""), seen[-1].result.get("text", ""))
    )
    answers = read if isinstance(read, list) else []
    queries = sent if isinstance(sent, list) else []
    whole = len(answers) == len(queries) >= BATCH
    if whole and all(isinstance(one, dict) and one.get("data") for one in answers):
        yield _at(
            seen[-1], f"one request holds {len(queries)} queries", "graphql-batch", rule="graphql-batch"
        )


@oracle(
    id="graphql-depth",
    says="a GraphQL query nests to a bounded depth",
    severity=Severity.MEDIUM,
    example=(_post(_NESTED, {"data": {"a": None}}),),
    control=(_post(_NESTED, _REFUSED),),
)
def graphql_depth(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """It passes validation, and asks for something that is not there."""
    opens = accumulate({"{": 1, "}": -1}.get(letter, 0) for letter in _query(seen[-1]))
    depth = max(opens, default=0)
    if depth >= DEEP and _data(seen[-1]):
        yield _at(
            seen[-1], f"a query nested {depth} levels deep is taken", "graphql-depth", rule="graphql-depth"
        )


@oracle(
    id="graphql-get",
    says="a GraphQL mutation does not work by GET, which any page makes a browser send",
    severity=Severity.MEDIUM,
    example=(
        _get("%7B__typename%7D", _NAMED),
        _get("mutation%7B__typename%7D", {"data": {"__typename": "Mutation"}}),
    ),
    control=(_get("%7B__typename%7D", _NAMED), _get("mutation%7B__typename%7D", _REFUSED)),
)
def graphql_get(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the name of the type of queries, that of mutations], each by GET: they are two."""
    if len(seen) < 2 or seen[-1].args.get("method", "GET") != "GET":
        return
    query, mutation = (_data(one).get("__typename") for one in (seen[0], seen[-1]))
    if "query=mutation" in str(seen[-1].args.get("url")) and query and mutation and query != mutation:
        yield _at(seen[-1], "a mutation works by GET", "graphql-get", led=(0,))


def _form(kind: str, got: object) -> Exchange:
    args = {"url": "{site}/graphql", "method": "POST", "body": "mutation{__typename}", "body_type": kind}
    return Exchange("qa_fetch", args, {"status": 200, "text": json.dumps(got)})


@oracle(
    id="graphql-form",
    says="a GraphQL mutation does not work by a body that a form of any page sends",
    severity=Severity.MEDIUM,
    example=(
        _post("{__typename}", _NAMED),
        _form("multipart/form-data; boundary=qa", {"data": {"__typename": "Mutation"}}),
    ),
    control=(_post("{__typename}", _NAMED), _form("multipart/form-data; boundary=qa", _REFUSED)),
)
def graphql_form(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the name of the type of queries, as JSON; that of mutations, in a body that a page sends without
    asking the server (Fetch, 2.2.2)]: they are two."""
    sent = seen[-1].args
    kind = str(sent.get("body_type", "")).partition(";")[0]
    if len(seen) < 2 or kind not in FORMS or "mutation" not in str(sent.get("body")):
        return
    query, mutation = (_data(one).get("__typename") for one in (seen[0], seen[-1]))
    if query and mutation and query != mutation:
        yield _at(seen[-1], f"a mutation works as {kind}", "graphql-form", led=(0,))


@oracle(
    id="graphql-schema",
    says="the schema of a GraphQL API is for its developers",
    severity=Severity.INFO,
    example=(_get("%7B__schema%7D", _SCHEMA),),
    control=(_get("%7B__schema%7D", _REFUSED),),
)
def graphql_schema(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A visitor's introspection query is answered."""
    asked = "__schema" in f"{seen[-1].args.get('url')}{_query(seen[-1])}"
    if asked and is_introspection(parsed(str(seen[-1].result.get("text", "")))):
        yield _at(seen[-1], "introspection answers a visitor", "graphql-schema")
