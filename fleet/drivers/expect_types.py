"""Whether an expectation can be decided on the results of its probe's steps, before anything is asked.

Walks the parse tree of cel-python. Whether an operator or a function takes a type is asked of the library
itself, with a sample value of that type: so no table here can differ from what decides a run.
Loads the library: imported by the first check only (expect.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from celpy.celparser import CELParseError
from lark import Token, Tree

from fleet.drivers.expect import FUNCTIONS, MACROS, OPERATORS, REDUCE, VARIABLES, compiled, functions
from fleet.drivers.expect_overloads import NO_OVERLOAD, applied
from fleet.drivers.expect_paths import Node, Path, arguments_of, guards, literal_of, path_of
from fleet.drivers.expect_shapes import ANY, BOOL, DOUBLE, STRING, TypeShape, variables
from fleet.drivers.expect_words import (
    LITERALS,
    METHODS,
    PARTIAL,
    SAME,
    TYPES,
    an,
    bad_pattern,
    mixed,
    never,
    never_lower,
    no_word,
    one_of,
    other_default,
    unheard,
)
from fleet.personas.check import Fault, Wants, suggestion
from fleet.text import counted

REMEDY = "write CEL over result, results, history and facts"


def faults(text: str, tools: Sequence[str], wants: Wants) -> list[Fault]:
    """Why this cannot be decided on the results of `tools`, in their order in the text; [] for a sound one.

    `wants`: "bool" for an expectation, "number" for a figure that is kept.
    """
    try:
        tree = compiled(text)
    except CELParseError as error:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: (error.line or 1) - 1])) + (error.column or 1) - 1
        said = " ".join(str(error).strip().splitlines()[:1]) or "syntax"
        return [Fault(f"not a CEL expression: {said}", REMEDY, min(at, len(text)))]
    except RecursionError:
        return [Fault("nested too deeply", "write it flat")]
    walk = _Walk(text, variables(tools), guards(tree))
    try:
        shape = walk.expr(tree)
    except RecursionError:
        return [Fault("nested too deeply", "write it flat")]
    if not walk.found:
        walk.last(tree, shape, wants)
    return sorted(walk.found, key=lambda fault: fault.at)


class _Walk:
    """One pass over a tree; each method gives the shape of a node, `any` once something is wrong in it."""

    def __init__(self, text: str, names: dict[str, TypeShape], guarded: set[Path]) -> None:
        self._text, self._names, self._guarded = text, names, guarded
        self.found: list[Fault] = []

    def last(self, tree: Node, shape: TypeShape, wants: Wants) -> None:
        """Whether the whole is what is wanted."""
        if wants == "bool" and shape.kind not in ("bool", "any"):
            why = f"is neither true nor false but {an(shape)}"
            self._wrong(tree, why, "compare it with what is expected")
        if wants == "number" and shape.kind not in ("int", "double", "any"):
            self._wrong(tree, f"is not a number but {an(shape)}", "name a figure, such as result.p95_ms")

    def expr(self, node: Any) -> TypeShape:
        """The shape of any node of the tree."""
        name = str(node.data)
        if name in ("conditionalor", "conditionaland") and len(node.children) == 2:
            return self._logic(node, "||" if name == "conditionalor" else "&&")
        if name == "expr" and len(node.children) == 3:
            return self._choice(node)
        if name in ("relation", "addition", "multiplication") and len(node.children) == 2:
            return self._binary(node)
        if name == "unary" and len(node.children) == 2:
            return self._unary(node)
        if name in METHODS:
            shape: TypeShape = getattr(self, f"_{name}")(node)
            return shape
        if name.startswith("dot_ident"):
            return self._wrong(node, "a name cannot begin with a dot", REMEDY)
        return self.expr(node.children[0])

    def _wrong(self, node: Any, message: str, remedy: str) -> TypeShape:
        meta = getattr(node, "meta", node)
        self.found.append(Fault(message, remedy, getattr(meta, "start_pos", 0) or 0))
        return ANY

    def _source(self, node: Any) -> str:
        return " ".join(self._text[node.meta.start_pos : node.meta.end_pos].split())[:60]

    def _truth(self, node: Any, of: str) -> None:
        shape = self.expr(node)
        if shape.kind not in ("bool", "any"):
            self._wrong(node, f"{of} needs true or false, {self._source(node)} is {an(shape)}", "compare it")

    def _logic(self, node: Node, word: str) -> TypeShape:
        for one in node.children:
            self._truth(one, word)
        return BOOL

    def _choice(self, node: Node) -> TypeShape:
        self._truth(node.children[0], "?")
        one, other = (self.expr(child) for child in node.children[1:])
        if one.kind == other.kind or "any" in (one.kind, other.kind):
            return replace(one if one.kind != "any" else other, literal=None, words=())
        return self._wrong(node.children[2], f"? answers {an(one)} or {an(other)}", SAME)

    def _binary(self, node: Node) -> TypeShape:
        operator, right = node.children
        assert isinstance(operator, Tree)
        word = OPERATORS[str(operator.data).rpartition("_")[2]]
        left = operator.children[0]
        shapes = (self.expr(left), self.expr(right))
        answer = applied(f"_{word}_", shapes)
        if answer is not NO_OVERLOAD and not mixed(word, *shapes):
            for at, (text, given) in ((right, shapes), (left, shapes[::-1])):
                why, remedy = never_lower(text, given) if word in ("==", "!=", "in") else ("", "")
                if why:
                    self._wrong(at, why, remedy)
            for side, of, value in unheard(word, shapes):
                why = f"{self._source((left, right)[side])} {never(value, of)}"
                self._wrong((right, left)[side], why, one_of(of))
            return answer
        one, other = (f"{self._source(side)} ({of})" for side, of in zip((left, right), shapes, strict=True))
        return self._wrong(node, f"{word} does not take {one} and {other}", SAME)

    def _unary(self, node: Node) -> TypeShape:
        operator, inner = node.children
        assert isinstance(operator, Tree)
        word = OPERATORS[str(operator.data).rpartition("_")[2]]
        if word == "!":
            self._truth(inner, "!")
            return BOOL
        shape = self.expr(inner)
        answer = applied("-_", (shape,))
        if answer is NO_OVERLOAD:
            return self._wrong(node, f"{word} does not take {self._source(inner)} ({shape})", SAME)
        return answer

    def _literal(self, node: Node) -> TypeShape:
        token = node.children[0]
        assert isinstance(token, Token)
        return TypeShape(LITERALS[token.type].kind, literal=literal_of(node))

    def _ident(self, node: Node) -> TypeShape:
        name = str(node.children[0])
        if name in self._names:
            return self._names[name]
        if name in TYPES:
            return ANY
        close = suggestion(name, self._names)
        return self._wrong(node, f"no variable {name!r}{close}", f"variables: {', '.join(VARIABLES)}")

    def _list_lit(self, node: Node) -> TypeShape:
        shapes = [self.expr(one) for one in arguments_of(node)]
        kinds = {shape.kind for shape in shapes}
        of = replace(shapes[0], literal=None, words=()) if len(kinds) == 1 else ANY
        return TypeShape("list", of=of, items=tuple(shapes))

    def _map_lit(self, node: Node) -> TypeShape:
        for part in node.children:
            for one in part.children if isinstance(part, Tree) else ():
                self.expr(one)
        return ANY

    def _member_object(self, node: Node) -> TypeShape:
        return self._wrong(node, "messages cannot be built in an expectation", REMEDY)

    def _member_dot(self, node: Node) -> TypeShape:
        return self._select(node, self.expr(node.children[0]), str(node.children[1]), node.children[1])

    def _select(self, node: Node, owner: TypeShape, name: str, at: Any) -> TypeShape:
        """A field of an object or a member of a map, by its name."""
        if owner.kind == "any" or owner.label == "history":
            return DOUBLE if owner.kind != "any" else ANY
        if owner.kind == "object":
            if name in owner.fields:
                return self._field(node, owner.fields[name], name, at)
            why = f"{owner} has no field {name!r}{suggestion(name, owner.fields)}"
            return self._wrong(at, why, f"fields: {', '.join(sorted(owner.fields))}")
        if owner.kind != "map":
            return self._wrong(at, f"{an(owner)} has no field {name!r}", "remove it")
        why, remedy = never_lower(owner, TypeShape("string", literal=name))
        if why:
            return self._wrong(at, why, remedy)
        if (path := path_of(node)) and path not in self._guarded:
            where = self._source(node.children[0])
            why = f"{where} may be without {name!r}, and then this cannot be decided"
            return self._wrong(at, why, f'ask for it: {where}.get("{name}", ""), or "{name}" in {where}')
        return owner.members

    def _field(self, node: Node, shape: TypeShape, name: str, at: Any) -> TypeShape:
        """A field of an object; one that may be absent only where the expression asks whether it is there."""
        if not shape.optional:
            return shape
        if (path := path_of(node)) and path not in self._guarded:
            where = self._source(node.children[0])
            why = f"{where} may be without {name!r}, and then this cannot be decided"
            return self._wrong(at, why, f"ask for it: !has({where}.{name}) || ...")
        return replace(shape, optional=False)

    def _member_index(self, node: Node) -> TypeShape:
        owner, index = self.expr(node.children[0]), self.expr(node.children[1])
        value = index.literal
        if owner.kind in ("object", "map") and isinstance(value, str):
            return self._select(node, owner, value, node.children[1])
        if owner.kind == "any" or index.kind == "any":
            return owner.members
        if owner.kind == "list" and index.kind in ("int", "uint"):
            return self._item(node, owner, value)
        key = "a string" if owner.kind in ("object", "map") else "an int"
        if owner.kind in ("list", "object", "map"):
            if owner.kind == "map" and index.kind == "string":
                return owner.members
            why = f"{an(owner)} is indexed by {key}, not {an(index)}"
            return self._wrong(node.children[1], why, f"use {key}")
        return self._wrong(node, f"{an(owner)} has no members", "remove the index")

    def _item(self, node: Node, owner: TypeShape, value: Any) -> TypeShape:
        if isinstance(value, int) and value < 0:
            return self._wrong(node.children[1], f"index {value} is below 0", "count from 0")
        if not owner.items or not isinstance(value, int):
            return owner.members
        if value < len(owner.items):
            return owner.items[value]
        text, last = self._source(node.children[0]), len(owner.items) - 1
        if text != "results":
            return self._wrong(node.children[1], f"index {value} is past the last one, {last}", "correct it")
        why = f"results[{value}] with {counted(len(owner.items), 'step')}: the last one is results[{last}]"
        return self._wrong(node, why, "add the step, or correct the index")

    def _ident_arg(self, node: Node) -> TypeShape:
        name, arguments = str(node.children[0]), arguments_of(node)
        if name == "has":
            return self._has(node, arguments)
        if name == "dyn":
            for one in arguments:
                self.expr(one)
            return ANY
        return self._call(node, node.children[0], name, arguments)

    def _has(self, node: Node, arguments: Sequence[Node]) -> TypeShape:
        if len(arguments) != 1 or len(path_of(arguments[0])) < 2:
            return self._wrong(node, "has() takes one field or member", 'write has(result.headers["x"])')
        self.expr(arguments[0])
        return BOOL

    def _member_dot_arg(self, node: Node) -> TypeShape:
        receiver, token = node.children[0], node.children[1]
        name, arguments = str(token), arguments_of(node)
        if name in MACROS:
            return self._macro(node, receiver, name, arguments)
        return self._call(node, token, name, [receiver, *arguments])

    def _call(self, node: Node, at: Any, name: str, arguments: Sequence[Any]) -> TypeShape:
        shapes = tuple(self.expr(one) for one in arguments)
        known = functions()
        if name not in known:
            words = {*known, *MACROS, "has"}
            why = f"no function {name!r}{suggestion(name, words)}"
            return self._wrong(at, why, f"functions: {', '.join(sorted(words, key=str.lower))}")
        answer = applied(name, shapes)
        if answer is NO_OVERLOAD:
            given = ", ".join(str(shape) for shape in shapes) or "nothing"
            remedy = FUNCTIONS.get(name, "convert the argument, or leave it out")
            return self._wrong(at, f"{name}() does not take {given}", remedy)
        if name in ("get", *PARTIAL - {"matches"}):
            why, remedy = never_lower(shapes[0], shapes[1])
            if why:
                return self._wrong(arguments[1], why, remedy)
        if name == "get" and (why := other_default(shapes)):
            return self._wrong(arguments[-1], why, SAME)
        if name in PARTIAL and (why := no_word(name, shapes)):
            return self._wrong(arguments[-1], f"{self._source(arguments[0])} {why}", one_of(shapes[0].words))
        if name == "matches" and (why := bad_pattern(shapes[-1].literal)):
            return self._wrong(arguments[-1], why, "correct the pattern; its syntax is RE2's")
        return answer

    def _macro(self, node: Node, receiver: Any, name: str, arguments: Sequence[Any]) -> TypeShape:
        owner = self.expr(receiver)
        if owner.kind not in ("list", "map", "any"):
            return self._wrong(receiver, f"{name}() needs a list or a map, not {an(owner)}", "name a list")
        member = replace(STRING, lower=owner.lower) if owner.kind == "map" else owner.members
        wanted = 0 if name == "min" else 4 if name == REDUCE else 2
        named = [path_of(one) for one in arguments[: 2 if name == REDUCE else 1]] if wanted else []
        if len(arguments) != wanted or any(len(path) != 1 for path in named):
            return self._wrong(node.children[1], f"{name}() is not written like this", MACROS[name])
        if not wanted:
            return member
        inside = dict.fromkeys((path[0] for path in named), ANY if name == REDUCE else member)
        outside, self._names = self._names, self._names | inside
        try:
            if name in ("all", "exists", "exists_one", "filter"):
                self._truth(arguments[1], f"{name}()")
                if name != "filter":
                    return BOOL
                return owner if owner.kind == "list" else ANY
            shapes = [self.expr(one) for one in arguments[len(named) :]]
            return TypeShape("list", of=shapes[0]) if name == "map" else ANY
        finally:
            self._names = outside
