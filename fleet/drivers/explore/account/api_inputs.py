"""The inputs of an operation, and what of them can be filled with what an account made itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fleet.drivers.explore.account.bodies import PHRASE, SentBody, filled, free, plain
from fleet.oracles.documents.openapi import Operation
from sandbox.sites.accounts import SHAPED
from sandbox.sites.idents import snake
from sandbox.sites.likeness import like

Row = list[Any]
MARK, TAG, ONE, ONE_MAIL = "{mark}", "{one-tag}", "{one}", "{one-mail}"
HANDLER = "{mark}'\"></title></textarea></style></script><img src id={mark} onerror=name>"
"""Markup whose handler changes nothing."""
_WHOM = "user|owner|account|member|customer|author|profile|person|client"
USER = re.compile(rf"(?i)^(?:x-)?(?:(?:{_WHOM})[-_]?(?:name|id|handle)?|name|login|handle|email)$")
"""An input that may name an account."""
_RECIPIENT = re.compile(r"(?i)^(?:to|recipient|receiver|payee|beneficiary|invitee)[-_]?(?:e[-_]?)?mail")
"""An input that names another account by its address."""
_ID = re.compile(r"(?:[-_]?(?:id|uuid|number|no|key|ref|slug)|I[dD]|Uuid)$")
_MADE = re.compile(
    r"(?i)^(?:create|add|new|make|submit|post|place|save|register|insert|update|edit|change|set|delete|remove|get)(?=[A-Z_-])[-_]?|(?<=[a-z])(?:Create|Add|New)$"
)
BARE = ("id", "uuid", "key", "ident")
"""What an id is called that does not say of what."""
_WORD = re.compile(r"\{[a-z]")
_EXISTS = re.compile(
    r"(?i)coupon|voucher|promo|discount|invit|referr|gift|(?:^|_)(?:code|token|key|ref)$|(?<=[a-z])(?:Code|Token|Key|Ref)$"
)
"""An input that names what must be there: it is left out where it may be."""


@dataclass(frozen=True, slots=True)
class OperationInputs:
    """Inputs of an operation by name: where each stands (`path`, `query`, `header`, `body`); its schema."""

    operation: Operation
    at: str
    """Its path on its host."""
    all: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    required: frozenset[str] = frozenset()

    @classmethod
    def of(cls, one: Operation, at: str) -> OperationInputs:
        found: dict[str, tuple[str, Mapping[str, Any]]] = {}
        needed = set[str]()
        for said in one.parameters:
            where, name = said.get("in"), str(said.get("name", ""))
            schema = said.get("schema", said)
            if where in ("path", "query", "header") and name and isinstance(schema, Mapping):
                found[name] = (str(where), plain(schema, one.document))
                needed |= {name} if said.get("required") or where == "path" else set()
        for name in re.findall(r"\{([^{}/]+)\}", one.path):
            found.setdefault(name, ("path", {}))
            needed.add(name)
        body = SentBody.of(one)
        for name, schema in body.fields.items():
            if name not in found and schema.get("readOnly") is not True:
                found[name] = ("body", schema)
        return cls(one, at, found, frozenset(needed | set(body.required)))

    def of_kind(self, *kinds: str) -> Iterator[str]:
        """The names of those of such a type."""
        return (name for name, (_, said) in self.all.items() if said.get("type") in kinds)

    def texts(self) -> list[str]:
        """The names of those that take any text."""
        return [
            name
            for name in self.of_kind("string")
            if self.all[name][0] in ("query", "body", "path") and free(self.all[name][1], name)
        ]

    def row(self, who: str, values: Mapping[str, Any], *, marked: bool = True) -> Row | None:
        """The request with these values, and what it needs besides; None where a path has no value.

        `marked`: texts of the body that are free hold the mark of the account that asks.
        """
        path, query, given, body = self.at, list[str](), dict[str, Any](), dict[str, Any]()
        for name, (where, said) in self.all.items():
            if name in values:
                value = values[name]
            elif where == "body" and marked and free(said, name) and "default" not in said:
                if name not in self.required and _EXISTS.search(name):
                    continue
                value = MARK
            elif where != "header" and (name in self.required or PHRASE.match(name)):
                value = filled(name, said, self.operation.document, entering=False)
            else:
                continue
            if where == "path" and (f"{{{name}}}" not in path or value is None):
                return None
            if where == "path":
                path = path.replace(f"{{{name}}}", _quoted(value))
            elif where == "query":
                query.append(f"{quote(name)}={_quoted(value)}")
            elif where == "header":
                given[f"header {name}"] = value
            elif value is not None or name in values:
                body[name] = value
        whole = SentBody.of(self.operation)
        if body or whole.layers:
            given |= whole.wrapped(body)
        return [who, self.operation.method, path + ("?" + "&".join(query) if query else ""), given]


def _quoted(value: object) -> str:
    """A value in a URL; a word of an account stays as it is, one in a form is a text that fits."""
    text = str(value)
    if shaped := SHAPED.fullmatch(text):
        text = like(shaped[2], shaped[2])
    return text if re.fullmatch(r"\{[a-z0-9-]+(?:\.[\w-]+|:[^{}]+)?\}", text) else quote(text, safe="")


def stem(name: str) -> str:
    """What a thing is called by its collection, its making, or an id: `boat` of `/boats`, `boat_id`."""
    last = re.split(r"[/#.]" if "#" in name else r"/", name.rstrip("/"))[-1]
    bare = _MADE.sub("", _ID.sub("", last)) or last
    one = re.sub(r"(?<=[^aeiou])ies$", "y", bare.lower())
    return re.sub(r"(?:(?<=[sxh])es|(?<!s)s)$", "", one).strip("-_")


def list_of(path: str) -> str:
    """The path of the list that a thing is in: without the value at its end."""
    return re.sub(r"/\{[^{}/]+\}/?$", "", path)


def refers(name: str) -> bool:
    """Whether an input holds the id of something, by its name."""
    return bool(_ID.search(name)) and len(stem(name)) > 1 and name.lower() not in BARE


def names_people(path: str) -> bool:
    """Whether a path leads to an account by its id: `/users/{id}/role`."""
    return bool(re.search(rf"(?i)/(?:{_WHOM}|people)s?/\{{[^{{}}]+\}}", path))


def _is_person(thing: str) -> bool:
    """Whether a collection has accounts."""
    return bool(re.fullmatch(rf"(?i)(?:[\w-]*[_-])?(?:{_WHOM}|people)", thing))


def _above(inputs: OperationInputs, name: str) -> str:
    """What a value in a path is of, by the segment above it; "" if it is none."""
    parent = re.search(rf"[/#]([\w.-]+)/\{{{re.escape(name)}\}}", inputs.at)
    return stem(parent[1]) if parent else ""


def names_owner(name: str) -> bool:
    """Whether an input says whose a thing is, as `user_id` and `ownerId` do, and `assigneeId` does not."""
    return bool(_ID.search(name) and USER.match(name))


def names_account(name: str) -> bool:
    """Whether an input holds the id of an account, as `userId`, `to_user_id` or `assigneeId` do."""
    return bool(_ID.search(name) and re.search(rf"(?i)(?:^|[_-]|(?<=[a-z]))(?:{_WHOM})[-_]?id$", name))


@dataclass(slots=True)
class Planted:
    """What `one` made so far in a row: by what it is called, its word; and the names that it gave itself.
    `seen` are the names of ids that answers to it have besides: of its account, its group (`team_id`);
    `lists` are the paths of lists, by what is in them; `role` is that of its account."""

    made: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    seen: frozenset[str] = frozenset()
    lists: Mapping[str, str] = field(default_factory=dict)
    role: str = ""

    def listed(self, inputs: OperationInputs) -> dict[str, str]:
        """The other inputs that must name a thing, of everybody's then: the first of its list. None for what
        changes or removes the thing: what is posted below it makes something, by its status."""
        found: dict[str, str] = {}
        method, makes = inputs.operation.method, inputs.operation.states(201)
        for name in inputs.required if method in ("GET", "POST") else ():
            if method == "POST" and name.lower() in BARE and not makes:
                continue
            called = _above(inputs, name) if name.lower() in BARE else stem(name)
            at = self.lists.get(called) if _ID.search(name) and not names_account(name) else None
            if at and called not in self.made:
                found[name] = f"{{listed:{at}}}"
        return found

    def values(self, inputs: OperationInputs, *, account: bool = True) -> dict[str, str]:
        """The inputs that can name a thing or the account of `one`."""
        found: dict[str, str] = {}
        path = inputs.at.partition("/{")[0]
        for name, (where, said) in inputs.all.items():
            of_path = _above(inputs, name)
            known = self.made.get(stem(name)) if _ID.search(name) and stem(name) else None
            bare = name.lower() in BARE
            above = f"{of_path or stem(path)}_id" if bare else snake(name)
            if name in self.named and (where == "path" or where == "query"):
                found[name] = TAG
            elif known:
                found[name] = known
            elif bare and (of_path or stem(path)) in self.made:
                found[name] = self.made[of_path or stem(path)]
            elif not bare and name in self.seen and _ID.search(name) and (account or where == "path"):
                found[name] = f"{{one.{name}}}"
            elif above in self.seen and _ID.search(above) and (account or where == "path"):
                found[name] = f"{{one.{above}}}"
            elif "id" in self.seen and (
                _is_person(of_path) or (inputs.operation.method == "GET" and of_path not in self.lists)
                if bare
                else (account and names_account(name))
                or (inputs.operation.method, where, stem(name)) == ("GET", "path", self.role or None)
            ):
                found[name] = "{one.id}"
            elif account and _RECIPIENT.match(name):
                found[name] = ONE_MAIL
            elif account and USER.match(name) and said.get("type", "string") == "string":
                found[name] = ONE
        return found
