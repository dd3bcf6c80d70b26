"""Whether an expectation can be decided on the results of its probe's steps, before anything is asked.

Walks the parse tree of cel-python. Whether an operator or a function takes a type is asked of the library
itself, with a sample value of that type: so no table here can differ from what decides a run.
Loads the library: imported by the first check only (expect_check.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError
from lark import Token, Tree

from fleet.drivers.expect import (
    FUNCTIONS,
    MACROS,
    OPERATORS,
    REDUCE,
    VARIABLES,
    compiled,
    functions,
    operators,
)
from fleet.drivers.expect_constant import constant
from fleet.drivers.expect_shapes import (
    ANY,
    BOOL,
    DOUBLE,
    STRING,
    TypeShape,
    one_of,
    variables,
)
from fleet.drivers.expect_tree import Branch, Node, Path, arguments_of, guards, literal_of, path_of
from fleet.personas.check import Fault, Wants
from fleet.text import counted, suggestion

REMEDY = "write CEL over result, results, history and facts"
SAME = (
    'make both sides one type: 200 is an int, 200.0 a double, "200" a string; '
    "int(), double() and string() convert"
)
LITERALS: Mapping[str, str] = MappingProxyType(
    {"INT_LIT": "int", "UINT_LIT": "uint", "FLOAT_LIT": "double", "BYTES_LIT": "bytes"}
    | {"STRING_LIT": "string", "MLSTRING_LIT": "string", "BOOL_LIT": "bool", "NULL_LIT": "null_type"}
)
"""Types of literals by their tokens there."""
METHODS = frozenset(
    {"literal", "ident", "ident_arg", "list_lit", "map_lit"}
    | {"member_object", "member_dot", "member_dot_arg", "member_index"}
)
"""Nodes with a method of their own; any other node is its only child."""
TYPES = frozenset(
    {"bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string"}
    | {"timestamp", "type", "uint"}
)
PARTIAL = frozenset({"contains", "endsWith", "matches", "startsWith"})
"""Functions that ask for a part of a text."""
OPERATOR_OF: Mapping[str, str] = MappingProxyType(
    {"and": "&&", "or": "||", "not": "!", "&": "&&", "|": "||", "=": "==", "===": "==", "!==": "!="}
)
"""CEL's operators by those of other languages."""
_WORDS = re.compile(r"""\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\w+|[&|=!<>]+""", re.S)
NO_OVERLOAD = TypeShape("nothing")
_SAMPLES: dict[str, celtypes.Value] = {
    "int": celtypes.IntType(1),
    "uint": celtypes.UintType(1),
    "double": celtypes.DoubleType(1.5),
    "bool": celtypes.BoolType(True),
    "string": celtypes.StringType("1"),
    "bytes": celtypes.BytesType(b"1"),
    "null_type": None,
}
_KINDS = {type(value): kind for kind, value in _SAMPLES.items()} | {bool: "bool"}
_ANSWERS_TRUTH = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_in_"})


def faults(text: str, tools: Sequence[str], wants: Wants) -> list[Fault]:
    """Why this cannot be decided on the results of `tools`, in their order in the text; [] for a sound one.

    `wants`: "bool" for an expectation, "number" for a figure that is kept.
    """
    try:
        tree = compiled(text)
    except CELParseError as error:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: (error.line or 1) - 1])) + (error.column or 1) - 1
        if found := _other_language(text):
            return [found]
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
    if wants == "bool" and not walk.found and (always := constant(text)) is not None:
        why = f"is always {str(always).lower()}: no answer can change it"
        return [
            Fault(why, "compare a field of the answer with what is expected, such as result.status == 200")
        ]
    return sorted(walk.found, key=lambda fault: fault.at)


def _other_language(text: str) -> Fault | None:
    """An operator of another language in a text that is not CEL; strings are passed over."""
    for found in _WORDS.finditer(text):
        if meant := OPERATOR_OF.get(found[0].lower()):
            return Fault(f"CEL has no {found[0]!r}", f"write {meant} instead", found.start())
    return None


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

    def expr(self, node: Branch) -> TypeShape:
        """The shape of any node of the tree."""
        assert isinstance(node, Tree)
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

    def _wrong(self, node: Branch, message: str, remedy: str) -> TypeShape:
        meta = getattr(node, "meta", node)
        self.found.append(Fault(message, remedy, getattr(meta, "start_pos", 0) or 0))
        return ANY

    def _source(self, node: Branch) -> str:
        assert isinstance(node, Tree)
        return " ".join(self._text[node.meta.start_pos : node.meta.end_pos].split())[:60]

    def _truth(self, node: Branch, of: str) -> None:
        shape = self.expr(node)
        if shape.kind not in ("bool", "any"):
            self._wrong(node, f"{of} needs true or false, {self._source(node)} is {an(shape)}", "compare it")

    def _capital(self, at: Branch, shape: TypeShape, given: TypeShape) -> bool:
        """Whether a key in lower case never is, or has, this text; says so."""
        texts = [one.literal for one in given.items or (given,)]
        text = next((one for one in texts if isinstance(one, str) and one != one.lower()), "")
        if not (shape.lower and text):
            return False
        why = f"{shape.lower} are in lower case: never {text[:60]!r}"
        self._wrong(at, why, f"write {text.lower()[:60]!r}")
        return True

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
        if answer is not NO_OVERLOAD:
            for at, (text, given) in ((right, shapes), (left, shapes[::-1])):
                if word in ("==", "!=", "in"):
                    self._capital(at, text, given)
            for side, of, value in unheard(word, shapes):
                said = f"is never {value[:40]!r}{suggestion(value, of)}"
                why = f"{self._source((left, right)[side])} {said}"
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
        return TypeShape(LITERALS[token.type], literal=literal_of(node))

    def _ident(self, node: Node) -> TypeShape:
        name = str(node.children[0])
        if name in self._names:
            return self._names[name]
        if name in TYPES:
            return ANY
        if name.lower() in ("true", "false", "null", "none"):
            return self._wrong(node, f"no variable {name!r}", "write true, false and null in lower case")
        if meant := OPERATOR_OF.get(name.lower()):
            return self._wrong(node, f"CEL has no {name!r}", f"write {meant} instead")
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

    def _select(self, node: Node, owner: TypeShape, name: str, at: Branch) -> TypeShape:
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
        if self._capital(at, owner, TypeShape("string", literal=name)):
            return ANY
        if (path := path_of(node)) and path not in self._guarded:
            where = self._source(node.children[0])
            why = f"{where} may be without {name!r}, and then this cannot be decided"
            return self._wrong(at, why, f'ask for it: {where}.get("{name}", ""), or "{name}" in {where}')
        return owner.members

    def _field(self, node: Node, shape: TypeShape, name: str, at: Branch) -> TypeShape:
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

    def _item(self, node: Node, owner: TypeShape, value: object) -> TypeShape:
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
        return self._call(node.children[0], name, arguments)

    def _has(self, node: Node, arguments: Sequence[Branch]) -> TypeShape:
        if len(arguments) != 1 or len(path_of(arguments[0])) < 2:
            return self._wrong(node, "has() takes one field or member", 'write has(result.headers["x"])')
        self.expr(arguments[0])
        return BOOL

    def _member_dot_arg(self, node: Node) -> TypeShape:
        receiver, token = node.children[0], node.children[1]
        name, arguments = str(token), arguments_of(node)
        if name in MACROS:
            return self._macro(node, receiver, name, arguments)
        return self._call(token, name, [receiver, *arguments])

    def _call(self, at: Branch, name: str, arguments: Sequence[Branch]) -> TypeShape:
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
        if name in ("get", *PARTIAL - {"matches"}) and self._capital(arguments[1], *shapes[:2]):
            return ANY
        member = shapes[0].members if name == "get" else ANY
        if "any" not in (member.kind, shapes[-1].kind) and member.kind != shapes[-1].kind:
            why = f"the members are {member}, the value instead of one is {an(shapes[-1])}"
            return self._wrong(arguments[-1], why, SAME)
        if name in PARTIAL and (why := no_word(name, shapes)):
            return self._wrong(arguments[-1], f"{self._source(arguments[0])} {why}", one_of(shapes[0].words))
        if name == "matches" and (why := bad_pattern(shapes[-1].literal)):
            return self._wrong(arguments[-1], why, "correct the pattern; its syntax is RE2's")
        return answer

    def _macro(self, node: Node, receiver: Branch, name: str, arguments: Sequence[Branch]) -> TypeShape:
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


def unheard(word: str, shapes: tuple[TypeShape, TypeShape]) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Values that a text with known words never has: its side (0 or 1), its words, the value."""
    one, other = shapes
    if word in ("==", "!="):
        pairs = [(0, one, other), (1, other, one)]
    elif word == "in":  # a text in a written list, or a written text in a list of known words
        pairs = [(0, one, member) for member in other.items] + [(1, other.members, one)]
    else:
        return
    for side, text, given in pairs:
        if text.words and isinstance(given.literal, str) and given.literal not in text.words:
            yield side, text.words, given.literal


def no_word(name: str, shapes: Sequence[TypeShape]) -> str:
    """Why no word of a text has such a part, or ""."""
    text, part = shapes[0], shapes[-1].literal
    if not text.words or not isinstance(part, str) or (name == "matches" and bad_pattern(part)):
        return ""
    return "" if any(functions()[name](word, part) for word in text.words) else f"never {name}({part!r})"


def bad_pattern(pattern: object) -> str:
    if not isinstance(pattern, str):
        return ""
    answer = functions()["matches"]("", pattern)
    return f"{pattern[:40]!r} is not a regular expression" if isinstance(answer, Exception) else ""


def an(shape: TypeShape) -> str:
    text = str(shape)
    return text if text.startswith("the ") or shape.label else f"{'an' if text[0] in 'aio' else 'a'} {text}"


def applied(name: str, shapes: Sequence[TypeShape]) -> TypeShape:
    """The shape of an operator's or a function's answer to these types; NO_OVERLOAD if it has none."""
    if _mixed(name, shapes):
        return NO_OVERLOAD
    if any(_open(shape) for shape in shapes):
        return TypeShape("bool") if name in _ANSWERS_TRUTH else ANY
    try:
        answer = operators()[name](*map(_sample, shapes))
    except (TypeError, AttributeError):
        return NO_OVERLOAD
    except (ValueError, ArithmeticError, LookupError):
        return ANY  # it takes the type, but not the sample
    if isinstance(answer, CELEvalError):
        return NO_OVERLOAD if issubclass(answer.args[1], TypeError | AttributeError) else ANY
    if isinstance(answer, list) and shapes[0].kind == "list":
        return TypeShape("list", of=replace(shapes[0].members, words=()))
    return TypeShape(_KINDS.get(type(answer), "any"))


def _mixed(name: str, shapes: Sequence[TypeShape]) -> bool:
    """Whether the library would take both, but never say anything: it holds booleans for numbers."""
    if len(shapes) != 2 or not name.startswith("_") or "any" in {shape.kind for shape in shapes}:
        return False
    one, other = shapes
    if name == "_in_":
        return (other.members.kind if other.kind == "list" else "string") not in ("any", one.kind)
    return (one.kind == "bool") != (other.kind == "bool")


def _open(shape: TypeShape) -> bool:
    """Whether nothing is known of it before an answer is there."""
    return shape.kind == "any" or (shape.kind == "list" and _open(shape.members))


def _sample(shape: TypeShape) -> celtypes.Value:
    if shape.kind == "list":
        return celtypes.ListType([_sample(shape.members)])
    if shape.kind == "map":
        return celtypes.MapType({celtypes.StringType("1"): _sample(shape.members)})
    if shape.kind == "object":
        return celtypes.MapType({celtypes.StringType(name): None for name in shape.fields})
    return _SAMPLES[shape.kind]
