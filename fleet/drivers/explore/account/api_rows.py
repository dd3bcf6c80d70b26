"""Rows of requests by two accounts of an API: who makes what, and what the other may do to it. Pure.

The description is a stranger's: every name and value in it is data, and a part without the expected form
leads to no question.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.bodies import PHRASE, SentBody, Start, filled, free
from fleet.drivers.explore.account.ways import ApiPlaces, known_ways, ways
from fleet.drivers.explore.state_changes import ends_or_spends
from fleet.oracles.account.rights import rights
from fleet.oracles.account.tokens import ATTEMPTS, leaves
from fleet.oracles.documents.graphql import DOCUMENTS
from fleet.oracles.documents.openapi import Operation, operations
from fleet.personas.model import Step
from sandbox.sites.accounts import innermost
from sandbox.sites.sessions import FORGED
from sandbox.spec import SAFE

TOOL = "qa_account"
ROLES = 2
"""Further roles of a sign-up whose accounts are asked as well."""
_OFFERED = re.compile(r"(?i)(?:account|user|member)?_?-?(?:role|type|kind)")
MOST = 6
"""Kinds of things that one run makes."""
LOOKS = 4
"""Pages by which a new session is tried."""
_SELF = re.compile(r"(?i)/(?:me|self|whoami|profile|account|user)$")
_MAKING = re.compile(r"(?i)/(?:create|new|add|store|make|submit)/?$")
"""What ends the path of a request that makes something, where the things are a level above."""
_ID = "qa-the-id-of-it"
Row = list[Any]
_PERSONAL = re.compile(
    r"(?i)pass(?:w|ph)|profile|account|user|member|role|session|token|e-?mail|log-?in|sign|auth|verif|settings"
    r"|(?:[/#]|[a-z])me(?:/|$)|self"
)
"""A path by which an act may change an account itself."""
_ACCOUNT_WORD = re.compile(r"\{(?:one|other)(?:\}|\.|-tag|-mail)")


def _keys(given: object) -> Iterator[str]:
    """The names of fields at any depth."""
    inner = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
    yield from given if isinstance(given, dict) else ()
    for one in inner:
        yield from _keys(one)


def _changes(name: str) -> bool:
    """Whether a field is a right of an account, or its passphrase."""
    return bool(rights(name) or PHRASE.match(name))


def bare_request(method: str, path: str) -> str:
    """A request without its query and the values in its path."""
    return f"{method} {re.sub(r'{[^{}]*}', '{}', path.partition('?')[0])}"


@dataclass(frozen=True, slots=True)
class OwnRecord(Question):
    """The row that reads an account's own record: its answer says which fields that record has."""

    source: Step | None = None
    """The description that it was asked of."""
    path: str = ""
    method: str = ""
    fields: frozenset[str] = field(default_factory=frozenset)

    @property
    def why(self) -> str:
        return "a description that names the record of an account"


@dataclass(frozen=True, slots=True)
class AccountTry(Question):
    """The row that makes the accounts for the first time, and reads a few pages as each of them."""

    rows: AccountRows | None = None

    @property
    def why(self) -> str:
        return "a description that names how accounts are made"


@dataclass(frozen=True, slots=True)
class AccountRows:
    """The rows of one description, whose `operations` are by path and method.

    `start`: the arguments that make the accounts and their sessions; `others`, those that are tried where
    they make none.
    """

    operations: Mapping[tuple[str, str], Operation]
    source: Step
    places: ApiPlaces
    start: Start
    others: tuple[Start, ...] = ()
    documents: Mapping[str, str] = field(default_factory=dict)
    """Of a GraphQL API, by field."""
    lender: AccountRows | None = None
    """The description by which the accounts are made, where it is another one on the host."""
    role: str = ""
    """What the own record of such an account calls its role; "" where it does not say."""
    served: set[str] = field(default_factory=set, compare=False)
    """What these accounts were served, as `bare_request` has it, as it becomes known."""
    refused: set[str] = field(default_factory=set, compare=False)
    """What they were forbidden to make."""
    settled: set[str] = field(default_factory=set, compare=False)
    """What accounts of the role before were served: not asked again."""
    operators: bool = False
    """Whether the profile names the accounts: no one signs up, and none of theirs is changed."""

    @classmethod
    def of(
        cls, document: Mapping[str, Any], source: Step, places: ApiPlaces, known: Start | None = None
    ) -> AccountRows | str:
        """Why there are none, where the description does not say how to sign up, or acts are not permitted;
        `known`: the profile names two accounts, and says this of their log-in."""
        found, why = ways(document, places) if known is None else known_ways(document, places, known)
        if not found:
            return why
        by_path = {(one.path, one.method): one for one in operations(document)}
        documents, operators = document.get(DOCUMENTS, {}), known is not None
        return cls(by_path, source, places, found[0], tuple(found[1:]), documents, operators=operators)

    def lent(self, document: Mapping[str, Any], source: Step, places: ApiPlaces) -> AccountRows:
        """Another description of the same host, asked as the accounts that are made by this one, about what
        they make by both."""
        by_path = {(one.path, one.method): one for one in operations(document)}
        fields = {**self.documents, **document.get(DOCUMENTS, {})}
        return replace(self, operations=by_path, source=source, places=places, documents=fields, lender=self)

    def first(self) -> AccountTry:
        """The accounts are made, and their sessions tried."""
        reads = [self._at(path) for path, _ in self._askable(lambda _, how: how == "GET")]
        steps: list[Row] = [[who, "GET", at, {}] for at in reads[:LOOKS] for who in ("one", "anonymous")]
        asked = self.asked(steps or [["one", "GET", "/", {}]])
        return AccountTry((self.source, *asked.steps), minimal=True, rows=self)

    def after(self, result: Mapping[str, Any]) -> tuple[AccountRows | None, str]:
        """These rows as they can be asked after the answer to `first`, or None; and why not, in words that
        end a sentence."""
        steps = self.first().steps[-1].args["steps"]
        got = [one.get("status", 0) for one in result.get("answers") or () if isinstance(one, Mapping)]
        served = [status for step, status in zip(steps, got, strict=False) if step[0] == "one"]
        if not result.get("ok"):
            return None, str(result.get("error") or result.get("error_class"))
        if served and all(status in (401, 403) for status in served):
            return None, f"the session is not taken: GET {steps[0][2]} answers {served[0]}"
        start = result.get("start")
        changed = {**self.start, **start} if isinstance(start, Mapping) else self.start
        told = [
            str(value).strip('"')
            for one in result.get("answers") or ()
            for name, value in dict(one.get("facts", {})).items()
            if one.get("named") and _OFFERED.fullmatch(name.rpartition(".")[2])
        ]
        return replace(self, start=dict(changed), others=(), role=next(iter(told), "")), ""

    def again(self, start: object) -> AccountRows:
        """The same, first by the arguments of an earlier run, if they are for the same place."""
        if not isinstance(start, dict) or start.get("url") != self.start["url"] or start == self.start:
            return self
        return replace(self, start=start, others=(self.start, *self.others))

    def other_roles(self) -> Iterator[AccountRows]:
        """The same with accounts of the other roles that a sign-up offers, for what these are not served."""
        at = next((path for path, how in self.operations if self.places.url(path) == self.start["url"]), "")
        join = self.operations.get((at, "POST"))
        for name, said in SentBody.of(join).fields.items() if join and not self.lender else ():
            choices, used = said.get("enum"), innermost(self.start["fields"]).get(name)
            if _OFFERED.fullmatch(name) and isinstance(choices, list) and used in (*choices, None):
                had = {str(used).lower(), self.role.lower()}
                others = [one for one in choices if isinstance(one, str) and one.lower() not in had]
                for other in others[:ROLES]:
                    fields = copy.deepcopy(self.start["fields"])
                    innermost(fields)[name] = other
                    start = {**self.start, "fields": fields}
                    new = replace(self, start=start, role=other, settled=self.served)
                    yield replace(new, served=set(), refused=set())

    def next_way(self) -> AccountRows | None:
        """The same by the next way; None after the last."""
        return replace(self, start=self.others[0], others=self.others[1:]) if self.others else None

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
                self.asked(steps).steps, source=self.source, path=path, method=method, fields=known
            )
            login = self.start.get("login", "")
            for leave, how in self._askable(lambda at, how: leaves(how, self._at(at), login)):
                ends = ["one", how, self._at(leave), {}]
                left = self.asked([["one", *read], ["anonymous", *read], ends, ["one", *read]])
                yield Question((self.source, *left.steps), minimal=True)
        for _, asked in zip(range(MOST), self._things(), strict=False):
            yield Question((self.source, *asked.steps), minimal=True)

    def attempts(self, document: Step) -> Iterator[Question]:
        """A document that states how many attempts there are, then too many wrong ones, and the right one."""
        if "login" in self.start and not self.operators:
            sent: Row = ["POST", self.start["login"], self.start["login_fields"]]
            row = self.asked([["wrong", *sent]] * ATTEMPTS + [["one", *sent]])
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
                sent: Row = ["one", asked.method, at, {**self._needed(asked), name: value}]
                row = self.asked([read, sent, read, ["other", "GET", at, {}]])
                yield Question((self.source, *row.steps))

    def _needed(self, asked: OwnRecord) -> dict[str, Any]:
        """What a change of the own record must have."""
        one = self.operations[asked.path, asked.method]
        return {
            name: filled(name, one.fields[name], one.document) for name in one.required if name in one.fields
        }

    def asked(self, steps: list[Row], ident: str = "") -> Question:
        args = {**self.start, "steps": steps} | ({"ident": ident} if ident else {})
        removes = self._removes({row[2] for row in steps if row[1] == "POST"})
        args |= {"removes": removes} if removes else {}
        documents = self._documents(steps)
        args |= {"documents": documents} if documents else {}
        args |= {"shared": True} if self._spares(steps) else {}
        if other := self._sent(steps):
            args["bodies"] = {**self.start.get("bodies", {}), **other}
        return Question((Step(tool=TOOL, args=args),), minimal=True)

    def _sent(self, steps: list[Row]) -> dict[str, str]:
        """How the bodies of steps are sent that are not plain JSON, by the paths of these steps."""
        every = [self, *([self.lender] if self.lender else [])]
        kinds = [
            (how, re.compile(re.sub(r"\\\{[^{}]+\\\}", "[^/]+", re.escape(rows.placed(path)))), one.sent[0])
            for rows in every
            for (path, how), one in rows.operations.items()
            if how not in SAFE and one.sent[0] not in ("", "json")
        ]
        paths = {(step[1], step[2].partition("?")[0]): step[2] for step in steps if step[1] not in SAFE}
        return {
            whole: kind
            for (how, path), whole in paths.items()
            for method, form, kind in kinds
            if how == method and form.fullmatch(path)
        }

    def _spares(self, steps: list[Row]) -> bool:
        """Whether these steps leave the accounts as they are, so that others may be asked as them."""
        login = self.start.get("login", "")
        return not any(
            who == "wrong"
            or leaves(how, at, login)
            or ends_or_spends(at)
            or (
                how not in SAFE
                and (
                    _PERSONAL.search(at)
                    or _ACCOUNT_WORD.search(f"{at} {given}")
                    or any(map(_changes, _keys(given)))
                )
            )
            for who, how, at, given in steps
        )

    def _removes(self, posted: set[str]) -> dict[str, str]:
        """What removes a thing that a POST to one of these paths makes, or an account: as it is described."""
        found, join = dict[str, str](), self.places.path_of(self.start["url"])
        gone = [path for path, how in self.operations if how == "DELETE"]
        for path, how in self.operations:
            at = self.places.at(path) if how == "POST" and "{" not in path and "#" not in path else ""
            if not at or at not in posted | {join}:
                continue
            item = re.compile(re.escape(path.rstrip("/")) + r"/\{[^{}/]+\}/?")
            item_path = next(filter(item.fullmatch, gone), "")
            if not item_path and at == join:
                item_path = next((one for one in gone if "{" not in one and _SELF.search(one)), "")
            if item_path and self.places.may_act(self.places.url(re.sub(r"\{[^{}/]+\}", "1", item_path))):
                found[at] = self._at(item_path)
        return found

    def placed(self, path: str) -> str:
        """The path of an operation on its host; its values as they are written."""
        names = re.findall(r"\{[^{}/]+\}", path)
        for number, name in enumerate(names):
            path = path.replace(name, f"{_ID}-{number}-", 1)
        path = self.places.at(path)
        for number, name in enumerate(names):
            path = path.replace(f"{_ID}-{number}-", name)
        return path

    def _documents(self, steps: list[Row]) -> dict[str, str]:
        """Those of GraphQL that these steps and the entrances need."""
        paths = (
            self.places.path_of(self.start["url"]),
            self.start.get("login", ""),
            *self.start.get("invited", {}).values(),
            *(one[2] for one in steps),
        )
        found = {
            path.partition("#")[2].partition("/")[0]: path.partition("#")[0] for path in paths if "#" in path
        }
        return {
            f"{at}#{field}": self.documents[field] for field, at in found.items() if field in self.documents
        }

    def _at(self, path: str) -> str:
        """The path of an operation on its host; the value at its end is {id}."""
        marked = re.sub(r"\{[^{}/]+\}(?=/?$)", _ID, path)
        return self.places.at(marked).replace(_ID, "{id}")

    def _askable(self, chosen: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
        """Paths without a value to fill in, with their methods, of those where acts are permitted."""
        for path, how in self.operations:
            if (
                "{" not in path
                and chosen(path, how)
                and (how in SAFE or self.places.may_act(self.places.url(path)))
            ):
                yield path, how

    def _things(self) -> Iterator[Question]:
        """A collection where something is made, and one thing of it: made, listed, read, changed, removed."""
        for path, _ in self._askable(lambda _, how: how == "POST"):
            above = _MAKING.sub("", path)
            below = re.compile(
                "(?:" + "|".join(re.escape(one.rstrip("/")) for one in (path, above)) + r")/\{([^{}/]+)\}/?"
            )
            item = next((at for at, _ in self.operations if below.fullmatch(at)), "")
            body = self._filled(path, "POST")
            if (item, "GET") not in self.operations or "{mark}" not in json.dumps(body):
                continue
            one, lists = (
                self._at(item),
                next((at for at in (path, above) if (at, "GET") in self.operations), ""),
            )
            read, listed = ["GET", one, {}], ["GET", self._at(lists), {}]
            row: list[Row] = [["one", "POST", self._at(path), body], ["one", *read]]
            row += [["one", *listed], ["other", *listed]] if lists else []
            row += [["anonymous", *read], ["other", *read]]
            for how in ("PATCH", "PUT"):
                if (change := self._filled(item, how)) and "{mark}" in json.dumps(change):
                    row += [["other", how, one, change], ["one", *read], ["other", *read]]
            if (item, "DELETE") in self.operations:
                row += [["other", "DELETE", one, {}], ["one", *read], ["one", "DELETE", one, {}]]
            named = re.search(r"\{([^{}/]+)\}", item)
            yield self.asked(row, named[1] if named and named[1] != "id" else "")

    def _filled(self, path: str, method: str) -> dict[str, Any]:
        """A body that fits: what is required, and the texts; the first free text is the mark."""
        if (one := self.operations.get((path, method))) is None:
            return {}
        body, made = SentBody.of(one), dict[str, Any]()
        for name, said in body.fields.items():
            if said.get("readOnly") is True:
                continue
            if name in body.required or free(said, name) or PHRASE.match(name):
                marked = free(said, name) and "{mark}" not in made.values()
                made[name] = "{mark}" if marked else filled(name, said, one.document, entering=False)
        return (
            body.wrapped({name: value for name, value in made.items() if value is not None}) if made else {}
        )
