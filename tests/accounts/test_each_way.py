"""Each form of `[accounts]` that docs/platforms.md shows, on a site that tells nobody how one signs in."""

from __future__ import annotations

import base64
import re
import tomllib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from fleet.files import ROOT
from tests.accounts.base import Rest, body, crud, fields, form
from tests.accounts.playing import play
from tests.accounts.site import HiddenToken
from tests.sandbox.doubles import Got, json_answer

pytestmark = pytest.mark.anyio

SECRETS = {
    "one": {"user": "qa-one@example.org", "secret": "a-secret-of-one"},
    "other": {"user": "qa-two@example.org", "secret": "a-secret-of-two"},
}
USERS = {one["secret"]: one["user"] for one in SECRETS.values()}
PART = (ROOT / "docs/platforms.md").read_text("utf-8").partition("\n## Accounts\n")[2].partition("\n## ")[0]
SHOWN = re.findall(r"^### ([^\n]+)\n\n```toml\n(.+?)```", PART, re.M | re.S)
"""Headings and examples of the document's part about accounts."""


class Untold(Rest):
    """Orders behind a session; the description names no way in. `way` is how this one lets people in."""

    things = "/orders"
    description = {
        "openapi": "3.1.0",
        "paths": crud("/orders", "order", fields("note", required=("note",)), "Read an order"),
    }

    def __init__(self, leaks: bool, way: str) -> None:
        super().__init__(leaks)
        self.way = way
        self.accounts = SECRETS
        self.seen: set[str] = set()
        """Who asked for what is behind the session; "" for a visitor."""

    def routes(self) -> Any:
        return [
            *super().routes(),
            ("POST", "/api/login", lambda got: self._token(body(got), "email", "password")),
            ("POST", "/oauth/token", lambda got: self._token(form(got), "client_id", "client_secret")),
        ]

    def who(self, got: Got) -> str:
        shown = got.headers.get("authorization", "")
        cookies = dict(one.strip().partition("=")[::2] for one in got.headers.get("cookie", "").split(";"))
        sent = {
            "A log-in that answers with a token": shown.removeprefix("Bearer "),
            "OAuth 2, client credentials": shown.removeprefix("Bearer "),
        }
        if self.way in sent:
            user = self.tokens.get(sent[self.way], "")
        elif self.way == "HTTP basic":
            name, _, secret = base64.b64decode(shown.removeprefix("Basic ")).decode().partition(":")
            user = USERS.get(secret, "") if USERS.get(secret) == name else ""
        else:
            keys = {
                "A key in a header": got.headers.get("x-api-key", ""),
                "A bearer token": shown.removeprefix("Bearer ") if shown.startswith("Bearer ") else "",
                "A key in the query": dict(parse_qsl(urlsplit(got.path).query)).get("api_key", ""),
                "A cookie": cookies.get("session", ""),
            }
            user = USERS.get(keys[self.way], "")
        self.seen.add(user)
        return user

    def _token(self, sent: dict[str, Any], name: str, secret: str) -> bytes:
        if USERS.get(sent.get(secret, "")) != sent.get(name):
            return self.refuse(401, {"error": "invalid_client"})
        if name == "client_id" and sent.get("grant_type") != "client_credentials":
            return self.refuse(400, {"error": "unsupported_grant_type"})
        return json_answer(200, {"access_token": self.token(sent[name]), "token_type": "bearer"})


def test_the_document_shows_each_form() -> None:
    assert [name for name, _ in SHOWN] == [
        "A form of the site",
        "A log-in that answers with a token",
        "OAuth 2, client credentials",
        "A bearer token",
        "A key in a header",
        "A key in the query",
        "A cookie",
        "HTTP basic",
    ]


async def test_both_log_in_by_a_form_as_the_document_shows() -> None:
    found = {}
    for leaks in (True, False):
        site = HiddenToken(leaks)
        site.profile = tomllib.loads(SHOWN[0][1].replace("/login", "/accounts/login/"))
        site.accounts = SECRETS
        site.people = {user: {"password": secret} for secret, user in USERS.items()}
        played = await play(site)
        assert (played.refusals, set(site.people)) == ([], set(USERS.values()))
        assert not [secret for secret in USERS if secret in played.text + repr(played.asked)]
        found[leaks] = played.found
    assert found == {True: {"form-read"}, False: set()}


@pytest.mark.parametrize(("way", "text"), SHOWN[1:], ids=[name for name, _ in SHOWN[1:]])
async def test_both_sign_in_as_the_document_shows_and_a_visitor_is_the_third(way: str, text: str) -> None:
    """What one account reads of the other's is found, on the twin that keeps them apart nothing is, and no
    secret is in what a run keeps."""
    found = {}
    for leaks in (True, False):
        site = Untold(leaks, way)
        site.profile = tomllib.loads(text)
        played = await play(site)
        assert (played.refusals, site.refused) == ([], [])
        assert site.seen == {*USERS.values(), ""}
        kept = played.text + repr(played.asked)
        assert not [secret for secret in (*USERS, *site.tokens) if secret in kept]
        found[leaks] = played.found
    assert found == {True: {"account-read"}, False: set()}
