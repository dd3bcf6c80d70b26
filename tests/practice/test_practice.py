"""What is asked of two accounts, on applications whose defects were written before the questions."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from starlette.applications import Starlette

from tests.accounts.playing import play
from tests.practice import kitchen, marina
from tests.practice.shape import Practice

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(600),
    pytest.mark.skipif("PRACTICE" not in os.environ, reason="minutes of questions: make practice"),
]
OPEN = frozenset({"introspection"})
"""Without the schema of the kitchen nothing of it is asked: it is open in both twins."""
COMMON = {
    *(
        "account-token",
        "account-guessed",
        "account-ended",
        "account-endless",
        "account-named",
        "account-code",
    ),
    *("account-password", "account-function", "account-private", "account-crossed", "account-erased"),
    *("account-set", "account-computed", "account-negative", "account-twice", "account-page-size"),
}


@pytest.mark.parametrize(
    ("create_app", "defects", "found"),
    [
        (
            marina.create_app,
            frozenset(marina.DEFECTS),
            COMMON | {"account-read", "account-change", "account-raised", "account-operator"},
        ),
        (
            kitchen.create_app,
            frozenset(kitchen.DEFECTS),
            COMMON
            | {"account-altered", "account-quoted", "account-climb"}
            | {"graphql-aliases", "graphql-batch", "graphql-depth", "graphql-schema"},
        ),
    ],
)
async def test_each_kind_of_defect_is_found_and_none_in_the_clean_twin(
    create_app: Callable[[frozenset[str]], Starlette], defects: frozenset[str], found: set[str]
) -> None:
    assert found <= (await play(Practice(create_app(defects)))).found
    clean = await play(Practice(create_app(OPEN & defects)))
    assert clean.found <= {"graphql-schema"}
    assert clean.made > 20
