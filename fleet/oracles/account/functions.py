"""Oracles of what an API's accounts are served: functions of other roles, data of others, codes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    own_thing,
    played,
    row,
)
from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation, fields_of, operations
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line

_ROLE = r"(?:admin(?:istrator)?|staff|moderator|superuser|employee|back-?office)s?"
_FOR_ROLE = re.compile(
    r"(?i)(?:\b(?:by|only|requires?|needs?|(?:available|limited|open|reserved|restricted|shown|visible)\s+to)"
    rf"|(?:^|[,;:(.]|\bonly)\s*for)\s+(?:the\s+|an?\s+|all\s+)?{_ROLE}\b"
    rf"|\b{_ROLE}(?:[ -](?:only|role|rights|access)|\s+can\b)"
)
_ROLE_PATH = re.compile(rf"(?i)[/#](?:{_ROLE}|internal|management|moderation|administration)(?=[/_A-Z-]|$)")
ME_PATH = re.compile(r"(?i)[/#](?:me|self|viewer|whoami|currentUser|profile|account|user)$")
_ROLE_FIELD = re.compile(
    r"(?i)(?:user|account|member)?_?(?:roles?|rank|type|kind|group|permissions?|scopes?)"
)
_RANK = re.compile(rf"(?i)\b(?:{_ROLE}|owners?|roots?)\b")
_IS_RANK = re.compile(rf"(?i)(?:is_?)?(?:{_ROLE}|owner)")
_ROLES = re.compile(r'"roles?": \{[^{}\[]{0,200}(?:\{[^{}\[]{0,200})?"enum": \[([^\]]{1,400})\]')
_ORDINARY = frozenset(
    ("user", "member", "owner", "customer", "guest", "client", "author", "reader", "viewer", "subscriber")
)
_FOR_WORD = re.compile(r"(?i)\b(?:for|by|only|requires?)\s+(?:the\s+|an?\s+)?(\w{2,30})")
MOST_READ = 200_000
"""Characters of a description in which roles are looked for."""
MOST_OBJECTS = 60
"""Objects of one described answer whose fields are looked at."""
_LOGIN_REFUSALS = (400, 401, 403, 404, 422)
RECOVERS = re.compile(
    r"(?i)forg[eo]t|(?:reset|recover)[\w-]*$|(?:request|send|start)[_-]?(?:password)?[_-]?reset"
)
_CODE = re.compile(r"(?i)\b(?:code|pin|token|otp)\b[^\d]{0,20}\d{4,8}\b")
_CODE_NAME = re.compile(r"(?i)(?:^|[_.])(?:code|pin|otp|(?:reset|recovery)_?token)$")
_NEVER_SHOWN = re.compile(
    r"(?i)pass|pwd|hash|otp|reset|recovery|ssn|card|cvv|cvc|env|database|_dsn|secret|^cc_"
)
"""Of private fields those that are shown to no one, not even to their owner."""


def for_role(one: Operation, path: str) -> bool:
    """Whether a description keeps an operation for a role that a new account has not."""
    if _FOR_ROLE.search(one.text) or (one.secured and _ROLE_PATH.search(path)):
        return True
    words = {word.lower() for word in _FOR_WORD.findall(one.text)}
    return bool(words) and not words.isdisjoint(
        (*(known := roles_of(one.document)), *(f"{at}s" for at in known))
    )


def for_role_only(one: Operation, path: str) -> bool:
    """Whether a sentence of a description says so with the word "only": what one may do beside others is
    often in the same text, and a member may do that."""
    said = [part for part in re.split(r"[.;]\s|[.;]$", one.text) if re.search(r"(?i)\bonly\b", part)]
    return for_role(one, path) and any(re.search(rf"(?i)\b{_ROLE}\b", part) for part in said)


def roles_of(document: Mapping[str, Any]) -> frozenset[str]:
    """The roles that a description lists, but for those that any account has."""
    text = json.dumps(document.get("components", document), default=str)[:MOST_READ]
    text += json.dumps(document.get("paths", {}), default=str)[:MOST_READ]
    lists = (found[1] for found in _ROLES.finditer(text))
    return frozenset(name for one in lists for name in re.findall(r'"(\w{2,30})"', one)) - _ORDINARY


def _serving(who: str, status: int) -> tuple[Exchange, ...]:
    path, got = "/api/admin/users", NONE | {"status": status, "many": 3}
    lead = description(more={path: {"get": {"summary": "All accounts, for admins"}}})
    return (lead, *row((who, "GET", path, {}, got)))


@oracle(
    id="account-function",
    says="what a description keeps for administrators or staff is refused to a new account and to visitors",
    severity=Severity.HIGH,
    example=_serving("other", 200),
    control=_serving("other", 403),
)
def account_function(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: by the word of the description an operation is for a role; the account that
    signed up last, which the platform gave none, or a visitor, is served."""
    found: dict[str, tuple[PlayedStep, int]] = {}
    steps = played(seen[-1])
    ranked = any(one.who == "other" and _has_role(one) for one in steps)
    looked = any(one.who == "other" and one.good and ME_PATH.search(one.path) for one in steps)
    roles = {role for one in steps if one.who == "other" for role in _roles_held(one)}
    for step in steps:
        told = step.facts or step.got.get("many") or step.got.get("other")
        if step.who not in ("other", "anonymous") or not step.good or not told:
            continue
        if step.who == "other" and ranked:  # who signs up leads something of its own
            continue
        for at, one in described(seen, step.path, step.method):
            own = step.who == "other" and any(
                re.search(rf"(?i)\b{re.escape(role)}", one.text) for role in roles
            )
            if step.who == "other" and not looked and _tells_roles(one.document):
                continue  # whether it has a role could be known, and is not
            kept = for_role_only if seen[-1].args.get("invited") else for_role
            if kept(one, step.path) and not own:
                root = re.sub(r"(#\w+)\..*", r"\1", step.path)  # in GraphQL a field and what is below it
                if root == step.path or f"{step.method} {root}" not in found:
                    found[f"{step.method} {root}"] = (step, at)  # of both, the visitor comes last
    for step, at in found.values():
        whom = "a visitor" if step.who == "anonymous" else "an ordinary account"
        key, where = f"account-function {step.called}", on(seen[-1], step.path, step.method)
        yield observed(f"{step.called} answers {whom}", key, "answers", led=(at,), where=where)


def _unlocked(status: int) -> tuple[Exchange, ...]:
    listed, other = "/api/export", "/api/archive"
    needs = {"get": {"security": [{"key": []}], "responses": {"200": {}, "401": {}}}}
    got = NONE | {"facts": {"value": '"a,b"'}}
    made = row(
        ("other", "GET", listed, {}, got),
        ("anonymous", "GET", listed, {}, got | {"status": status}),
        ("anonymous", "GET", other, {}, NO),
    )
    return (description(more={listed: needs, other: needs}), *made)


@oracle(
    id="account-unlocked",
    says="what a description keeps for accounts is refused to visitors, as all else that it keeps",
    severity=Severity.HIGH,
    example=_unlocked(200),
    control=_unlocked(401),
)
def account_unlocked(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: an operation needs credentials and is refused with 401 without them, by the
    description; a visitor is served what an account is, and refused at another such operation."""
    steps = played(seen[-1])
    visits = [one for one in steps if one.who == "anonymous" and one.method == "GET" and "#" not in one.path]
    kept = [(at, one) for one in visits for at, said in described(seen, one.path, "GET") if _needs(said)]
    if not any(one.status == 401 for _, one in kept):
        return
    for at, step in kept:
        same = any(
            one.same(step) and one.facts == step.facts and one.good for one in steps if one.who == "other"
        )
        if step.good and step.facts and same:
            where = on(seen[-1], step.plain)
            title = f"{step.called} answers a visitor"
            yield observed(title, f"account-unlocked {step.plain}", "answers", led=(at,), where=where)


def _needs(one: Operation) -> bool:
    """Whether credentials are needed by the description, and their lack is answered by 401."""
    ways = one.raw.get("security", one.document.get("security"))
    return isinstance(ways, list) and bool(ways) and {} not in ways and one.states(401)


def _tells_roles(document: Mapping[str, Any]) -> bool:
    """Whether a description has the own record of an account."""
    return any(one.method == "GET" and ME_PATH.search(one.path) for one in operations(document))


def _roles_held(step: PlayedStep) -> set[str]:
    """The roles in an account's own record, as words."""
    if not ME_PATH.search(step.path):
        return set()
    told = [
        str(value) for name, value in step.facts.items() if _ROLE_FIELD.fullmatch(name.rpartition(".")[2])
    ]
    return {word for value in told for word in re.findall(r"[A-Za-z]{3,30}", value)}


def plain_account(steps: Sequence[PlayedStep]) -> bool:
    """Whether the other's own record was read, and names no role above others."""
    own = [one for one in steps if one.who == "other" and one.good and ME_PATH.search(one.path)]
    return bool(own) and not any(map(_has_role, own))


def _has_role(step: PlayedStep) -> bool:
    """Whether an account's own record says that it has a role which others have not."""
    told = [(name.rpartition(".")[2], str(value)) for name, value in step.facts.items()]
    return bool(ME_PATH.search(step.path)) and any(
        (_ROLE_FIELD.fullmatch(name) and _RANK.search(value))
        or (_IS_RANK.fullmatch(name) and value == "true")
        for name, value in told
    )


def _showing(*names: str) -> tuple[Exchange, ...]:
    return row(("one", "GET", "/api/users/1", {}, NONE | {"private": names}))


@oracle(
    id="account-private",
    says="no answer to an account has a password, its hash, a code or a secret of the server in it",
    severity=Severity.HIGH,
    example=_showing("password_hash"),
    control=_showing(),
)
def account_private(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """By name and shape of a field, and it is nothing that the account wrote or was given as its session."""
    found: dict[str, tuple[PlayedStep, list[str]]] = {}
    for step in played(seen[-1]):
        names = [name for name in step.got.get("private", ()) if _NEVER_SHOWN.search(name)]
        entering = step.path in (seen[-1].args.get("login"),) or RECOVERS.search(step.plain)
        if names and step.good and not entering:  # in GraphQL a field of a type, whatever leads to it
            found.setdefault(" ".join(names) if "#" in step.path else step.plain, (step, names))
    for step, names in found.values():
        title = f"{step.called} shows {line(', '.join(names).replace('_', ' '), 80)}"
        # as a visitor's page with a number is called
        page = step.plain.partition("#")[0].replace("{id}", "1")
        where = on(seen[-1], page) | {"field": ", ".join(names)}
        yield observed(title, f"account-private {where['route']} {' '.join(names)}", "answers", where=where)


_KEPT = re.compile(
    r"(?i)^(?:only\s+)?(?:(?:visible|shown|readable|disclosed|accessible|private)\s+(?:only\s+)?(?:to|within|by)\s"
    r"|available\s+(?:only\s+)?to\s+(?:the|its|their)\s|confidential\b"
    rf"|for\s+(?:the\s+|its\s+|their\s+)?(?:{_ROLE}|owners?|authors?|teams?|members?)(?:\s+only)?\s*(?:[.;,]|$))"
    r"(?!.{0,80}\b(?:public|every(?:one|body)|any(?:one|body)|all|visitors?|guests?|customers|buyers|clients|users"
    r"|readers|people)\b)"
)
"""What a description says of a field that not everybody is shown."""


def _holding(*names: str) -> tuple[Exchange, ...]:
    said = {"author": {"type": "object", "properties": {"phone": {"description": "Visible to the team."}}}}
    answer = {"content": {"application/json": {"schema": {"type": "object", "properties": said}}}}
    lead = description(more={"/api/notices": {"get": {"responses": {"200": answer}}}})
    return (lead, *row(("anonymous", "GET", "/api/notices", {}, NONE | {"holds": names})))


@oracle(
    id="account-kept",
    says="a field that a description keeps for some is not shown to visitors",
    severity=Severity.HIGH,
    example=_holding("name", "phone"),
    control=_holding("name"),
)
def account_kept(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: it says to whom a field is visible, and a visitor's answer has it."""
    for step in played(seen[-1]):
        if step.who != "anonymous" or step.method != "GET" or not step.good:
            continue
        for at, one in described(seen, step.path, "GET"):
            told = [(name, _KEPT.search(said) is not None) for name, said in _told(one)]
            open_too = {name for name, kept in told if not kept}  # of another object in the same answer
            kept = {name for name, kept in told if kept} - open_too
            shown = sorted(kept & set(step.got.get("holds", ())))
            if shown:
                where = on(seen[-1], step.plain.partition("#")[0]) | {"field": ", ".join(shown)}
                title = f"{step.called} shows a visitor {line(', '.join(shown).replace('_', ' '), 80)}"
                key = f"account-kept {where['route']} {' '.join(shown)}"
                yield observed(title, key, "answers", led=(at,), where=where)


def _told(one: Operation) -> Iterator[tuple[str, str]]:
    """The fields of what an operation answers, and of objects and lists in it, with what is said of each."""
    media = one.media(200).get("application/json")
    waiting = [media.get("schema") if isinstance(media, dict) else None]
    for _ in range(MOST_OBJECTS):
        if not waiting:
            return
        said = resolved(waiting.pop(0), one.document)
        waiting += [said["items"]] if isinstance(said.get("items"), dict) else []
        for name, schema in fields_of(said, one.document)[0].items():
            yield str(name), str(resolved(schema, one.document).get("description", ""))
            waiting.append(schema)


def _naming(known: str, unknown: str) -> tuple[Exchange, ...]:
    sent: dict[str, Any] = {"name": "{handle}", "password": "{phrase}"}
    said = (("wrong", known), ("stranger", unknown)) * 2
    return row(*((who, "POST", "/api/sessions", sent, NO | {"said": words}) for who, words in said))


@oracle(
    id="account-named",
    says="a log-in does not tell a known name from an unknown one",
    severity=Severity.LOW,
    example=_naming(": wrong password", ": no such user"),
    control=_naming(": wrong name or password", ": wrong name or password"),
)
def account_named(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A known name with a wrong passphrase and an unknown name, twice in turn, are refused in two ways; or a
    visitor who asks for a new password is answered in two ways."""
    steps = played(seen[-1])
    for path in dict.fromkeys(one.path for one in steps if one.who == "stranger"):
        known = [one for one in steps if one.who in ("wrong", "anonymous") and one.path == path]
        unknown = [one for one in steps if one.who == "stranger" and one.path == path]
        known = [one for one in known if one.given == unknown[0].given]
        if len(known) < 2 or len(unknown) < 2:
            continue
        mine, theirs = (
            {(one.status, str(one.got.get("said", ""))) for one in some} for some in (known, unknown)
        )
        good = (200, 201, 202, 204) if RECOVERS.search(path) else ()
        if len(mine) == len(theirs) == 1 and mine != theirs:
            (status, _), (other, _) = *mine, *theirs
            if {status, other} <= {*_LOGIN_REFUSALS, *good}:
                said = f"{other} to an unknown name, {status} to a known one"
                said = said if status != other else "unknown names in other words"
                title = f"{known[0].called} answers {said}"
                where = on(seen[-1], path, "POST")
                yield observed(title, f"account-named {path}", "answers", where=where)


def _recovering(facts: dict[str, str]) -> tuple[Exchange, ...]:
    return row(("anonymous", "POST", "/api/forgot", {"name": "{handle}"}, NONE | {"facts": facts}))


@oracle(
    id="account-code",
    says="a code that resets a password is not in the answer that asks for it",
    severity=Severity.CRITICAL,
    example=_recovering({"reset_code": '"482911"'}),
    control=_recovering({"message": '"a code was sent by e-mail"'}),
)
def account_code(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A visitor asks for the code of an account of ours, and the answer has one."""
    for step in played(seen[-1]):
        if step.who != "anonymous" or not step.good or not RECOVERS.search(step.plain):
            continue
        named = [
            name for name, value in step.facts.items() if _CODE_NAME.search(name) and len(str(value)) > 5
        ]
        spoken = any(_CODE.search(str(value)) for value in step.facts.values())
        if named or spoken or any(_CODE_NAME.search(name) for name in step.got.get("private", ())):
            where = on(seen[-1], step.plain, step.method)
            title = f"{step.called} shows a visitor the code"
            yield observed(title, f"account-code {step.plain}", "answers", where=where)
            return


def _changed(after: int) -> tuple[Exchange, ...]:
    keys: dict[str, Any] = {"name": "{handle}", "password": "{phrase}"}
    path = "/api/password"
    return row(
        ("one", "POST", "/api/sessions", keys, NONE),
        ("other", "PUT", path, {"name": "{one}", "password": "{phrase}"}, NONE),
        ("one", "POST", "/api/sessions", keys, NONE | {"status": after}),
    )


@oracle(
    id="account-password",
    says="an account does not change the password of another one",
    severity=Severity.CRITICAL,
    example=_changed(401),
    control=_changed(200),
)
def account_password(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """One logs in; the other's request names that account and succeeds; one cannot log in any more."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        names_one = "{one}" in f"{step.path} {list(step.given.values())}"
        if step.who != "other" or not step.good or step.method == "GET" or not names_one:
            continue
        logins = [
            (when > at, one) for when, one in enumerate(steps) if one.who == "one" and one.method == "POST"
        ]
        before = [one for later, one in logins if not later and one.good]
        after = [one for later, one in logins if later and any(one.same(first) for first in before)]
        if after and all(one.status in (400, 401, 403) for one in after):
            where = on(seen[-1], step.path, step.method)
            title = f"{step.called} succeeds for another account"
            yield observed(title, f"account-password {step.plain}", "answers", where=where)
            return


def _crossed(got: dict[str, Any]) -> tuple[Exchange, ...]:
    path = "/api/receipts"
    lead = description(more={path: {"post": {"summary": "The receipt of a thing of yours"}}})
    made = row(
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("one", "GET", ITEM, {}, MINE),
        ("other", "GET", ITEM, {}, NO | {"status": 404}),
        ("one", "POST", path, {"thing_id": "{id-1}"}, MINE),
        ("anonymous", "POST", path, {"thing_id": "{id-1}"}, NO),
        ("other", "POST", path, {"thing_id": "{id-1}"}, got),
    )
    return (lead, *made)


@oracle(
    id="account-crossed",
    says="a request that names another account's thing, or the account, does not show what that one wrote",
    severity=Severity.HIGH,
    example=_crossed(MINE),
    control=_crossed(NO | {"status": 404}),
)
def account_crossed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: an id in a path, a query, a body or a header is that of one's thing, or its
    name, and the answer to the other has one's mark, which a visitor is refused.

    The thing is one's own: refused to the other at its own path, or listed to its maker alone and by a word
    of the description, or below a place where the other may make nothing.
    """
    steps, told = played(seen[-1]), set[str]()
    for step in steps:
        own_record = _record_of_one(steps, step)
        same_thing = _same_thing(steps, step)
        if (
            step.who != "other"
            or not (step.shows("one") or own_record or same_thing)
            or not step.refers
            or step.plain in told
        ):
            continue
        control = any(one.who == "one" and one.same(step) and one.good for one in steps)
        if any(
            one.who == "anonymous" and one.same(step) and (one.shows("one") or (same_thing and one.good))
            for one in steps
        ):
            continue  # it is everybody's
        if not control or not (closed(steps, step) or (_lists_closed(steps) and not same_thing)):
            continue
        if led := own_thing(seen, steps, step, record=own_record):
            told.add(step.plain)
            where = on(seen[-1], step.plain, step.method)
            title = f"{step.called} answers another account"
            yield observed(title, f"account-crossed {step.plain}", "answers", led=led, where=where)


def _same_thing(steps: Sequence[PlayedStep], step: PlayedStep) -> bool:
    """Whether the other is answered the very record that `one` is of a thing that it made, which has no text
    of its own: a few facts, the same."""
    mine = [one for one in steps if one.who == "one" and one.same(step) and one.good]
    return (
        step.method == "GET"
        and bool(re.search(r"\{id-\d+\}$", step.path))
        and step.good
        and len(step.facts) > 2
        and any(one.facts == step.facts for one in mine)
    )


def _lists_closed(steps: Sequence[PlayedStep]) -> bool:
    """Whether a list that has one's mark is refused to a visitor."""
    lists = [
        one
        for one in steps
        if one.who == "one" and one.method == "GET" and not one.refers and one.shows("one")
    ]
    return any(closed(steps, one) for one in lists)


def _record_of_one(steps: Sequence[PlayedStep], step: PlayedStep) -> bool:
    """Whether an answer to the other is the record that `one` gets of itself, and not the other's own."""
    if "{one}" not in str(step.given) or len(step.facts) < 2 or not step.good:
        return False
    plain = [one for one in steps if one.plain == step.plain and one.method == step.method and not one.given]
    mine = [one.facts for one in plain if one.who == "one" and one.good]
    theirs = [one.facts for one in plain if one.who == "other" and one.good]
    return step.facts in mine and bool(theirs) and step.facts not in theirs


def _searched(found: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(
        ("one", "GET", LIST, {}, MINE),
        ("other", "GET", LIST, {}, NONE),
        ("one", "GET", "/api/things/{id-1}", {}, MINE),
        ("other", "GET", "/api/things/{id-1}", {}, NO | {"status": 404}),
        ("other", "GET", f"{LIST}?q={{one-part}}", {}, found),
    )


@oracle(
    id="account-searched",
    says="a search shows no account what its lists do not",
    severity=Severity.HIGH,
    example=_searched(MINE),
    control=_searched(NONE),
)
def account_searched(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The other's list is without the thing, and the thing is refused to it by its id, which one reads; a
    search for a part of its text shows the other all of it."""
    steps, told = played(seen[-1]), set[str]()
    for step in steps:
        if (
            step.who != "other"
            or "{one-part}" not in step.path
            or not step.shows("one")
            or step.plain in told
        ):
            continue
        listed = [one for one in steps if one.reads(step.plain)]
        mine = any(one.who == "one" and one.shows("one") for one in listed)
        theirs = [one for one in listed if one.who == "other" and one.good]
        refused = [
            one
            for one in steps
            if one.who == "other" and one.refers and one.status in (403, 404)
            if one.plain.startswith(f"{step.plain}/")
            if any(two.who == "one" and two.same(one) and two.shows("one") for two in steps)
        ]
        if mine and theirs and not any(one.shows("one") for one in theirs) and refused:
            told.add(step.plain)
            title = f"{step.called} shows another account's to who searches"
            where = on(seen[-1], step.plain)
            yield observed(title, f"account-searched {step.plain}", "answers", where=where)


def _endless(after: dict[str, Any]) -> tuple[Exchange, ...]:
    played_row = row(
        ("one", "GET", ME, {}, MINE),
        ("anonymous", "GET", ME, {}, NO),
        ("one", "POST", "/api/logout", {}, NONE),
        ("one", "GET", ME, {}, after),
    )
    last = played_row[-1]
    return (Exchange(last.tool, last.args, {**last.result, "endless": True}),)


@oracle(
    id="account-endless",
    says="a session ends: by its log-out, or at a time that its token states",
    severity=Severity.MEDIUM,
    example=_endless(MINE),
    control=_endless(NO),
)
def account_endless(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A signed token without an end still opens the account after the log-out: it does so for good."""
    steps = played(seen[-1])
    left = [at for at, one in enumerate(steps) if one.who == "one" and one.method != "GET" and one.good]
    if seen[-1].result.get("endless") and left:
        before = [one for one in steps[: left[0]] if one.who == "one" and one.method == "GET" and one.good]
        for step in steps[left[0] + 1 :]:
            if (
                step.who == "one"
                and step.good
                and any(step.same(one) for one in before)
                and closed(steps, step)
            ):
                title = f"a token without an end still opens {step.called} after {steps[left[0]].called}"
                yield observed(title, "account-endless", "answers")
                return
