"""What is below a thing that has no mark of its maker: each condition of it, taken away."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles.account.site_rows import NOBODYS, SENT, SERVED, site_row
from fleet.oracles.account.things import NO_RANK, RANKS
from fleet.oracles.model import Facts
from fleet.oracles.table import judge

Step = tuple[str, str, str, dict[str, Any], dict[str, Any]]
GONE: dict[str, Any] = {"status": 404}
LOG_IN: dict[str, Any] = {"status": 302, "leads": "/login"}
ITEM, TICKET, CANCEL = "/seats/{id}", "/seats/{id}/ticket", "/seats/{id}/cancel"
OFFERED = SERVED | {"forms": [{"method": "POST", "action": CANCEL, "fields": {}}]}
READ: tuple[Step, ...] = (
    ("one", "GET", ITEM, {}, OFFERED),
    ("other", "GET", ITEM, {}, GONE),
    ("one", "GET", TICKET, {}, SERVED),
    ("other", "GET", TICKET, {}, SERVED),
    ("anonymous", "GET", TICKET, {}, LOG_IN),
    ("other", "GET", TICKET.replace("{id}", NOBODYS), {}, GONE),
)
CHANGED: tuple[Step, ...] = (
    ("one", "GET", ITEM, {}, OFFERED),
    ("other", "GET", ITEM, {}, GONE),
    ("one", "GET", ITEM, {}, OFFERED),
    ("other", "POST", CANCEL, {}, SENT),
    ("one", "GET", ITEM, {}, SERVED),
)


def found(steps: tuple[Step, ...]) -> list[str]:
    return [one.oracle for one in judge(site_row(*steps, page=ITEM), Facts())]


def test_a_page_below_what_the_other_is_refused_and_a_form_that_took_effect() -> None:
    assert found(READ) == ["form-read"]
    assert found(CHANGED) == ["form-change"]


@pytest.mark.parametrize(
    ("steps", "at", "got"),
    [
        (READ, 0, GONE),  # its maker does not read it
        (READ, 1, SERVED),  # everybody of the site does
        (READ, 2, GONE),
        (READ, 3, GONE),
        (READ, 4, SERVED),  # a visitor does
        (READ, 4, None),
        (READ, 5, SERVED),  # any number is served
        (READ, 5, None),
        (CHANGED, 0, None),  # offered once
        (CHANGED, 1, SERVED),  # the other may read it
        (CHANGED, 1, None),
        (CHANGED, 2, SERVED),  # it was gone before
        (CHANGED, 3, {"status": 403}),
        (CHANGED, 4, OFFERED),  # it is still there
        (CHANGED, 4, GONE),
    ],
)
def test_without_one_of_them_nothing_is_said(
    steps: tuple[Step, ...], at: int, got: dict[str, Any] | None
) -> None:
    changed = () if got is None else ((*steps[at][:4], got),)
    assert found((*steps[:at], *changed, *steps[at + 1 :])) == []


def ranked(given: dict[str, str], *links: list[str]) -> list[str]:
    sent: tuple[dict[str, str], ...] = ({}, dict([NO_RANK]), given)
    steps: list[Step] = []
    for more, shown in zip(sent[-len(links) :], links, strict=True):
        steps += [("one", "POST", "/profile", dict(more), SENT)]
        steps += [("one", "GET", "/profile", {}, SERVED | {"links": shown})]
    return found(tuple(steps))


def test_a_role_is_taken_from_a_form_where_pages_are_offered_after_it_alone() -> None:
    admin = dict([RANKS[0]])
    assert ranked(admin, ["/a"], ["/a"], ["/a", "/staff"]) == ["form-ranked"]
    assert ranked(admin, ["/a"], ["/a", "/staff"], ["/a", "/staff"]) == []  # any word does so
    assert ranked(admin, ["/a"], ["/a", "/staff"]) == []  # it was not asked without a role twice
    assert ranked({"city": "admin"}, ["/a"], ["/a"], ["/a", "/staff"]) == []
    assert (
        ranked(admin, ["/a", "/n/1"], ["/a", "/n/2"], ["/a", "/n/3"]) == []
    )  # links to other news each time
