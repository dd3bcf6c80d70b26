"""The explorer of APIs, on a real HTTP API with three defects and on its clean twin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import graphql
import httpx
import pytest

from fleet.config import Platform
from fleet.drivers.explore.account.api_rows import AccountTry
from fleet.drivers.explore.documents import api, api_cases
from fleet.drivers.explore.documents import graphql as api_graphql
from fleet.drivers.explore.documents.api import DescriptionLookup
from fleet.drivers.explore.documents.api_description import ApiDescription, read_description
from fleet.drivers.explore.driver import explorer
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.table import chosen
from fleet.oracles.documents.graphql_guesses import MOST
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step
from tests.doubles.drivers import MemoryDesk
from tests.drivers.orchard import DEFECTS, DESCRIPTION, orchard

pytestmark = pytest.mark.anyio
NEEDS = pytest.mark.skipif(bool(api_cases.lacking()), reason=api_cases.lacking() or "-")


class OrchardDesk:
    """Answers an explorer's questions over HTTP and has them judged, as the desk of a run does."""

    def __init__(self, site: str, *, acts: bool = True) -> None:
        web = {"site": site, "act_paths": ["{site}/v1/trees"]}
        chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
        self.platform = Platform.model_validate({"name": "orchard", "chain": chain, "web": web})
        self.ground = ExplorerContext(platform=self.platform, tools=frozenset({"qa_fetch"}), acts=acts)
        self.urls, self.facts = OwnUrls(self.platform), Facts.of(self.platform)
        self.sent: list[str] = []
        self.found: dict[str, str] = {}
        """Oracle and signature of each defect, with a title."""
        self._client = httpx.Client()

    def fetch(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """One result, as qa_fetch gives it."""
        method, body = args.get("method", "GET"), args.get("body", "")
        headers = dict(args.get("headers", {})) | ({"content-type": args["body_type"]} if body else {})
        reply = self._client.request(
            method, self.urls.actual(args["url"]), headers=headers, content=body.encode()
        )
        self.sent.append(f"{method} {args['url']}")
        text = reply.text[: args.get("longest", 8_000)]
        kind = reply.headers.get("content-type", "")
        return {
            "ok": reply.status_code < 400,
            "status": reply.status_code,
            "content_type": kind,
            "text": text,
        }

    async def explore(self, folder: Path, seed: str = "s") -> str:
        def answered(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
            assert tool == "qa_fetch"
            return self.fetch(args)

        desk = MemoryDesk(answers=answered, calls=600)
        done = await explorer({"api": self._judging}, self.ground, Notebook(folder), seed)(desk)
        self._client.close()
        return done

    def _judging(self, ground: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> api.ApiExplorer:
        made, judged = api.make(ground, chance, state), self._judge
        learn = made.learn

        def judged_first(question: Any, results: Any) -> None:
            judged(question, results)
            learn(question, results)

        made.learn = judged_first  # type: ignore[method-assign]
        return made

    def _judge(self, question: Any, results: Any) -> None:
        seen = [
            Exchange(step.tool, step.args, result)
            for step, result in zip(question.steps, results, strict=True)
        ]
        for index in range(len(seen)):
            for one in judge(seen[: index + 1], self.facts):
                self.found[f"{one.oracle}: {one.sighting.signature}"] = one.sighting.title


@NEEDS
async def test_three_defects_are_five_items_and_each_once(tmp_path: Path) -> None:
    with orchard(DEFECTS) as site:
        desk = OrchardDesk(site)
        assert "questions asked" in await desk.explore(tmp_path)
    assert set(desk.found) == {
        "server-error: server-error {site}/v1/search 500",
        "server-error: server-error {site}/v1/trees 500",
        "described-answer: described-value GET /trees/{id}",
        "described-required: described-required GET /search",
        "described-required: described-required POST /trees",
    }


@NEEDS
async def test_the_clean_twin_yields_nothing(tmp_path: Path) -> None:
    with orchard(frozenset()) as site:
        for seed in ("s", "t"):
            desk = OrchardDesk(site)
            await desk.explore(tmp_path / seed, seed)
            assert desk.found == {}
            assert {"GET {site}/v1/search", "POST {site}/v1/trees"} <= {
                one.partition("?")[0] for one in desk.sent
            }


@NEEDS
async def test_nothing_is_sent_where_acts_are_not_permitted(tmp_path: Path) -> None:
    with orchard(DEFECTS) as site:
        desk = OrchardDesk(site, acts=False)
        await desk.explore(tmp_path)
        assert {one.partition(" ")[0] for one in desk.sent} == {"GET"}


@NEEDS
async def test_the_next_run_asks_with_other_values_and_the_same_run_with_the_same(tmp_path: Path) -> None:
    with orchard(frozenset()) as site:
        runs = []
        for folder, seed in (("one", "s"), ("two", "s"), ("two", "s")):
            desk = OrchardDesk(site)
            await desk.explore(tmp_path / folder, seed)
            runs.append([one for one in desk.sent if "/v1/" in one])
    assert runs[0] == runs[1]
    assert set(runs[2]) - set(runs[1])


async def test_without_the_library_it_asks_for_graphql_alone_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fleet.explore")
    monkeypatch.setattr(api_cases, "find_spec", lambda name: None)
    with orchard(frozenset()) as site:
        made = api.make(OrchardDesk(site).ground, Random(1), {})
    asked = {str(step.args["url"]) for one in made.ask(48) for step in one.steps}
    assert asked
    assert all(url.endswith("?query=%7B__typename%7D") for url in asked)
    assert "not installed: schemathesis (pip install 'qa-fleet[api]')" in caplog.text


def test_its_line_in_the_table() -> None:
    assert list(chosen(["api"], frozenset({"qa_fetch"}))) == ["api"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>", "not a description in JSON: "),
        ('{"openapi": "3.1.0"}', "a description without paths"),
        ('{"swagger": "1.2", "paths": {}}', "neither OpenAPI 3.0 or 3.1, nor Swagger 2.0"),
        ('{"paths": {}}', "not an OpenAPI 3 description"),
        (json.dumps(DESCRIPTION | {"x": [0] * 20_001}), "not a description in JSON: more than 20000 values"),
        (json.dumps(DESCRIPTION | {"x": {"$ref": "http://a.test/x"}}), "a description with a reference to"),
        (json.dumps(DESCRIPTION)[:-1] + ',"x":' + "[" * 60 + "]" * 60 + "}", "a description nested deeper"),
        ("[" * 100_000, "not a description in JSON: nested too deeply"),
    ],
)
def test_a_description_that_cannot_be_used(text: str, why: str) -> None:
    said = read_description(text)
    assert isinstance(said, str)
    assert said.startswith(why)


def test_what_costs_a_generator_much_is_left_out_but_not_a_field_of_that_name() -> None:
    fields = {"pattern": {"type": "string", "pattern": "(a+)+$", "minLength": 10**9}}
    schemas = {"A": {"type": "object", "properties": fields}}
    read = read_description(json.dumps(DESCRIPTION | {"components": {"schemas": schemas}}))
    assert isinstance(read, ApiDescription)
    kept = read.document["components"]["schemas"]["A"]["properties"]
    assert kept == {"pattern": {"type": "string"}}


@NEEDS
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/components/schemas/Gone"},
        {"$ref": "#/components/schemas/Self"},
        {"type": "string", "enum": []},
        {"type": 7},
        {"minimum": "x", "multipleOf": 0},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
    ],
)
def test_a_description_that_breaks_its_reader_costs_no_run(schema: dict[str, Any]) -> None:
    operation = {"parameters": [{"name": "q", "in": "query", "schema": schema}], "responses": {}}
    document = {"openapi": "3.1.0", "paths": {"/a": {"get": operation}}}
    document["components"] = {"schemas": {"Self": {"$ref": "#/components/schemas/Self"}}}
    read = read_description(json.dumps(document))
    assert isinstance(read, ApiDescription)
    for one in api_cases.requests(read.document, "GET /a", 1):
        assert one.path.partition("?")[0] == "/a"


def test_a_description_is_found_over_pages_that_lead_to_it_each_asked_once() -> None:
    chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
    web = {"site": "http://127.0.0.1:2", "proxy": "http://127.0.0.1:3"}
    platform = Platform.model_validate({"name": "two-places", "chain": chain, "web": web})
    made = api.make(
        ExplorerContext(platform=platform, tools=frozenset({"qa_fetch"}), acts=False), Random(1), {}
    )
    leads = {
        "{site}/": "/handbook/",
        "{site}/handbook/": "/handbook/api",
        "{site}/handbook/api": "/v2/api-docs.json",
    }
    asked: list[str] = []
    while questions := made.ask(60):
        for question in questions:
            asked.append(url := str(question.steps[-1].args["url"]))
            made.learn(question, [{"status": 200, "text": "-", "links": [leads.get(url, "/handbook/")]}])
    assert asked.count("{site}/v2/api-docs.json") == 1
    assert len(asked) == len(set(asked))


@NEEDS
@pytest.mark.parametrize("value", ["a b", "x/y", "50%", "ü", "a%2Fb", "100"])
def test_a_value_of_a_path_is_encoded_once(value: str) -> None:
    """`a%2Fb` in a description is the library's to read: it takes it for `a/b`."""
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "enum": [value]}}
    operation = {"parameters": [parameter], "responses": {"200": {"description": "-"}}}
    read = read_description(json.dumps({"openapi": "3.0.3", "paths": {"/t/{id}/end": {"get": operation}}}))
    assert isinstance(read, ApiDescription)
    paths = [one.path for one in api_cases.requests(read.document, "GET /t/{id}/end", 1)]
    assert unquote(value) in {unquote(path.split("/")[2]) for path in paths}
    assert not any("%25" in path for path in paths if value != "50%")


@NEEDS
def test_each_whole_number_is_asked_at_the_edges_of_numbers() -> None:
    nights = {"name": "nights", "in": "query", "required": True, "schema": {"type": "integer", "minimum": 1}}
    answers = {"responses": {"200": {"description": "-"}}}
    read = read_description(
        json.dumps({"openapi": "3.0.3", "info": {"title": "x", "version": "1"},
                    "paths": {"/quote": {"get": {"parameters": [nights], **answers}}}})
    )  # fmt: skip
    assert isinstance(read, ApiDescription)
    asked = {one.path for one in api_cases.requests(read.document, "GET /quote", 1)}
    assert {f"/quote?nights={edge}" for edge in (0, -1, 2**31, 2**63)} <= asked


@NEEDS
def test_a_document_that_shows_calls_is_asked_like_a_description() -> None:
    chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
    web = {"site": "http://127.0.0.1:2", "proxy": "http://127.0.0.1:3", "act_paths": ["{site}/v3"]}
    platform = Platform.model_validate({"name": "in-words", "chain": chain, "web": web})
    made = api.make(
        ExplorerContext(platform=platform, tools=frozenset({"qa_fetch"}), acts=True), Random(1), {}
    )
    words = "\n".join(
        (
            "GET /v3/growth?spores=9 and GET http://127.0.0.1:3/v3/other?n=1",
            'POST /v3/notes {"text": "a moss"}',
            'POST /v4/notes {"text": "a fern"}',  # no acts there
        )
    )
    asked: list[dict[str, Any]] = []
    while questions := made.ask(60):
        for question in questions:
            asked += [dict(step.args) for step in question.steps]
            text = words if question.steps[0].args["url"] == "{site}/docs" else "-"
            made.learn(question, [{"status": 200, "text": text, "links": []}] * len(question.steps))
    urls = [str(one["url"]) for one in asked]
    assert {f"{{site}}/v3/growth?spores={edge}" for edge in (0, -1, 2**63)} <= set(urls)
    assert not any("/v3/other" in url or "/v4/" in url for url in urls)
    bodies = [str(one["body"]) for one in asked if one.get("method") == "POST" and "body" in one]
    assert any(body.startswith('{"text": "') and not body.endswith("}") for body in bodies)  # cut


SCHEMA = graphql.build_schema(
    "type User { id: ID! name: String email: String } type Query { me: User user(id: ID!): User }"
    " type Mutation { login(username: String!, password: String!): String"
    " register(username: String!, email: String!, password: String!): User }"
)


def refusing(steps: Sequence[Step], *, gets: bool = True) -> dict[str, Any]:
    """An endpoint, `/graphql`, that tells no schema: what it answers to the last of these steps. To a GET
    only if it `gets`."""
    url, fields = str(steps[-1].args["url"]), steps[-1].args.get("fields", {})
    elsewhere = "/graphql" not in url or "/graphql/" in url or "/api/graphql" in url
    if elsewhere or not (gets or "method" in steps[-1].args):
        return {"ok": False, "status": 404, "text": "not found"}
    document = unquote(url.partition("?query=")[2]) or str(fields.get("query", ""))
    if not document:
        return {"ok": False, "status": 400, "text": '{"errors": [{"message": "no query"}]}'}
    rules = [*graphql.specified_rules, graphql.NoSchemaIntrospectionCustomRule]
    errors = graphql.validate(SCHEMA, graphql.parse(document), rules)
    said = {"errors": [one.formatted for one in errors]} if errors else {"data": {"__typename": "Query"}}
    return {"ok": not errors, "status": 400 if errors else 200, "text": json.dumps(said)}


@pytest.mark.parametrize("gets", [True, False], ids=["by GET and POST", "by POST alone"])
@pytest.mark.parametrize("acts", [True, False])
def test_a_graphql_api_that_tells_no_schema_is_guessed(acts: bool, gets: bool) -> None:
    web = {"site": "http://127.0.0.1:1", "act_paths": ["{site}/graphql"]}
    platform = Platform.model_validate({"name": "closed", "web": web})
    tools = frozenset({"qa_fetch", "qa_account"})
    made = api.make(ExplorerContext(platform=platform, tools=tools, acts=acts), Random(1), {})
    entered, guesses, methods = list[Mapping[str, Any]](), 0, set[str]()
    while asked := made.ask(48):
        for question in asked:
            if question.steps[-1].tool == "qa_account":
                entered.append(question.steps[-1].args)
                made.learn(question, [{"ok": False, "error": "not played"}] * len(question.steps))
                continue
            if isinstance(question, api_graphql.GraphqlGuess):
                guesses += 1
                methods.add(str(question.steps[-1].args.get("method", "GET")))
            steps = question.steps
            made.learn(question, [refusing(steps[: at + 1], gets=gets) for at in range(len(steps))])
    assert methods == ({"GET"} if gets else set()) | ({"POST"} if acts else set())
    assert guesses <= MOST
    if acts:
        documents = {name.partition("#")[2]: text for name, text in entered[0]["documents"].items()}
        assert documents == {
            "login": "mutation($username: String!, $password: String!)"
            " { login(username: $username, password: $password) }",
            "me": "query { me { id name email } }",
            "register": "mutation($username: String!, $email: String!, $password: String!)"
            " { register(username: $username, email: $email, password: $password) { id name email } }",
        }


@pytest.mark.parametrize(("takes", "lent"), [(True, True), (False, False)], ids=["taken", "made nowhere"])
def test_an_api_that_names_no_sign_up_is_asked_as_the_accounts_of_another_on_its_host(
    takes: bool, lent: bool
) -> None:
    secured = {"bearerAuth": {"type": "http", "scheme": "bearer"}}
    reads = {"get": {"responses": {"200": {"description": "it"}, "401": {"description": "who?"}}}}
    rest = {
        "openapi": "3.0.3",
        "info": {"title": "shifts", "version": "1"},
        "security": [{"bearerAuth": []}],
        "components": {"securitySchemes": secured},
        "paths": {"/v1/invoices": reads},
    }
    web = {"site": "http://127.0.0.1:1", "act_paths": ["{site}/"]}
    platform = Platform.model_validate({"name": "closed", "web": web})
    tools = frozenset({"qa_fetch", "qa_account"})
    made = api.make(ExplorerContext(platform=platform, tools=tools, acts=True), Random(1), {})
    tried: list[Mapping[str, Any]] = []
    while asked := made.ask(48):
        for question in asked:
            steps, url = question.steps, str(question.steps[0].args["url"])
            if isinstance(question, AccountTry):
                tried.append(steps[-1].args)
                got = {"ok": takes, "error": "no", "answers": [{"status": 200}] * len(tried[-1]["steps"])}
                made.learn(question, [{"ok": True}, got])
            elif isinstance(question, DescriptionLookup) and url.endswith("/openapi.json"):
                made.learn(question, [{"ok": True, "status": 200, "text": json.dumps(rest)}])
            else:
                made.learn(question, [refusing(steps[: at + 1]) for at in range(len(steps))])
    of_rest = [one for one in tried if one["steps"][0][2] == "/v1/invoices"]
    assert [(one["url"], list(one["documents"])) for one in of_rest] == (
        [("{site}/graphql#register", ["/graphql#register", "/graphql#login"])] if lent else []
    )
    why = [one.reason for one in made.left() if "openapi.json" in one.part]
    assert why == (
        [] if lent else ["no account could be made, because its description names no way to sign up"]
    )


@pytest.mark.parametrize("states", [True, False])
def test_attempts_that_a_schema_states_are_tried_behind_it(states: bool) -> None:
    said = '"After 10 failed tries an account is closed."' if states else ""
    fields = "(username: String!, password: String!): String"
    schema = graphql.build_schema(
        f"type Query {{ me: String }} type Mutation {{ register{fields} {said} login{fields} }}"
    )
    text = json.dumps({"data": graphql.introspection_from_schema(schema)})
    web = {"site": "http://127.0.0.1:1", "act_paths": ["{site}/graphql"]}
    platform = Platform.model_validate({"name": "stating", "web": web})
    tools = frozenset({"qa_fetch", "qa_account"})
    made = api.make(ExplorerContext(platform=platform, tools=tools, acts=True), Random(1), {})
    wrong: list[Step] = []
    while asked := made.ask(48):
        for question in asked:
            steps = question.steps
            if steps[-1].tool == "qa_account":
                rows = steps[-1].args["steps"]
                wrong += steps[:1] * (sum(row[0] == "wrong" for row in rows) > 20)
                got = {"ok": True, "answers": [{"status": 200}] * len(rows)}
                made.learn(question, [{"ok": True}] * (len(steps) - 1) + [got])
            else:
                schema_asked = getattr(question, "schema", False)
                shown = {"ok": True, "status": 200, "text": text}
                results = [shown if schema_asked else refusing(steps[: at + 1]) for at in range(len(steps))]
                made.learn(question, results)
    assert len(wrong) == states
    assert all("__schema" in str(one.args) for one in wrong)


def test_a_page_that_was_read_is_opened_as_itself() -> None:
    platform = Platform.model_validate({"name": "x", "web": {"site": "http://moss.example"}})
    tools = frozenset({"qa_fetch", "qa_browse", "qa_account"})
    known = api.ApiExplorer(ExplorerContext(platform=platform, tools=tools, acts=True), Random(1), {})
    page = {"status": 200, "content_type": "text/html", "text": "<h1>moss</h1>", "links": ["/fern"]}
    opened = []
    for _ in range(40):
        for question in known.ask(60):
            url = str(question.steps[0].args["url"])
            opened += [url] * isinstance(question, api.ScriptCalls)
            answer = page if url == "{site}/" else {"status": 404, "text": "no"}
            known.learn(question, [answer for _ in question.steps])
    assert opened == ["{site}/", "{site}/fern"]
