"""What a GraphQL endpoint is asked: whether it is one, its schema, what bounds one request. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from fleet.drivers.desk import Question
from fleet.oracles.documents.graphql import INTROSPECTION
from fleet.oracles.documents.graphql_bounds import ALIASES, BATCH, DEEP
from fleet.oracles.documents.graphql_guesses import TrialDocument
from fleet.oracles.web.variations import FORM
from fleet.personas.model import Step
from sandbox.tools.qa_fetch import LONGEST

FETCH = "qa_fetch"
PLACES = ("/graphql", "/api/graphql", "/v1/graphql", "/graphql/v1", "/query", "/gql", "/api")


@dataclass(frozen=True, slots=True)
class GraphqlLookup(Question):
    """A place where a GraphQL API may be, or the question for its schema."""

    url: str = ""
    schema: bool = False

    @property
    def why(self) -> str:
        return "a place where a GraphQL API may be"


@dataclass(frozen=True, slots=True)
class GraphqlGuess(Question):
    """What an API that does not tell its schema says of some names."""

    url: str = ""
    guess: TrialDocument | None = None

    @property
    def why(self) -> str:
        return "an API that does not tell its schema"


def guessing(url: str, guess: TrialDocument, *, reads: bool) -> GraphqlGuess:
    """Queries by GET where it `reads`; a document that says mutation is refused by GET for that alone."""
    if guess.root == "query" and reads:
        return GraphqlGuess((_by_get(url, guess.document),), url=url, guess=guess)
    return GraphqlGuess((_by_post(url, fields={"query": guess.document}),), url=url, guess=guess)


def lookup(url: str, *, posts: bool = False) -> GraphqlLookup:
    """Whether there is one, by GET, or by POST, which is all that most servers take."""
    query = "{__typename}"
    return GraphqlLookup((_by_post(url, fields={"query": query}) if posts else _by_get(url, query),), url)


def first(url: str, *, acts: bool) -> Iterator[Question]:
    """Its schema, by GET, and by POST where acts are permitted; a mutation that does nothing, by GET
    and as a form sends it; many queries at once; a body that ends too early."""
    yield GraphqlLookup((_by_get(url, INTROSPECTION),), url, schema=True)
    yield Question((_by_get(url, "{__typename}"), _by_get(url, "mutation{__typename}")))
    if acts:
        yield GraphqlLookup((_by_post(url, fields={"query": INTROSPECTION}),), url, schema=True)
        batch = json.dumps([{"query": "{ __typename }"}] * BATCH)
        for body in (batch, '{"query": '):  # the latter is no JSON
            yield Question((_by_post(url, body=body, body_type="application/json"),))
        document = "mutation{__typename}"
        whole = json.dumps({"query": document})
        part = '--qa\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        parts = part % ("operations", whole) + part % ("map", "{}") + "--qa--\r\n"
        bodies = (parts, whole, urlencode({"query": document}))
        kinds = ("multipart/form-data; boundary=qa", "text/plain", FORM)
        control = _by_post(url, fields={"query": "{__typename}"})
        for body, kind in zip(bodies, kinds, strict=True):
            yield Question((control, _by_post(url, body=body, body_type=kind)))


def bounds(url: str, probes: Mapping[str, str]) -> Iterator[Question]:
    """A field that is not there; and one that finds nothing: many times, and nested deep."""
    if not probes:
        return
    call, leaf, below = probes["call"], probes["leaf"], probes["below"].split()
    many = " ".join(f"a{at}: {call} {{ {leaf} }}" for at in range(ALIASES))
    queries = [f"{{ {call} {{ {leaf} }} }}", "{ qaNoSuchField }", f"{{ {many} }}"]
    if below:
        deep = [call, *(below * DEEP)[: DEEP - DEEP % len(below)]]
        queries.append(f"{{ {' { '.join(deep)} {{ {leaf} {'} ' * (len(deep) + 1)}")
    for query in queries:
        yield Question((_by_post(url, fields={"query": query}),))


def _by_get(url: str, query: str) -> Step:
    return Step(tool=FETCH, args={"url": f"{url}?query={quote(query, safe='')}", "longest": LONGEST})


def _by_post(url: str, **sent: object) -> Step:
    args: dict[str, Any] = {"url": url, "method": "POST", "longest": LONGEST, **sent}
    return Step(tool=FETCH, args=args)
