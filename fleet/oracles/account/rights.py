"""Oracles of what an API's accounts may do with each other's things, and with their own rights. Pure.

That something is one account's own is never guessed: the platform lists it to its maker and not to the other,
and refuses it without a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.oracles.account.rows import (
    GONE,
    ITEM,
    LIST,
    ME,
    MINE,
    NO,
    NONE,
    REFUSED,
    PlayedStep,
    closed,
    described,
    description,
    on,
    oracle,
    played,
    private,
    row,
)
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line


def _own(steps: Sequence[PlayedStep]) -> bool:
    """Whether the platform lists what `one` made to `one`, and not to the other."""
    lists = [step for step in steps if step.method == "GET" and "{id}" not in step.path and step.good]
    mine = [step for step in lists if step.who == "one" and step.got.get("one")]
    theirs = [step for step in lists if step.who == "other" and not step.got.get("one")]
    return any(step.same(other) for step in mine for other in theirs)


_WRITE: dict[str, Any] = {"text": "{mark}"}


def _reads(got: dict[str, Any]) -> tuple[Exchange, ...]:
    made = row(
        ("one", "GET", ITEM, {}, MINE),
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("anonymous", "GET", ITEM, {}, NO),
        ("other", "GET", ITEM, {}, got),
    )
    return (description(), *made)


def _changes(got: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", ITEM, {}, MINE),
        ("other", "GET", ITEM, {}, GONE),
        ("other", "PUT", ITEM, _WRITE, NONE),
        ("one", "GET", ITEM, {}, got),
        ("other", "GET", ITEM, {}, GONE),
    )


def _removes(got: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", ITEM, {}, MINE),
        ("other", "GET", ITEM, {}, GONE),
        ("other", "DELETE", ITEM, {}, NONE | {"status": 204}),
        ("one", "GET", ITEM, {}, got),
    )


def _removing(status: int) -> tuple[Exchange, ...]:
    return (description(delete={}), *row(("one", "DELETE", ME, {}, NONE | {"status": status})))


def _raising(role: str) -> tuple[Exchange, ...]:
    before, after = (MINE | {"facts": {"role": said}} for said in ('"guest"', role))
    sent = {"role": "admin"}
    body = {"content": {"application/json": {"schema": {"properties": {"bio": {"type": "string"}}}}}}
    asked = row(
        ("one", "GET", ME, {}, before),
        ("one", "PATCH", ME, sent, NONE),
        ("one", "GET", ME, {}, after),
        ("other", "GET", ME, {}, before),
    )
    return (description(patch={"requestBody": body}), *asked)


@oracle(
    id="account-read",
    says="what an account made, and the platform lists to it alone, no other account reads",
    severity=Severity.HIGH,
    example=_reads(MINE),
    control=_reads(GONE),
)
def account_read(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: by its word and by its lists a thing is one's own, and the other reads it."""
    steps = played(seen[-1])
    made = [step for step in steps if step.who == "one" and "{id}" in step.path and step.shows("one")]
    for step in steps:
        if step.who != "other" or not step.shows("one") or not _own(steps):
            continue
        led = private(seen, step.path)
        if led and any(step.same(one) for one in made) and closed(steps, step):
            title = f"{step.called} answers another account"
            yield observed(
                title, f"account-read {step.path}", "answers", led=led, where=on(seen[-1], step.path)
            )
            return


@oracle(
    id="account-change",
    says="what an account made and another may not read, the other does not change",
    severity=Severity.CRITICAL,
    example=_changes(MINE | {"other": True}),
    control=_changes(MINE),
)
def account_change(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The maker reads what it made, the other may not, before and after it changes it; the maker reads the
    other's words. Or: by the description's word and by its lists a thing is one's own."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "other" or not step.good or step.path.count("{id}") != 1 or step.method == "GET":
            continue
        reads = [(when, one) for when, one in enumerate(steps) if one.reads(step.path)]
        mine = [(when, one) for when, one in reads if one.who == "one"]
        before = any(when < at and one.shows("one") and not one.got.get("other") for when, one in mine)
        after = any(when > at and one.shows("other") for when, one in mine)
        theirs = [(when < at, one.status in REFUSED) for when, one in reads if one.who == "other"]
        unread = {(True, True), (False, True)} == set(theirs)
        led = () if unread else private(seen, step.path) if _own(steps) else ()
        if before and after and (unread or led):
            title = f"{step.called} succeeds for another account"
            where = on(seen[-1], step.path, step.method)
            key = f"account-change {step.method} {step.path}"
            yield observed(title, key, "answers", led=led, where=where)
            return


@oracle(
    id="account-removal",
    says="what an account made and another may not read, the other does not remove",
    severity=Severity.CRITICAL,
    example=_removes(GONE),
    control=_removes(MINE),
)
def account_removal(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The maker reads what it made, the other may not and removes it; then it is gone for its maker. Or: by
    the description's word and by its lists a thing is one's own."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "other" or step.method != "DELETE" or not step.good or "{id}" not in step.path:
            continue
        reads = [(when < at, one) for when, one in enumerate(steps) if one.reads(step.path)]
        mine = [(earlier, one) for earlier, one in reads if one.who == "one"]
        there = any(earlier and one.shows("one") for earlier, one in mine)
        held = [one for earlier, one in mine if earlier]
        gone = [_is_gone(one, held) for earlier, one in mine if not earlier]
        theirs = [one.status in REFUSED for earlier, one in reads if one.who == "other" and earlier]
        unread = bool(theirs) and all(theirs)
        led = () if unread else private(seen, step.path) if _own(steps) else ()
        if there and gone and all(gone) and (unread or led):
            title = f"{step.called} succeeds for another account"
            where = on(seen[-1], step.path, "DELETE")
            yield observed(title, f"account-removal {step.path}", "answers", led=led, where=where)
            return


def _is_gone(now: PlayedStep, held: Sequence[PlayedStep]) -> bool:
    """Whether a thing is not there any more, or its record says so, and did not before."""
    said = [name for name, value in now.facts.items() if _ENDED.search(str(value))]
    new = any(one.good and not _ENDED.search(str(one.facts.get(name, ""))) for name in said for one in held)
    return now.status in (404, 410) or (now.good and new)


_ENDED = re.compile(r'(?i)^"(?:cancell?ed|deleted|removed|archived|withdrawn|revoked)"$')


@oracle(
    id="account-method",
    says="what a description has for one's own thing is answered",
    severity=Severity.LOW,
    example=_removing(405),
    control=_removing(403),
)
def account_method(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: a described operation is not refused as a method, unless stated."""
    for step in played(seen[-1]):
        if step.who != "one" or step.status not in (405, 501):
            continue
        if led := [
            at
            for at, one in described(seen, step.path, step.method)
            if not one.deprecated and not one.states(step.status)
        ]:
            said = f"{step.method} {line(step.path, 90)}"
            title = f"{said} answers {step.status} to its own account"
            where = on(seen[-1], step.path, step.method)
            yield observed(title, f"account-method {said}", "answers", led=(led[-1],), where=where)
            return


@oracle(
    id="account-raised",
    says="an account does not give itself a role, a right or a balance",
    severity=Severity.HIGH,
    example=_raising('"admin"'),
    control=_raising('"guest"'),
)
def account_raised(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: a field of rights, which the description does not let anyone send, holds
    another value after the account sent it, and not for the other one, which is as old and sent nothing."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "one" or step.method not in ("PATCH", "PUT") or not step.good:
            continue
        for name, value in step.given.items():
            now = [one for one in steps[at + 1 :] if _holds(one, name, value)]
            was = [one for one in steps[:at] if any(one.same(two) for two in now) and name in one.facts]
            if not rights(name) or not now or not was or any(_holds(one, name, value) for one in was):
                continue
            others = [one for one in steps[at + 1 :] if one.who == "other" and one.good and one.same(now[0])]
            if not any(one.facts.get(name, json.dumps(value)) != json.dumps(value) for one in others):
                continue
            takes = described(seen, step.path, step.method)
            if led := [at for at, one in takes if one.closed and one.fields and name not in one.fields]:
                title = f'{step.method} {line(step.path, 90)} lets its caller set "{line(name, 40)}"'
                key = f"account-raised {step.path} {name}"
                where = on(seen[-1], step.path, step.method) | {"field": name}
                yield observed(title, key, "answers", led=(led[-1],), where=where)
                return


def _holds(step: PlayedStep, name: str, value: object) -> bool:
    return (
        step.who == "one" and step.method == "GET" and step.good and step.facts.get(name) == json.dumps(value)
    )


RIGHTS = frozenset(
    (
        *("role", "roles", "admin", "isadmin", "superuser", "issuperuser", "staff", "isstaff", "scopes"),
        *("verified", "isverified", "emailverified", "permissions", "moderator", "ismoderator"),
        *("credit", "credits", "balance", "quota", "accesslevel", "rank", "privileges"),
    )
)


def rights(name: str) -> bool:
    """Whether a field says what an account may do, or what it has: an account does not set that itself."""
    return name.lower().replace("_", "").replace("-", "") in RIGHTS
