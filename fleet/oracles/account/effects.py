"""Oracles of what a request of one account does to what another made: removed, changed, joined. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.oracles.account.functions import plain_account
from fleet.oracles.account.inputs import sent_fields
from fleet.oracles.account.rights import rights
from fleet.oracles.account.rows import (
    LIST,
    ME,
    MINE,
    NO,
    NONE,
    PlayedStep,
    makers_own,
    on,
    oracle,
    played,
    row,
)
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line


def _erased(after: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("other", "DELETE", "/api/things/{id-1}", {}, NONE),
        ("one", "GET", LIST, {}, after),
    )


@oracle(
    id="account-erased",
    says="what an account made is not removed by a visitor, nor by an account that does not see it",
    severity=Severity.CRITICAL,
    example=_erased(NONE),
    control=_erased(MINE),
)
def account_erased(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: the maker read it, in a list or by itself, and after another's removal it is
    not there any more. The other's own list is without it, or the description says that removing is for who
    made it; a visitor is refused to make one."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        removes = step.method == "DELETE" or re.search(r"#(?:delete|remove)", step.path)
        names = step.refers or (step.who == "anonymous" and "{id}" in step.path)
        if step.who not in ("other", "anonymous") or not removes or not step.good or not names:
            continue
        before = [one for one in _latest(steps[:at]) if one.shows("one")]
        gone = [
            one
            for one in _until_next(steps, at)
            if one.who == "one" and any(one.same(was) for was in before) and not one.got.get("one")
        ]
        gone = [one for one in gone if one.good or one.status in (404, 410)]
        unseen = any(
            one.who == "other"
            and one.good
            and not one.got.get("one")
            and any(one.same(was) for was in before)
            for one in steps[:at]
        )
        refused = any(
            one.who == "anonymous" and one.method == "POST" and one.status in (401, 403)
            for one in steps[:at]
            if step.path.startswith(f"{one.path}/")
        )
        barred = unseen or (plain_account(steps) and makers_own(seen, step.path, step.method))
        if gone and (barred if step.who == "other" else refused) and step.plain not in told:
            told.add(step.plain)
            whom = "another account" if step.who == "other" else "a visitor"
            where = on(seen[-1], step.plain, "DELETE")
            yield observed(
                f"{step.called} succeeds for {whom}", f"account-erased {step.plain}", "answers", where=where
            )


def _latest(steps: Sequence[PlayedStep]) -> list[PlayedStep]:
    """What `one` read last, of each request."""
    reads = [one for one in steps if one.who == "one" and one.method == "GET"]
    return list({f"{one.path} {one.given}": one for one in reads}.values())


def _until_next(steps: Sequence[PlayedStep], at: int) -> Sequence[PlayedStep]:
    """What is read after a change, before the next one."""
    until = next((when for when, one in enumerate(steps) if when > at and one.method != "GET"), len(steps))
    return steps[at + 1 : until]


def _admitting(after: dict[str, Any]) -> tuple[Exchange, ...]:
    path = "/api/groups/{one.groupId}/messages"
    return row(
        ("one", "GET", "/api/groups", {}, NONE),
        ("one", "GET", path, {}, MINE),
        ("other", "GET", path, {}, NO | {"status": 403}),
        ("other", "POST", "/api/groups/{one.groupId}/members", {"userId": "{other.userId}"}, NONE),
        ("other", "GET", path, {}, after),
    )


@oracle(
    id="account-admitted",
    says="an account does not admit itself to what is another's",
    severity=Severity.CRITICAL,
    example=_admitting(MINE),
    control=_admitting(NO | {"status": 403}),
)
def account_admitted(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The other is refused what one made; it sends its own id to what names one's; then it reads it."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "other" or step.method == "GET" or not step.good or "{other." not in str(step.given):
            continue
        refused = [
            one for one in steps[:at] if one.who == "other" and one.refers and one.status in (403, 404)
        ]
        served = [one for one in _until_next(steps, at) if one.who == "other" and one.shows("one")]
        if step.refers and any(one.same(was) for one in served for was in refused):
            where = on(seen[-1], step.plain, step.method)
            title = f"{step.called} admits its sender"
            yield observed(title, f"account-admitted {step.plain}", "answers", where=where)
            return


def _altered(after: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("other", "PATCH", "/api/things/{id-1}", {"text": "{mark}"}, NONE),
        ("one", "GET", LIST, {}, after),
    )


@oracle(
    id="account-altered",
    says="what an account made is not changed by an account that does not see it",
    severity=Severity.CRITICAL,
    example=_altered(MINE | {"other": True}),
    control=_altered(MINE),
)
def account_altered(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: after the other's request that names the thing, its maker's own list has the
    other's words in it, and the other's had not the thing, or the description says that changing is for who
    made it."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        if step.who != "other" or step.method in ("GET", "DELETE") or not step.good or not step.refers:
            continue
        before = [one for one in _latest(steps[:at]) if one.shows("one")]
        before = [one for one in before if not one.got.get("other") and not one.refers]
        after = [one for one in _until_next(steps, at) if one.who == "one" and one.shows("other")]
        kept = [one for one in before if any(one.same(now) for now in after)]
        unseen = [one for one in steps[:at] if one.who == "other" and one.good and not one.got.get("one")]
        called = f"{step.method} {step.plain}"
        same = any(one.same(was) for one in unseen for was in kept)
        barred = plain_account(steps) and bool(kept) and makers_own(seen, step.path, step.method)
        if "{mark}" in str(step.given) and (same or barred) and called not in told:
            told.add(called)
            where = on(seen[-1], step.plain, step.method)
            title = f"{step.called} succeeds for another account"
            yield observed(title, f"account-altered {step.plain}", "answers", where=where)


def _ranking(after: str) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", ME, {}, MINE | {"facts": {"id": "7", "role": '"member"'}}),
        ("other", "POST", "/api/roles", {"user_id": "{one.id}", "role": "ADMIN"}, NONE),
        ("one", "GET", ME, {}, MINE | {"facts": {"id": "7", "role": after}}),
    )


@oracle(
    id="account-ranked",
    says="an account does not change the rights of another one",
    severity=Severity.CRITICAL,
    example=_ranking('"admin"'),
    control=_ranking('"member"'),
)
def account_ranked(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """One reads its own record, the other, which nobody gave rights, names that account and a role; one reads
    its record again, which has this role now."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        if step.who != "other" or step.method == "GET" or not step.good or not names_one(step):
            continue
        before = {one.path: one for one in steps[:at] if one.who == "one" and one.method == "GET"}
        for now in (one for one in _until_next(steps, at) if one.who == "one" and one.path in before):
            for name, value in sent_fields(step.given):
                was, got = (_folded(one.facts.get(name)) for one in (before[now.path], now))
                raised = rights(name) and was not in ("", got) and got == str(value).lower()
                if raised and step.plain not in told:
                    told.add(step.plain)
                    title = f"{step.called} sets the {line(name.replace('_', ' '), 30)} of another account"
                    where = on(seen[-1], step.plain, step.method)
                    yield observed(title, f"account-ranked {step.plain}", "answers", where=where)


def _promoting(after: str) -> tuple[Exchange, ...]:
    read = ("other", "GET", ME, dict[str, Any](), MINE | {"facts": {"id": "8", "role": '"CUSTOMER"'}})
    sent = {"input": {"role": "ADMIN"}}
    return row(
        read,
        ("other", "PATCH", "/api/account", sent, NONE),
        ("other", "GET", ME, {}, MINE | {"facts": {"id": "8", "role": after}}),
    )


@oracle(
    id="account-promoted",
    says="an account that has no role does not give itself one",
    severity=Severity.HIGH,
    example=_promoting('"ADMIN"'),
    control=_promoting('"CUSTOMER"'),
)
def account_promoted(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The other's own record names no role above others; it sends one about itself, and its record has it."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        sent = [(name, value) for name, value in sent_fields(step.given) if rights(name.rpartition(".")[2])]
        if step.who != "other" or step.method == "GET" or not step.good or len(sent) != 1:
            continue
        before = [one for one in steps[:at] if one.who == "other" and one.good and one.method == "GET"]
        now = [one for one in _until_next(steps, at) if one.who == "other" and one.good]
        name = sent[0][0].rpartition(".")[2]
        rose = any(
            plain_account([was]) and one.same(was) and not plain_account([one])
            for was in before[-1:]
            for one in now
        )
        if rose and step.plain not in told:
            told.add(step.plain)
            where = on(seen[-1], step.plain, step.method) | {"field": name}
            title = f'{step.called} lets its caller set "{line(name, 40)}"'
            yield observed(title, f"account-promoted {step.plain} {name}", "answers", where=where)


def names_one(step: PlayedStep) -> bool:
    """Whether a request holds the id of the account `one`, which the other has no business with."""
    return "{one.id}" in f"{step.path} {[value for _, value in sent_fields(step.given)]}"


def _folded(value: object) -> str:
    return str(value if value is not None else "").strip('"').lower()


def _naming(owner: str) -> tuple[Exchange, ...]:
    path = "/api/bookings"
    return row(
        ("one", "GET", ME, {}, MINE | {"facts": {"id": "7", "name": '"a"'}}),
        ("other", "POST", path, {"room_id": 1}, NONE | {"facts": {"id": "1", "user_id": "8"}}),
        (
            "other",
            "POST",
            path,
            {"room_id": 1, "user_id": "{one.id}"},
            NONE | {"facts": {"id": "2", "user_id": owner}},
        ),
    )


@oracle(
    id="account-in-name",
    says="an account makes nothing in the name of another one",
    severity=Severity.HIGH,
    example=_naming("7"),
    control=_naming("8"),
)
def account_in_name(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A field is its maker's own id where it is not sent, and that of another account where that is sent."""
    steps, told = played(seen[-1]), set[str]()
    own = {_folded(one.facts.get("id")) for one in steps if one.who == "one" and one.method == "GET"}
    for at, step in enumerate(steps):
        sent = [name for name, value in sent_fields(step.given) if value == "{one.id}"]
        if step.who != "other" or step.method == "GET" or not step.good or len(sent) != 1:
            continue
        name = sent[0].rpartition(".")[2]
        bare = [
            one
            for one in steps[:at]
            if (one.who, one.method, one.path) == ("other", step.method, step.path)
            and one.good
            and not names_one(one)
        ]
        made = _folded(step.facts.get(name))
        others = {_folded(one.facts.get(name)) for one in bare} - {""}
        if made in own - {""} and others and made not in others and step.plain not in told:
            told.add(step.plain)
            title = f"{step.called} takes the {line(name.replace('_', ' '), 30)} of another account"
            where = on(seen[-1], step.plain, step.method) | {"field": name}
            yield observed(title, f"account-in-name {step.plain}", "answers", where=where)
