"""The schema of a GraphQL API that does not tell it, from what it says of names that it has or not. Pure.

Every document has a field that no API has, so it is refused as a whole and nothing of it is done (GraphQL
specification, 5: only a valid document is executed). An implementation says of each name whether a type has
it, what it is like, what it needs, and often which names are close to it (graphql-js and what follows its
words: Apollo, graphql-core, Strawberry, gqlgen, Absinthe). The result has the form of an introspection.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleet.oracles.texts import parsed

ABSENT = "qaNoSuchField"
_LITERAL = "qaX"
"""A value that is of no usual type: an enumeration's, of none."""
MOST, ROW, FIELDS, DEEP = 64, 56, 6, 3
"""Documents in all, names in one, fields whose arguments one asks for, objects below a root."""
MOST_CUT = 128
"""Documents of an API that says a few errors of each only: what comes after them is asked for again."""
_WORDS = {
    kind: words.split()
    for kind, words in tomllib.loads(Path(__file__).with_name("graphql_words.toml").read_text()).items()
}
_THINGS = _WORDS["things"]
QUERIES = (
    *_WORDS["queries"],
    *_THINGS,
    *(f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s" for thing in _THINGS),
)
MUTATIONS = (
    *_WORDS["mutations"],
    *(f"{verb}{thing.capitalize()}" for verb in _WORDS["verbs"] for thing in _THINGS),
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}", re.ASCII)
_QUOTED = re.compile(r"[\"']([A-Za-z_][A-Za-z0-9_]{0,79})[\"']", re.ASCII)
_UNKNOWN = re.compile(r"Cannot query field [\"'](\w{1,80})[\"'] on type [\"'](\w{1,80})[\"']")
_OBJECT = re.compile(r"Field [\"'](\w{1,80})[\"'] of type [\"']([\[\]!\w]{1,120})[\"'] must have a s")
_NEEDS = re.compile(
    r"(?:Field [\"'](?P<field>\w{1,80})[\"'] argument [\"'](?P<name>\w{1,80})[\"']"
    r"|Argument [\"']\w{1,80}\.(?P<of>\w{1,80})\((?P<named>\w{1,80}):\)[\"'])"
    r" of type [\"'](?P<type>[\[\]!\w]{1,120})[\"'] is required"
)
_NO_ARGUMENT = re.compile(
    r"Unknown argument [\"'](\w{1,80})[\"'] on field [\"'](?:\w{1,80}\.)?(\w{1,80})[\"']"
)
_NO_INPUT = re.compile(
    r"(?:Field [\"'](\w{1,80})[\"'] is not defined by type|not to include unknown field [\"'](\w{1,80})[\"'])"
)
_NEEDED_INPUT = re.compile(
    r"Field [\"'](\w{1,80})\.(\w{1,80})[\"'] of required type"
    r"|Expected value of type [\"'](\w{1,80})!?[\"'] to include required field [\"'](\w{1,80})[\"']"
)
_TYPED = re.compile(
    r"^(ID|String|Int|Float|Boolean) cannot represent"
    r"|Expected value of type [\"']([\[\]!\w]{1,120})[\"'](?:,| to be an object)"
    r"|Expected type ([\[\]!\w]{1,120}),? found"
)
_ENUM = re.compile(
    r"does not exist in [\"'](\w{1,80})[\"'] enum|Enum [\"'](\w{1,80})[\"'] cannot represent non-enum"
)
_MEANT = re.compile(r"Did you mean (.{1,400})")


@dataclass(slots=True)
class _Type:
    """A type as far as it is known: what it has, by name, as a type is written; and what its fields take."""

    fields: dict[str, str] = field(default_factory=dict)
    takes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class TrialDocument:
    """One document. `way` leads to a type from `root`. `lines`: what each is about, a name of the type, or
    the owner of an argument (a field, or a field and its argument) and the argument's name."""

    root: str
    way: tuple[str, ...]
    document: str
    lines: Mapping[int, tuple[str, str]]
    arguments: bool = False


@dataclass(slots=True)
class GuessedSchema:
    """Asks for names by `next`, until there is nothing left to ask or it was asked often enough."""

    mutations: bool
    names: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    """Of the type that a way leads to."""
    types: dict[str, _Type] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    needed: set[tuple[str, str]] = field(default_factory=set)
    """Of `inputs`, type and name."""
    enums: set[str] = field(default_factory=set)
    cut: bool = False
    """Whether an answer did not have all errors."""
    _waiting: deque[TrialDocument] = field(default_factory=deque)
    _made: int = 0

    def __post_init__(self) -> None:
        self._fields("query", (), QUERIES)
        if self.mutations:
            self._fields("mutation", (), MUTATIONS)

    def next(self) -> TrialDocument | None:
        """The next document; None when the schema is as good as it gets."""
        if not self._waiting or self._made >= (MOST_CUT if self.cut else MOST):
            return None
        self._made += 1
        return self._waiting.popleft()

    def learn(self, guess: TrialDocument, text: str) -> None:
        """What the errors of its answer say."""
        said = list(_errors(text))
        if guess.arguments:
            self._learn_arguments(guess, said)
        elif said:
            self._learn_fields(guess, said)

    def schema(self) -> dict[str, Any]:
        """As the answer to an introspection; without a field that was found, {}."""
        roots = {kind: self.names.get((kind, ()), "") for kind in ("query", "mutation")}
        if not any(self.types[name].fields for name in roots.values() if name):
            return {}
        kinds = dict.fromkeys(self.types, "OBJECT") | dict.fromkeys(self.inputs, "INPUT_OBJECT")
        types: list[dict[str, Any]] = [
            {
                "kind": "OBJECT",
                "name": name,
                "fields": [
                    {
                        "name": one,
                        "args": self._taken(known.takes.get(one, {}), kinds),
                        "type": _written(of, kinds),
                    }
                    for one, of in known.fields.items()
                ],
            }
            for name, known in self.types.items()
        ]
        types += [
            {
                "kind": "INPUT_OBJECT",
                "name": name,
                "inputFields": self._taken(
                    {one: f"{of}!" if (name, one) in self.needed else of for one, of in has.items()}, kinds
                ),
            }
            for name, has in self.inputs.items()
        ]
        found = {f"{kind}Type": {"name": name} for kind, name in roots.items() if name}
        return {"data": {"__schema": {**found, "types": types}}}

    def _taken(self, names: Mapping[str, str], kinds: Mapping[str, str]) -> list[dict[str, Any]]:
        """Arguments in their form, without enumerations that are not needed: no value of one is known."""
        return [
            {"name": name, "type": _written(of, kinds)}
            for name, of in names.items()
            if of.endswith("!") or _inner(of) not in self.enums
        ]

    def _fields(self, root: str, way: tuple[str, ...], names: Iterable[str], *, soon: bool = False) -> None:
        """Ask what the type at a way has of these names, `soon` before all else."""
        left = [name for name in dict.fromkeys(names) if _NAME.fullmatch(name)]
        for at in range(0, len(left), ROW):
            row = left[at : at + ROW]
            opened = "".join(f" {one} {{" for one in way)
            lines = [f"{root} {{{opened}", *row, ABSENT, "}" * (len(way) + 1)]
            where = {number: ("", name) for number, name in enumerate(row, 2)}
            place = 0 if soon else len(self._waiting)
            self._waiting.insert(place, TrialDocument(root, way, "\n".join(lines), where))

    def _learn_fields(self, guess: TrialDocument, said: Sequence[tuple[str, int]]) -> None:
        unknown, meant, own = set[str](), list[str](), ""
        for message, line in said:
            if (found := _UNKNOWN.search(message)) and line > 1:
                own = found[2]
                unknown.add(found[1])
                meant += _suggested(message)
        names, rest = self._judged(guess, said)
        if not own or not names:
            return
        self._fields(guess.root, guess.way, (name for _, name in rest))
        self.names[guess.root, guess.way] = own
        known = self.types.setdefault(own, _Type())
        objects = {found[1]: found[2] for message, _ in said if (found := _OBJECT.search(message))}
        fresh = [name for name in names if name not in unknown and name not in known.fields]
        for name in fresh:
            known.fields[name] = objects.get(name, "ID" if name == "id" else "String")
        known.asked |= {*names, *known.fields}
        if close := [name for name in dict.fromkeys(meant) if name not in known.asked]:
            known.asked |= set(close)
            self._fields(guess.root, guess.way, close, soon=True)
        for found in (needs for message, _ in said if (needs := _NEEDS.search(message))):
            if (name := found["field"] or found["of"]) in fresh:
                self._takes(guess, known, name, found["name"] or found["named"], found["type"])
        self._further(guess, known, fresh)

    def _judged(
        self, guess: TrialDocument, said: Sequence[tuple[str, int]]
    ) -> tuple[list[str], list[tuple[str, str]]]:
        """The names that an answer is about, and the lines that it does not reach: the field that is nowhere
        stands behind them all, and is not among the errors."""
        absent = any((found := _UNKNOWN.search(message)) and found[1] == ABSENT for message, _ in said)
        last = max((line for _, line in said), default=0)
        rest = [] if absent else [asked for line, asked in guess.lines.items() if line > last]
        self.cut |= not absent
        return [name for line, (_, name) in guess.lines.items() if absent or line <= last], rest

    def _further(self, guess: TrialDocument, known: _Type, fresh: Sequence[str]) -> None:
        """The objects that these fields are, and what the fields of a root take."""
        for name in fresh:
            inner = _inner(known.fields[name])
            if inner not in _SCALARS and inner not in self.types and len(guess.way) < DEEP:
                self.types[inner] = _Type()
                self._fields(guess.root, (*guess.way, name), _WORDS["values"])
        for at in range(0, len(fresh) if not guess.way else 0, FIELDS):
            fields = fresh[at : at + FIELDS]
            asked = {name: [*known.takes.get(name, {}), *_WORDS["arguments"]] for name in fields}
            self._arguments(guess.root, {name: ("", names) for name, names in asked.items()})

    def _arguments(self, root: str, asked: Mapping[str, tuple[str, Sequence[str]]]) -> None:
        """Ask what fields take of these names, each in its line; or what an argument has, an object."""
        lines, where = [f"{root} {{"], dict[int, tuple[str, str]]()
        for at, (name, (argument, names)) in enumerate(asked.items()):
            lines.append(f"a{at}: {name}({f'{argument}: {{' if argument else ''}")
            for one in dict.fromkeys(names):
                lines.append(f"{one}: {_LITERAL}")
                where[len(lines)] = (f"{name} {argument}".strip(), one)
            lines.append("})" if argument else ")")
        self._waiting.append(TrialDocument(root, (), "\n".join([*lines, ABSENT, "}"]), where, arguments=True))

    def _learn_arguments(self, guess: TrialDocument, said: Sequence[tuple[str, int]]) -> None:
        known = self.types.get(self.names.get((guess.root, ()), ""))
        if known is None:
            return
        absent, typed = set[tuple[str, str]](), dict[int, str]()
        close: dict[str, list[str]] = {}
        for message, line in said:
            if found := _NO_ARGUMENT.search(message) or _NO_INPUT.search(message):
                of = found[2] if found.re is _NO_ARGUMENT else guess.lines.get(line, ("", ""))[0]
                absent.add((of, found[1] or found[2]))
                close.setdefault(of, []).extend(_suggested(message))
            elif found := _NEEDED_INPUT.search(message):
                self.needed.add((found[1] or found[3], found[2] or found[4]))
            elif of := self._type_of(message):
                typed[line] = of
        for line, (owner, name) in guess.lines.items():
            if line in typed and (owner, name) not in absent:
                top, _, argument = owner.partition(" ")
                if argument:
                    inner = _inner(known.takes[top][argument])
                    self.inputs.setdefault(inner, {}).setdefault(name, typed[line])
                else:
                    self._takes(guess, known, top, name, typed[line])
        judged, rest = self._judged(guess, said)
        for owner in dict.fromkeys(owner for owner, _ in rest) if judged else ():
            top, _, argument = owner.partition(" ")
            self._arguments(guess.root, {top: (argument, [name for of, name in rest if of == owner])})
        for owner, names in close.items():
            top, _, argument = owner.partition(" ")
            asked = {name for of, name in guess.lines.values() if of == owner}
            if more := [one for one in dict.fromkeys(names) if one not in asked]:
                self._arguments(guess.root, {top: (argument, more)})

    def _type_of(self, message: str) -> str:
        """The type that a value was not of."""
        if found := _ENUM.search(message):
            name = found[1] or found[2]
            self.enums.add(name)
            self.inputs.pop(name, None)
            return name
        found = _TYPED.search(message)
        return found[1] or found[2] or found[3] if found else ""

    def _takes(self, guess: TrialDocument, known: _Type, name: str, argument: str, of: str) -> None:
        """An argument of a field, and what it has where it is an object."""
        known.takes.setdefault(name, {}).setdefault(argument, of)
        inner = _inner(of)
        if not guess.way and inner not in (*_SCALARS, *self.enums, *self.inputs):
            self.inputs[inner] = {}
            self._arguments(guess.root, {name: (argument, [*_WORDS["arguments"], *_WORDS["values"]])})
            self._arguments(guess.root, {name: (argument, [])})  # what it needs is said when nothing is there


_SCALARS = frozenset({"ID", "String", "Int", "Float", "Boolean"})


def _errors(text: str) -> Iterator[tuple[str, int]]:
    """The messages of an answer, with the first line that each is about."""
    read = parsed(text)
    errors = read.get("errors") if isinstance(read, dict) else None
    for one in errors if isinstance(errors, list) else ():
        if isinstance(one, dict) and isinstance(one.get("message"), str):
            places = one.get("locations")
            first = places[0] if isinstance(places, list) and places else {}
            line = first.get("line") if isinstance(first, dict) else 0
            yield one["message"][:2_000], line if isinstance(line, int) else 0


def _suggested(message: str) -> list[str]:
    found = _MEANT.search(message)
    return _QUOTED.findall(found[1].partition("Found")[0]) if found else []


def _inner(written: str) -> str:
    return written.strip("[]!")


def _written(of: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    """A type as it is written, in the form of an introspection."""
    if of.endswith("!"):
        return {"kind": "NON_NULL", "ofType": _written(of[:-1], kinds)}
    if of.startswith("[") and of.endswith("]"):
        return {"kind": "LIST", "ofType": _written(of[1:-1], kinds)}
    return {"kind": kinds.get(of, "SCALAR"), "name": of}
