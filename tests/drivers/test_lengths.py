"""Which open inputs are asked with texts of several lengths, and what their times say."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.drivers.explore.documents.lengths import MOST, lengthened
from fleet.oracles.documents.lengths import LENGTHS
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge


def described(method: str = "get", *, secured: bool = False, **text: Any) -> dict[str, Any]:
    schema = {"type": "string", **text}
    operation: dict[str, Any] = {"security": [{"x": []}]} if secured else {}
    if method == "get":
        operation["parameters"] = [{"name": "q", "in": "query", "schema": schema}]
    else:
        sent = {"type": "object", "properties": {"q": schema}, "required": ["q"]}
        operation["requestBody"] = {"content": {"application/json": {"schema": sent}}}
    return {"openapi": "3.1.0", "paths": {"/search": {method: operation}}}


def asked(document: dict[str, Any], url: str = "{site}") -> list[list[dict[str, Any]]]:
    found = lengthened(document, lambda one: url and url + one.partition(" ")[2])
    return [[dict(step.args) for step in question.steps] for question in found]


@pytest.mark.parametrize(
    ("document", "questions"),
    [
        (described(), 1),
        (described("post"), 1),
        (described(maxLength=200), 0),
        (described("post", maxLength=6_000), 0),
        (described(enum=["a"]), 0),
        (described(secured=True), 0),
    ],
)
def test_an_open_input_without_a_bound_is_asked(document: dict[str, Any], questions: int) -> None:
    found = asked(document)
    assert len(found) == questions
    for steps in found:
        sent = [str(one.get("fields", {}).get("q", one["url"].partition("=")[2])) for one in steps]
        assert tuple(map(len, sent)) in LENGTHS.values()
    assert asked(document, "") == []


def test_it_asks_a_bounded_number_of_inputs() -> None:
    many = {f"/s{at}": described()["paths"]["/search"] for at in range(3 * MOST)}
    assert len(asked({"openapi": "3.1.0", "paths": many})) == MOST


@pytest.mark.parametrize(
    ("times", "statuses", "found"),
    [
        ((4, 70, 1100, 5), (200, 200, 200, 200), True),  # sixteen times
        ((4, 70, 1100, 5), (400, 400, 400, 400), True),
        ((4, 290, 1100, 5), (200, 200, 200, 200), False),  # as its length
        ((4, 10, 300, 5), (200, 200, 200, 200), False),  # fast all the same
        ((4, 70, 1100, 900), (200, 200, 200, 200), False),  # a busy server
        ((4, 70, 1100, 5), (200, 200, 422, 200), False),  # bounded
        ((4, 70, 1100, 5), (200, 502, 502, 200), False),
    ],
)
def test_time_is_judged_against_length_and_control(
    times: tuple[float, ...], statuses: tuple[int, ...], found: bool
) -> None:
    steps = asked(described())[0]
    seen = [
        Exchange("qa_fetch", args, {"ok": True, "status": status, "latency_ms": ms, "text": ""})
        for args, ms, status in zip(steps, times, statuses, strict=True)
    ]
    told = [one for one in judge(seen, Facts()) if one.oracle == "slow-by-length"]
    assert [one.led for one in told] == [(0, 1, 2)] * found
