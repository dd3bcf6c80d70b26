"""What is asked of two accounts, on applications whose defects were written before the questions."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from starlette.applications import Starlette

from tests.accounts.playing import play
from tests.practice import clinic, kitchen, marina
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
            | {"account-attempts", "account-cached", "account-climb"},
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
