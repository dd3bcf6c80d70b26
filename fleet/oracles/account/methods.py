"""Oracles of what other methods do, and of addresses that a server fetches for an account. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from fleet.oracles.account.inputs import at_input, varied
from fleet.oracles.account.rows import (
    ITEM,
    LIST,
    ME,
    MINE,
    NO,
    NONE,
    PlayedStep,
    closed,
    described,
    description,
    on,
    oracle,
    played,
    row,
)
from fleet.oracles.account.site_rows import reads, site_steps
from fleet.oracles.account.tokens import leaves
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line

_ADDRESS = re.compile(r"127[.]0[.]0[.]1:\d{1,5}")
_GONE = (404, 410)
_ME = re.compile(r"(?i)/(?:me|self|whoami|profile|account)$")
_ENDS = "/api/things/{id-1}/cancel"


def _ending(after: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", LIST, {}, MINE), ("one", "GET", _ENDS, {}, NONE), ("one", "GET", LIST, {}, after)
    )


@oracle(
    id="account-get",
    says="a GET request does not change or remove what an account made",
    severity=Severity.MEDIUM,
    example=_ending(NONE),
    control=_ending(MINE),
)
def account_get(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Its maker reads a thing, asks for something below it by GET, and does not read it any more; nothing but
    GET was asked in between."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "one" or step.method != "GET" or not step.good or "{id-" not in step.path:
            continue
        wrote = [when for when, one in enumerate(steps) if one.method != "GET"]
        since = max((when for when in wrote if when < at), default=-1) + 1
        until = min((when for when in wrote if when > at), default=len(steps))
        before = [one for one in steps[since:at] if one.who == "one" and one.shows("one")]
        after = [
            one for one in steps[at + 1 : until] if one.who == "one" and any(one.same(was) for was in before)
        ]
        if any((one.good or one.status in _GONE) and not one.got.get("one") for one in after):
            where = on(seen[-1], step.plain)
            yield observed(f"{step.called} removes it", f"account-get {step.plain}", "answers", where=where)
            return


_CHANGE, _KEYS = "/api/password", {"name": "{handle}", "password": "{phrase}"}
_NEW = {"current_password": "{mark}", "new_password": "{phrase}2"}


def _unconfirmed(after: int) -> tuple[Exchange, ...]:
    return row(
        ("one", "POST", "/api/sessions", _KEYS, NONE),
        ("one", "PUT", _CHANGE, _NEW, NONE | {"status": 200 if after == 401 else 403}),
        ("one", "POST", "/api/sessions", _KEYS, NONE | {"status": after}),
    )


@oracle(
    id="account-unconfirmed",
    says="a request that asks for the current password needs it",
    severity=Severity.MEDIUM,
    example=_unconfirmed(401),
    control=_unconfirmed(200),
)
def account_unconfirmed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """An account logs in, changes its password with another text as the current one, and cannot log in."""
    steps = played(seen[-1])
    for first, change, last in zip(steps, steps[1:], steps[2:], strict=False):
        wrong = "{mark}" in change.given.values() and change.who == "one" and change.method != "GET"
        if wrong and change.good and first.good and last.same(first) and last.status in (400, 401, 403):
            where = on(seen[-1], change.plain, change.method)
            title = f"{change.called} takes any current password"
            yield observed(title, f"account-unconfirmed {change.plain}", "answers", where=where)
            return


def _refreshing(status: int) -> tuple[Exchange, ...]:
    return row(
        ("one", "POST", "/api/logout", {}, NONE),
        ("one", "POST", "/api/refresh", {"refresh_token": "{refresh}"}, NONE | {"status": status}),
    )


@oracle(
    id="account-refreshed",
    says="a session that was ended is not begun again by its refresh token",
    severity=Severity.MEDIUM,
    example=_refreshing(200),
    control=_refreshing(401),
)
def account_refreshed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    steps, login = played(seen[-1]), str(seen[-1].args.get("login", ""))
    ended = next((at for at, one in enumerate(steps) if one.good and leaves(one.method, one.path, login)), -1)
    for step in steps[ended + 1 :] if ended >= 0 else ():
        if "{refresh}" in step.given.values() and step.good:
            title = f"{step.called} begins it again after {steps[ended].called}"
            yield observed(title, f"account-refreshed {step.plain}", "answers")
            return


def _keeping(shared: bool) -> tuple[Exchange, ...]:
    got = (MINE | {"shared": shared}, NO)
    whos = ("one", "anonymous")
    return row(*((who, "GET", ME, {}, one) for who, one in zip(whos, got, strict=True)))


@oracle(
    id="account-cached",
    says="an answer that is an account's own may not be kept by a shared cache",
    severity=Severity.MEDIUM,
    example=_keeping(True),
    control=_keeping(False),
)
def account_cached(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A visitor is refused the own record, and its answer says that any cache may keep it (RFC 9111, 3.5)."""
    pages = site_steps(seen[-1])
    for page in (one for one in reads(pages, "one") if one.named and one.got.get("shared")):
        if any(one.status in (302, 303, 401, 403, 404) for one in reads(pages, "anonymous", page.path)):
            path = page.path.partition("?")[0]
            title = f"GET {line(path, 90)} may be kept by any cache"
            yield observed(title, f"account-cached {path}", "answers", where=on(seen[-1], path))
            return
    steps = played(seen[-1])
    for step in steps:
        own = step.who == "one" and step.method == "GET" and step.good and _ME.search(step.path)
        if own and step.got.get("shared") and closed(steps, step):
            where = on(seen[-1], step.plain)
            title = f"{step.called} may be kept by any cache"
            yield observed(title, f"account-cached {step.plain}", "answers", where=where)
            return


def _typed(markup: bool) -> tuple[Exchange, ...]:
    got = MINE | {"markup": markup}
    return row(("one", "GET", LIST, {}, got), ("anonymous", "GET", LIST, {}, NO))


@oracle(
    id="account-typed",
    says="JSON with what an account wrote is not shown as a page by its type",
    severity=Severity.LOW,
    example=_typed(True),
    control=_typed(False),
)
def account_typed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """An answer in JSON has the words of an account and the type of a page: markup in them would run."""
    for step in played(seen[-1]):
        if step.got.get("markup") and (step.shows("one") or step.shows("other")):
            where = on(seen[-1], step.plain, step.method)
            title = f"{step.called} answers JSON as text/html"
            yield observed(title, f"account-typed {step.plain}", "answers", where=where)
            return


def _besides(status: int) -> tuple[Exchange, ...]:
    lead = description(more={ITEM: {"get": {}, "put": {"summary": "Change a thing"}}})
    sent = {"state": "{was}"}
    item = ITEM.replace("{id}", "{listed}")
    made = row(
        ("other", "GET", LIST, {}, NONE),
        ("other", "GET", item, {}, NONE),
        ("other", "PUT", item, sent, NONE | {"status": 403}),
        ("other", "PATCH", item, sent, NONE | {"status": status}),
    )
    return (lead, *made)


@oracle(
    id="account-method-open",
    says="what an account is refused by the method that is described, it is refused by every method",
    severity=Severity.HIGH,
    example=_besides(200),
    control=_besides(405),
)
def account_method_open(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: a change that sends what is there is refused as not permitted; the same by
    another method, which the description does not have, succeeds."""
    for first, second in pairwise(played(seen[-1])):
        alike = (first.who, first.path, first.given) == (second.who, second.path, second.given)
        if not alike or first.status not in (401, 403) or not second.good or first.method == second.method:
            continue
        told = list(described(seen, first.path, first.method))
        known = [one for _, one in described(seen, second.path, second.method) if one.method == second.method]
        if told and told[-1][1].method == first.method and not known:
            where = on(seen[-1], second.plain, second.method)
            title = f"{second.called} answers an account that {first.method} refuses"
            yield observed(
                title, f"account-method-open {second.called}", "answers", led=(told[-1][0],), where=where
            )
            return


def _fetching(open_: dict[str, Any]) -> tuple[Exchange, ...]:
    shut = NONE | {"status": 400, "said": ": cannot be fetched"}
    sent = ("{loopback}", "{closed}") * 2
    got = (open_, shut) * 2
    steps = zip(sent, got, strict=True)
    return row(*(("one", "POST", "/api/photos", {"url": one}, answer) for one, answer in steps))


@oracle(
    id="account-fetch",
    says="a server does not fetch addresses of its own machine or network for an account",
    severity=Severity.HIGH,
    example=_fetching(NONE | {"facts": {"size": "812"}}),
    control=_fetching(NONE | {"status": 400, "said": ": cannot be fetched"}),
)
def account_fetch(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[open port, closed port] of its own machine, twice in turn in one input: it tells them apart."""
    steps = played(seen[-1])
    for four in zip(steps, steps[1:], steps[2:], steps[3:], strict=False):
        found = [varied(one, two) for one, two in pairwise(four)]
        ports = [pair[1:] for pair in found if pair]
        if ports != [("{loopback}", "{closed}"), ("{closed}", "{loopback}"), ("{loopback}", "{closed}")]:
            continue
        opened, shut = _told(four[0], four[2]), _told(four[1], four[3])
        if opened and shut and opened != shut and found[0]:
            what = "it tells an open port of its own machine from a closed one"
            yield at_input(seen, four[0], found[0][0], what, "account-fetch")
            return


def _told(step: PlayedStep, again: PlayedStep) -> tuple[int, str, frozenset[tuple[str, str]]] | None:
    """What both answers say alike, but for the address; None where they differ."""
    said = [_ADDRESS.sub("", str(one.got.get("said", ""))) for one in (step, again)]
    facts = [
        {(name, one) for name, one in each.facts.items() if not _ADDRESS.search(one)}
        for each in (step, again)
    ]
    same = step.status == again.status and said[0] == said[1]
    return (step.status, said[0], frozenset(facts[0] & facts[1])) if same else None
