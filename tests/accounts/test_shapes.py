"""Two accounts on platforms of many habits: how they are made, what is found as them, what is reported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.accounts.base import Shape
from tests.accounts.further import SHAPES as FURTHER
from tests.accounts.others import SHAPES as OTHERS
from tests.accounts.playing import Played, play
from tests.accounts.shapes import SHAPES as FIRST
from tests.accounts.shapes import ByMail
from tests.accounts.site import HiddenToken, PickyForm

pytestmark = pytest.mark.anyio
SHAPES: Mapping[str, type[Shape]] = {**FIRST, **OTHERS, **FURTHER}
WORDS = {"username": "{handle}", "password": "{phrase}"}
PARTS = {"nickname": "{handle}", "passphrase": "{phrase}"}
MAIL = {"email": "{email}", "password": "{phrase}"}
MADE: Mapping[str, Mapping[str, Any]] = {
    "token-form": {
        "fields": {**MAIL, "full_name": "Quinn Avery", "is_active": True},
        "login": "/oauth2/issue",
        "login_fields": {"username": "{email}", "password": "{phrase}", "grant_type": "password"},
        "bodies": {"/oauth2/issue": "form"},
    },
    "key-header": {
        "fields": {"contact": "{email}", "company": "Example"},
        "carried": "header X-Parcel-Key",
    },
    "picky": {
        "fields": {
            "username": "{handle:^[a-z]{4,12}$}",
            "email": "{email}",
            "password": "{phrase:[Q][a][1][a-z0-9]{13}}",
            "birth_year": 1990,
        },
        "login": "/api/login",
        "login_fields": {
            "username": "{handle:^[a-z]{4,12}$}",
            "password": "{phrase:[Q][a][1][a-z0-9]{13}}",
        },
    },
    "sentences": {
        "fields": {
            "username": "{handle:[a-z]{10}}",
            "email": "{email:[a-z]{10}@mail[.]example}",
            "password": "{phrase:[Q][a][1][#][a-z0-9]{12}}",
            "terms": True,
        },
        "login": "/api/login",
        "login_fields": {"username": "{handle:[a-z]{10}}", "password": "{phrase:[Q][a][1][#][a-z0-9]{12}}"},
    },
    "basic": {
        "fields": WORDS,
        "login_fields": {"user": "{handle}", "secret": "{phrase}"},
        "carried": "basic",
    },
    "nested": {
        "fields": {"name": "{handle}", **MAIL, "password_confirmation": "{phrase}"},
        "login": "/api/v1/auth/login",
        "login_fields": MAIL,
    },
    "parts": {
        "fields": PARTS,
        "login": "/sessions",
        "login_fields": PARTS,
        "bodies": {"/members": "multipart", "/sessions": "multipart"},
    },
    "clients": {
        "fields": {"grant_type": "client_credentials", "client_id": "{user}", "client_secret": "{secret}"},
        "bodies": {"/connect/token": "form"},
    },
    "references": {
        "fields": {
            "username": "{handle:^[a-z]{5,9}$}",
            "password": "{phrase}",
            "born": "1990-05-01",
            "plan": "free",
            "address": {"street": "{handle}", "zip": "10115"},
            "languages": ["en"],
            "phone": "+4930123456",
            "consent": True,
        },
        "login": "/api/login",
        "login_fields": {"username": "{handle:^[a-z]{5,9}$}", "password": "{phrase}"},
    },
    "resources": {
        "fields": {
            "data": {
                "type": "enrolments",
                "attributes": {
                    "login-name": "{handle}",
                    "contact-mail": "{email}",
                    "keyphrase": "{phrase:[Q][a][1][a-z0-9]{21}}",
                },
            }
        },
        "login": "/credentials",
        "login_fields": {
            "data": {
                "type": "credentials",
                "attributes": {"login-name": "{handle}", "keyphrase": "{phrase:[Q][a][1][a-z0-9]{21}}"},
            }
        },
        "bodies": dict.fromkeys(("/enrolments", "/credentials", "/appointments"), "application/vnd.api+json"),
    },
    "wrapped": {
        "fields": {
            "user": {
                "email": "{email}",
                "password": "{phrase:[Q][a][1][a-z0-9]{11}}",
                "password_confirmation": "{phrase:[Q][a][1][a-z0-9]{11}}",
                "username": "{handle:[a-z0-9]{9}}",
            }
        },
        "login": "/users/sign_in",
        "login_fields": {"user": {"email": "{email}", "password": "{phrase:[Q][a][1][a-z0-9]{11}}"}},
    },
    "guide": {
        "fields": {"account": "{handle}", "passcode": "{phrase}"},
        "login": "/sessions",
        "login_fields": {"account": "{handle}", "passcode": "{phrase}"},
        "bodies": dict.fromkeys(("/enrol", "/sessions", "/reminders"), "form"),
        "carried": "header X-Session",
    },
    "cross-site": {
        "fields": {"name": "{handle}", **MAIL, "password_confirmation": "{phrase}"},
        "login": "/login",
        "login_fields": MAIL,
        "carried": "cookie app_session",
    },
    "pin": {
        "fields": {
            "mobile": "{handle:[+]493023125[0-9]{4}}",
            "pin": "{phrase:[0-9]{6}}",
            "surname": "Avery",
        },
        "login": "/api/customers/authenticate",
        "login_fields": {"mobile": "{handle:[+]493023125[0-9]{4}}", "pin": "{phrase:[0-9]{6}}"},
        "bodies": dict.fromkeys(("/api/customers", "/api/customers/authenticate", "/api/transfers"), "form"),
    },
    "django-tokens": {
        "fields": WORDS,
        "login": "/api/auth/token/login/",
        "login_fields": WORDS,
        "carried": "header Authorization Token",
    },
    "spring": {
        "fields": {
            "firstName": "Quinn",
            "emailAddress": "{email}",
            "password": "{phrase:Qa1![a-z0-9]{8}}",
            "confirmPassword": "{phrase:Qa1![a-z0-9]{8}}",
            "dateOfBirth": "1990-05-01",
        },
        "login": "/users/login",
        "login_fields": {"emailAddress": "{email}", "password": "{phrase:Qa1![a-z0-9]{8}}"},
    },
    "key-in-query": {
        "fields": {"title": "{handle}", "owner_email": "{email}"},
        "carried": "query api_key",
    },
}
"""By which arguments the accounts of an API are made in the end, its place aside."""


def last(played: Played) -> dict[str, Any]:
    args = dict(played.asked[-1].steps[-1].args)
    return {
        name: args[name] for name in ("fields", "login", "login_fields", "bodies", "carried") if name in args
    }


def secrets(shape: Shape) -> list[str]:
    """What no answer may hold: passphrases and tokens."""
    known = [str(one.get(name, "")) for one in shape.people.values() for name in ("password", "passphrase")]
    return [*filter(None, known), *shape.tokens, *(one["secret"] for one in shape.accounts.values())]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted({*MADE, "hidden-token"}))
async def test_a_leak_to_another_account_is_found_and_a_healthy_twin_is_quiet(name: str) -> None:
    leaky, healthy = SHAPES[name](leaks=True), SHAPES[name](leaks=False)
    found, calm = await play(leaky), await play(healthy)
    also = {"account-crossed"}  # the same defect, seen in a row of several things
    assert found.found - also == {"form-read" if name == "hidden-token" else "account-read"}
    assert (calm.found, found.left, calm.left) == (set(), [], [])
    assert found.refusals == []
    if name in MADE:
        assert last(found) == MADE[name]
        tried, things = found.asked[:2]  # one by which the accounts are tried, one for the things
        assert ["{id}" in str(one.steps) for one in (tried, things)] == [False, True]
    assert not [one for one in secrets(leaky) if one in found.text + json.dumps(found.left)]


async def test_an_account_that_nobody_can_confirm_is_reported_with_the_platforms_words() -> None:
    shape = SHAPES["by-mail"](leaks=True)
    played = await play(shape)
    why = 'the log-in answers 403: {"detail": "Your e-mail address is not verified yet"}'
    assert played.refusals == [why]
    assert played.left == []  # the desk reports what the tool says
    assert len(shape.people) == 1  # and it is not tried again


async def test_a_form_that_is_shown_again_is_sent_as_its_page_asks() -> None:
    leaky, healthy = PickyForm(leaks=True), PickyForm(leaks=False)
    found, calm = await play(leaky), await play(healthy)
    assert (found.found, calm.found, found.refusals) == ({"form-read"}, set(), [])
    assert len(leaky.refused) == 1  # what it led to begins the next questions
    phrase = "{phrase:[Q][a][1][a-z0-9]{13}}"
    assert last(found) == {
        "fields": {"username": "{handle:[a-z]{10}}", "password1": phrase, "password2": phrase},
        "login": "/accounts/login/",
        "login_fields": {"username": "{handle:[a-z]{10}}", "password": phrase},
    }


async def test_what_led_to_accounts_is_remembered_and_begins_the_next_run() -> None:
    shape, notes = FIRST["sentences"](leaks=False), dict[str, Any]()
    await play(shape, notes=notes)
    wrong = 5  # log-ins that are meant to be refused: by a wrong phrase, an unknown name, an operator
    assert len(shape.refused) == 4 + wrong
    await play(shape, notes=notes)
    assert len(shape.refused) == 4 + 2 * wrong
    notes["ApiExplorer"]["starts"] = {
        "{site}/openapi.json": {"url": "{site}/api/signup", "fields": {"no": 1}}
    }
    again = await play(shape, notes=notes)
    assert len(again.refusals) == 1  # what is remembered is only tried first
    assert last(again) == MADE["sentences"]


class Closed(ByMail):
    """Its description has no sign-up, and says of nothing that it needs credentials."""

    join = ""
    description: Any = {
        "openapi": "3.0.3",
        "paths": {"/api/bookings": {"get": {"summary": "All of them"}}},
    }


async def test_a_part_that_only_accounts_see_is_reported_where_there_is_no_way_to_sign_up() -> None:
    played = await play(Closed(leaks=True), cases=True)
    assert played.left == ["no account could be made, because its description names no way to sign up"]
    assert played.asked == []


async def test_a_log_in_without_a_sign_up_is_reported() -> None:
    shape = HiddenToken(leaks=True)
    page = shape.routes

    def without() -> Any:
        return [one for one in page() if "signup" not in one[1]]

    shape.routes = without  # type: ignore[method-assign]
    played = await play(shape)
    assert played.left == ["no account could be made, because the site shows no form that signs up"]
