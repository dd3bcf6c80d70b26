"""A site whose sign-up and log-in are scripts, with an API that no document describes, is learned."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from fleet.drivers.explore.documents.learned import graphql_places, learned
from fleet.oracles.documents.openapi import operations
from tests.accounts.playing import GRANTED, play
from tests.practice.shape import Practice

pytestmark = pytest.mark.anyio
FORM = """<!doctype html><html lang=en><title>{name}</title><h1>{name}</h1>
<form id=f>{fields}<button>Go</button></form>
<p><a href=/join>Join</a> <a href=/sign-in>Sign in</a> <a href=/write>Write</a></p><script>
document.getElementById('f').addEventListener('submit', async (event) => {{
  event.preventDefault();
  const body = JSON.stringify(Object.fromEntries(
    [...event.target.elements].filter(one => one.name).map(one => [one.name, one.value])));
  await fetch('{to}', {{method: 'POST', headers: {{'content-type': 'application/json'}}, body}});
}});</script>"""
PAGES = {
    "/": ("Wharf", "", "/api/v2/none"),
    "/join": (
        "Join",
        "<input name=mail type=email required><input name=passphrase type=password minlength=8 required>"
        "<input type=checkbox name=terms required>",
        "/api/v2/crew",
    ),
    "/sign-in": (
        "Sign in",
        "<input name=mail type=email required><input name=passphrase type=password required>",
        "/api/v2/tickets",
    ),
    "/write": ("Write", "<textarea name=text required></textarea>", "/api/v2/notes"),
}


def create_app(*, computes: bool) -> Starlette:
    people, tickets = dict[str, str](), dict[str, str]()

    async def page(request: Request) -> Response:
        name, fields, to = PAGES[request.url.path]
        return HTMLResponse(FORM.format(name=name, fields=fields, to=to))

    async def api(request: Request) -> Response:
        try:
            given: dict[str, Any] = json.loads(await request.body())
            mail, phrase = str(given.get("mail")), str(given.get("passphrase"))
        except (ValueError, AttributeError):
            return JSONResponse({"error": "no JSON"}, 400)
        what = request.path_params["what"]
        if what == "crew" and re.fullmatch(r"\S+@\S+", mail) and len(phrase) > 7:
            people[mail] = phrase
            return JSONResponse({"id": len(people)}, 201)
        if what == "tickets" and people.get(mail) == phrase:
            ticket = secrets.token_hex(16)
            tickets[ticket] = mail
            return JSONResponse({"token": ticket})
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in tickets:
            return JSONResponse({"error": "no ticket"}, 401)
        text = str(given.get("text"))
        product = re.search(r"\{\{(\d+)\*(\d+)\}\}", text) if computes else None
        if product:
            text = text.replace(product[0], str(int(product[1]) * int(product[2])))
        return JSONResponse({"text": text}, 201 if what == "notes" else 404)

    return Starlette(
        routes=[
            *(Route(path, page) for path in PAGES),
            Route("/api/v2/{what}", api, methods=["POST"]),
        ]
    )


async def test_accounts_are_made_as_the_pages_scripts_would() -> None:
    shape = Practice(create_app(computes=True))
    played = await play(shape, tools=GRANTED | {"qa_browse"})
    assert "account-computed" in played.found
    assert {"POST /api/v2/notes, field text"} == {
        one.partition(":")[0] for one in played.titles if "is computed" in one
    }
    clean = await play(Practice(create_app(computes=False)), tools=GRANTED | {"qa_browse"})
    assert (clean.found, clean.made) == (set(), played.made)


FORM_TYPE = "application/x-www-form-urlencoded"
CALLS: dict[str, list[dict[str, Any]]] = {
    "/join": [
        {"method": "POST", "url": "http://h/api/crew", "body": '{"mail": "a", "password": "b", "age": 3}'},
        {"method": "POST", "url": "http://h/gq", "body": '{"query": "{ me { id } }"}'},
        {"method": "GET", "url": "http://h/app.js", "body": ""},
    ],
    "/list": [
        {"method": "GET", "url": "http://h/api/boats/17?sort=asc", "body": ""},
        {"method": "PUT", "url": "http://h/api/boats/17", "body": "[1]", "body_type": "application/json"},
        {
            "method": "POST",
            "url": "http://h/api/find",
            "body": "q=a",
            "body_type": "application/x-www-form-urlencoded",
        },
    ],
}


def test_what_was_asked_is_a_description() -> None:
    found = {one.where: one for one in operations(learned(CALLS, ["/api/boats/${id}/crew", "/app.css"]))}
    assert [*found] == [
        "POST /api/crew",
        "POST /gq",
        "GET /api/boats/{id}",
        "PUT /api/boats/{id}",
        "POST /api/find",
        "GET /api/boats/{id}/crew",
    ]
    joins = found["POST /api/crew"]
    assert (joins.sent[0], joins.required, joins.text) == (
        "json",
        frozenset(("mail", "password", "age")),
        "Sign up. ",
    )
    assert joins.fields["age"] == {"type": "integer"}
    assert found["POST /api/find"].sent[0] == "form"
    assert graphql_places(CALLS) == ["http://h/gq"]


def test_pages_that_ask_for_nothing_but_files_describe_nothing() -> None:
    assert learned({"/": [{"method": "GET", "url": "http://h/data.json"}]}, ["/api/boats"]) == {}
