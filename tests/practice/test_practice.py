"""What is asked of two accounts, on applications whose defects were written before the questions."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from starlette.applications import Starlette

from tests.accounts.playing import play
from tests.practice import allotment, clinic, kitchen, marina
from tests.practice.shape import Practice

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
LONG = pytest.mark.skipif("PRACTICE" not in os.environ, reason="half a minute of questions: make practice")
OPEN = frozenset({"introspection"})
"""Without the schema of the kitchen little of it is asked: it is open in both twins."""
COMMON = {
    *("account-token", "account-private", "account-crossed", "account-erased", "account-set"),
    *("account-function", "account-negative", "account-twice", "account-page-size", "account-named"),
}
TOKENS = {"account-guessed", "account-ended", "account-endless", "account-code", "account-password"}
BY_GRAPHQL = {"graphql-aliases", "graphql-batch", "graphql-depth", "graphql-schema"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("create_app", "defects", "found"),
    [
        pytest.param(
            marina.create_app,
            frozenset(marina.DEFECTS),
            COMMON
            | TOKENS
            | {"account-read", "account-change", "account-raised", "account-operator", "account-computed"}
            | {"account-method-open", "account-fetch"},
            marks=LONG,
        ),
        pytest.param(
            kitchen.create_app,
            frozenset(kitchen.DEFECTS),
            COMMON
            | TOKENS
            | BY_GRAPHQL
            | {"account-altered", "account-quoted", "account-climb", "account-computed"},
            marks=LONG,
        ),
        pytest.param(
            kitchen.create_app,  # its schema is not told: what it says of names is all that there is
            frozenset(kitchen.DEFECTS) - OPEN,
            {"account-climb", "account-ended", "account-endless", "account-fetch", "account-guessed"}
            | {"account-named", "account-password", "account-private", "account-quoted", "account-token"}
            | (BY_GRAPHQL - {"graphql-schema"}),
            marks=LONG,
        ),
        (
            clinic.create_app,
            frozenset(clinic.DEFECTS),
            COMMON
            | {"account-get", "account-fetch", "account-admitted", "account-unconfirmed", "account-refreshed"}
            | {"account-attempts", "account-cached", "account-climb"}
            | {"account-searched", "account-bound", "account-fails"},
        ),
    ],
)
async def test_each_kind_of_defect_is_found_and_none_in_the_clean_twin(
    create_app: Callable[[frozenset[str]], Starlette], defects: frozenset[str], found: set[str]
) -> None:
    assert found <= (await play(Practice(create_app(defects)))).found
    clean = await play(Practice(create_app(OPEN & defects)))
    assert clean.found <= {"graphql-schema"}
    assert clean.made > 10


CROSSED = ("GraphQL field task", "GET /api/receipts/{id}", "GET /api/loans/{id}")


async def test_two_descriptions_of_one_host_are_asked_together_and_by_names_of_others() -> None:
    """What a thing needs (a time, a tool of everybody's) is sent, things of one description are read by the
    other, and fields are judged by what is said of each."""
    played = await play(Practice(allotment.create_app(frozenset(allotment.DEFECTS)), at_once=True))
    told = {
        *(f"{one} answers another account" for one in CROSSED),
        "GraphQL field notices.author shows a visitor phone",
        "GraphQL field setRole sets the role of another account",
        "POST /api/loans takes the member id of another account",
        "GraphQL field removeTask answers an ordinary account",
        'GraphQL field updateMember lets its caller set "role"',
        "GET /api/messages answers JSON as text/html",
        "GET /api/sales.csv answers a visitor",
        "/board shows markup that POST /api/messages took",
        "DELETE /api/messages/{id} succeeds for another account",
        "POST /api/tools/{id}/wear: minutes lacks some of them",
        "POST /api/tools/{id}/holds succeeds twice at the same moment",
        "POST /api/tools/{id}/holds answers 200, which is not described",
        "POST /api/orders: the total of several lines is not that of its parts",
        "POST /api/orders makes a second thing for the same key",
        "POST /api/orders, field coupon: a number answers 500",
    }
    assert {one for one in played.titles if any(each in one for each in told)} == told
    assert {"account-widened", "account-negative"} <= played.found
    assert "GET /api/price, parameter weight: 2*3 is computed to 6" in played.titles
    clean = await play(Practice(allotment.create_app(frozenset()), at_once=True))
    assert (clean.found, clean.made) == ({"graphql-aliases", "graphql-schema"}, played.made)
