"""Rows of requests by two accounts, made from an OpenAPI description: who signs up, in, and makes what. Pure.

The description is a stranger's: every name and value in it is data, and a part without the expected form
leads to no question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.drivers.desk import Question
from fleet.oracles.account.rights import rights
from fleet.oracles.account.tokens import ATTEMPTS, leaves
from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation, operations
from fleet.personas.model import Step
from sandbox.sites.sessions import FORGED
from sandbox.spec import SAFE

TOOL = "qa_account"
MOST = 6
"""Kinds of things that one run makes."""
HANDLE = 12
"""Characters of a handle: what takes fewer is given a shorter word."""
PHRASE = re.compile(r"(?i)^(?:\w{0,20}_)?(?:pass(?:word|phrase|wd|code)?|pwd)(?:_?\w{0,20})$|^pin$")
MAIL = re.compile(r"(?i)e?-?mail")
NAME = re.compile(r"(?i)^(?:\w{0,20}_)?(?:user(?:_?name)?|handle|login|nick(?:_?name)?|name|account|id)$")
_NAMED = re.compile(f"{NAME.pattern}|{MAIL.pattern.removeprefix('(?i)')}")
_ENTER = re.compile(r"(?i)sessions?|log-?_?in|sign-?_?in|tokens?|auth(?:enticate)?")
_JOIN = re.compile(r"(?i)accounts?|users?|register|registrations?|sign-?_?up|join|members?")
_SELF = re.compile(r"(?i)/(?:me|self|whoami|profile|account|user)$")
_WORDS = frozenset(
    {"date-time", "date", "email", "uuid", "uri", "url", "byte", "binary", "time", "ipv4", "ipv6"}
)
_FORMS = {
    "date": "2030-05-01",
    "date-time": "2030-05-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "{email}",
    "uuid": "5f0c9ad2-7c1e-4b57-9d3b-0d6a3b0f6b11",
    "uri": "https://example.com/",
    "url": "https://example.com/",
}

_ID = "qa-the-id-of-it"
Row = list[Any]


@dataclass(frozen=True, slots=True)
class OwnRecord(Question):
    """The row that reads an account's own record: its answer says which fields that record has."""

    source: Step | None = None
    """The description that it was asked of."""
    path: str = ""
    method: str = ""
    fields: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class AccountRows:
    """The rows of one description, whose `operations` are by path and method.

    `url` spells an operation's path as in a repro, `path_of` gives the path of such a URL, `may_act` says
    where acts are permitted. `start`: the arguments that make the accounts and their sessions.
    """

    operations: Mapping[tuple[str, str], Operation]
    source: Step
    url: Callable[[str], str]
    may_act: Callable[[str], bool]
    path_of: Callable[[str], str]
    start: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        document: Mapping[str, Any],
        source: Step,
        url: Callable[[str], str],
        may_act: Callable[[str], bool],
        path_of: Callable[[str], str],
    ) -> AccountRows | None:
        """None where the description does not say how to sign up, or acts are not permitted there."""
        known = {(one.path, one.method): one for one in operations(document)}
        ways = list(_with_phrase(known.values()))
        join = next((one for one in ways if role_of(one[0]) == "join"), None)
        enter = next((one for one in ways if role_of(one[0]) == "enter"), None)
        if join is None or not all(may_act(url(one[0])) for one in (join, enter) if one):
            return None
        start: dict[str, Any] = {"url": url(join[0]), "fields": join[1]}
        made = cls(known, source, url, may_act, path_of, start)
        if enter:
            start |= {"login": made._at(enter[0]), "login_fields": enter[1]}
        return made

    def questions(self) -> Iterator[Question]:
        """The own record, with every forged token and the end of the session; then each thing."""
        own = (at for at, _ in self._askable(lambda at, how: how == "GET" and bool(_SELF.search(at))))
        if path := next(own, ""):
            ways = (how for at, how in self._askable(lambda _, how: how in ("PATCH", "PUT")) if at == path)
            method = next(ways, "")
            read: Row = ["GET", self._at(path), {}]
            steps = [[who, *read] for who in ("one", "anonymous", *FORGED)]
            change = self.operations.get((path, method))
            known = frozenset(change.fields if change else ())
            yield OwnRecord(
                self._asked(steps).steps, source=self.source, path=path, method=method, fields=known
            )
            login = self.start.get("login", "")
            for leave, how in self._askable(lambda at, how: leaves(how, self._at(at), login)):
                ends = ["one", how, self._at(leave), {}]
                left = self._asked([["one", *read], ["anonymous", *read], ends, ["one", *read]])
                yield Question((self.source, *left.steps), minimal=True)
        for _, row in zip(range(MOST), self._things(), strict=False):
            yield Question((self.source, *self._asked(row).steps), minimal=True)

    def attempts(self, document: Step) -> Iterator[Question]:
        """A document that states how many attempts there are, then too many wrong ones, and the right one."""
        if "login" in self.start:
            sent: Row = ["POST", self.start["login"], self.start["login_fields"]]
            row = self._asked([["wrong", *sent]] * ATTEMPTS + [["one", *sent]])
            yield Question((document, *row.steps))

    def raised(self, asked: OwnRecord, facts: Mapping[str, Any]) -> Iterator[Question]:
        """Each field of rights in the own record that this description does not let anyone send."""
        at = self._at(asked.path)
        for name, said in facts.items() if asked.source == self.source else ():
            value: object = None
            if said in ("true", "false"):  # another value of the kind that the fact has, as JSON
                value = True if said == "false" else None
            elif str(said).startswith('"'):
                value = "admin" if "admin" not in str(said) else None
            elif str(said).isdecimal() and len(str(said)) < 12:
                value = int(said) + 1000
            if rights(name) and name not in asked.fields and asked.method and value is not None:
                read: Row = ["one", "GET", at, {}]
                sent: Row = ["one", asked.method, at, {name: value}]
                row = self._asked([read, sent, read, ["other", "GET", at, {}]])
                yield Question((self.source, *row.steps))

    def _asked(self, steps: list[Row]) -> Question:
        return Question((Step(tool=TOOL, args={**self.start, "steps": steps}),), minimal=True)

    def _at(self, path: str) -> str:
        """The path of an operation on its host; the value at its end is {id}."""
        marked = re.sub(r"\{[^{}/]+\}$", _ID, path)
        return self.path_of(self.url(marked)).replace(_ID, "{id}")

    def _askable(self, chosen: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
        """Paths without a value to fill in, with their methods, of those where acts are permitted."""
        for path, how in self.operations:
            if "{" not in path and chosen(path, how) and (how in SAFE or self.may_act(self.url(path))):
                yield path, how

    def _things(self) -> Iterator[list[Row]]:
        """A collection where something is made, and one thing of it: made, listed, read, changed, removed."""
        for path, _ in self._askable(lambda _, how: how == "POST"):
            below = re.compile(re.escape(path) + r"/\{[^{}/]+\}")
            item = next((at for at, _ in self.operations if below.fullmatch(at)), "")
            body = self._filled(path, "POST")
            if (item, "GET") not in self.operations or "{mark}" not in json.dumps(body):
                continue
            one = self._at(item)
            read, listed = ["GET", one, {}], ["GET", self._at(path), {}]
            row: list[Row] = [["one", "POST", self._at(path), body], ["one", *read]]
            row += [["one", *listed], ["other", *listed]] if (path, "GET") in self.operations else []
            row += [["anonymous", *read], ["other", *read]]
            for how in ("PATCH", "PUT"):
                if (change := self._filled(item, how)) and "{mark}" in json.dumps(change):
                    row += [["other", how, one, change], ["one", *read], ["other", *read]]
            if (item, "DELETE") in self.operations:
                row += [["other", "DELETE", one, {}], ["one", *read], ["one", "DELETE", one, {}]]
            yield row

    def _filled(self, path: str, method: str) -> dict[str, Any]:
        one = self.operations.get((path, method))
        return _body(one) if one else {}


def _with_phrase(known: Iterable[Operation]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Paths that are posted a passphrase, with what is sent there."""
    for one in known:
        body = _body(one, every=False) if one.method == "POST" else {}
        if len(body) == 2 and role_of(one.path) and "{phrase}" not in body.values():
            # of two texts, one of them a name: the other is the passphrase
            given = [
                name
                for name, value in body.items()
                if value in ("{handle}", "{email}") and _NAMED.search(name)
            ]
            other = [name for name, value in body.items() if name not in given and isinstance(value, str)]
            body |= {other[0]: "{phrase}"} if len(given) == len(other) == 1 else {}
        if "{" not in one.path and "{phrase}" in body.values():
            yield one.path, body


def role_of(path: str) -> str:
    """`join` or `enter`, by the last word of a path that says."""
    for part in reversed(path.split("/")):
        for role, words in (("enter", _ENTER), ("join", _JOIN)):
            if words.fullmatch(part):
                return role
    return ""


def _body(operation: Operation, *, every: bool = True) -> dict[str, Any]:
    """A body that fits: what is required, and with `every` the texts too; the first free text is the mark."""
    made: dict[str, Any] = {}
    for name, said in operation.fields.items():
        schema = resolved(said, operation.document)
        free = every and _free(schema)
        if name in operation.required or free or PHRASE.match(name):
            marked = free and "{mark}" not in made.values() and not PHRASE.match(name)
            made[name] = "{mark}" if marked else _value(name, schema, every=every)
    return {name: value for name, value in made.items() if isinstance(value, str | int | float | bool)}


def _free(schema: Mapping[str, Any]) -> bool:
    """Whether any text fits, of 15 characters and more."""
    longest = schema.get("maxLength")
    bound = any(name in schema for name in ("enum", "const", "pattern")) or schema.get("format") in _WORDS
    return schema.get("type") == "string" and not bound and not (isinstance(longest, int) and longest < 15)


def _value(name: str, schema: Mapping[str, Any], *, every: bool) -> object:
    """A value of a field that fits its schema."""
    kind, choices = schema.get("type"), schema.get("enum")
    if kind == "string" and PHRASE.match(name):
        return "{phrase}"
    if kind == "string" and (MAIL.search(name) or schema.get("format") == "email"):
        return "{email}"
    if kind == "string" and not every and NAME.match(name) and not choices:
        return "{handle}"
    for known in ("example", "default", "const"):
        if known in schema:
            return schema[known]
    if isinstance(choices, list) and choices:
        return choices[0]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    longest = schema.get("maxLength")
    short = "qa"[:longest] if isinstance(longest, int) and 0 < longest < HANDLE else "{handle}"
    forms = _FORMS.get(str(schema.get("format")), short)
    return {"boolean": True, "string": forms}.get(str(kind))
