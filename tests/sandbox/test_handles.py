"""Handles in answers: which one an argument wants, and one of the same form that nobody was given."""

from __future__ import annotations

import pytest

from sandbox.agents.handles import handle, handles, unlike


@pytest.mark.parametrize(
    ("argument", "structured", "text", "found"),
    [
        ("draft_id", {"draft_id": "d-77", "order_id": "o-1"}, "", "d-77"),
        ("ticket", {"made": [{"ticketId": 41}]}, "", 41),
        ("job", None, "Job started: job-4f2a, and 3 more", "job-4f2a"),
        ("job", None, "See 0f8fad5b-d9cb-469f-a165-70867728950e.", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("job", {"name": "moss", "size": 4}, "a plain-spoken answer", None),
    ],
)
def test_the_handle_that_an_argument_wants(
    argument: str, structured: object, text: str, found: str | int | None
) -> None:
    assert handle(argument, structured, text) == found


@pytest.mark.parametrize("value", ["d-77", "0f8fad5b-d9cb-469f-a165-70867728950e", 41, "zzzz", "x"])
def test_one_that_nobody_was_given_has_the_same_form(value: str | int) -> None:
    other = unlike(value)
    assert (other == value, type(other)) == (False, type(value))
    assert isinstance(other, int) or len(other) == len(str(value)) or len(str(value)) < 4


def test_a_few_are_enough() -> None:
    assert len(handles([{"id": at} for at in range(99)], "a-1 " * 99)) == 20
